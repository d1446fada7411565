/* A site of another architecture: found through its table, switched by its flag, as a runtime does it. */
#include <horolog/trace.h>
#include <string.h>
static int evaluated, seen;
static uint64_t first;
static double second;
static uint64_t value(void) { evaluated++; return 7; }
static void call(struct horolog_event *event, const uint64_t *words) {
    if (event->arguments == 2) { seen++; first = words[0]; memcpy(&second, &words[1], 8); }
}
static __attribute__((noinline)) void pass(void) { HOROLOG_TRIGGER("portable/site", value(), 2.5); }
struct entry { int32_t code, event; uint8_t bytes[2]; uint16_t version; uint32_t types; };
extern const struct entry __start_horolog_sites[], __stop_horolog_sites[];
int main(void) {
    pass();
    if (evaluated || seen) return 1;
    long sites = __stop_horolog_sites - __start_horolog_sites;
    if (sites != 1) return 2;
    const struct entry *entry = __start_horolog_sites;
    struct horolog_event *event = (struct horolog_event *)((char *)&entry->event + entry->event);
    if (entry->code != 0 || strcmp(event->name, "portable/site")) return 3;
    event->call = call;
    __atomic_store_n(&event->enabled, 1, __ATOMIC_RELAXED);
    pass();
    if (evaluated != 1 || seen != 1 || first != 7 || second != 2.5) return 4;
    __atomic_store_n(&event->enabled, 0, __ATOMIC_RELAXED);
    pass();
    return evaluated == 1 && seen == 1 ? 0 : 5;
}
