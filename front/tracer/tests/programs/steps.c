/* Pairs of functions that differ in a trigger alone, for counting instructions. */
#include <horolog/trace.h>

static __attribute__((noinline)) void nothing(const struct horolog_event *event, const uint64_t *words, uint32_t count)
{
	__asm__ volatile("" ::"r"(event), "r"(words), "r"(count));
}

/* Preemptible, so that no compiler knows which registers it keeps. */
__attribute__((noinline)) int other(int x)
{
	__asm__ volatile("" : "+r"(x));
	return x + 1;
}

/* The same call without a site; the test gives it the receiver that a runtime gives to the others. */
struct horolog_event plain_event = { "steps/plain", horolog_unheard_, NULL, 0, 1, 0, { 0 }, 0, 0 };
struct horolog_event plain_callback_event = { "steps/plain", horolog_unheard_, nothing, 0, 1, 0, { 0 }, 0, 0 };
#define PLAIN(name, a) horolog_emit_1_(&plain_event, HOROLOG_WORD_(a))
#define PLAIN_CALLBACK(name, a) horolog_call_1_(&plain_callback_event, HOROLOG_WORD_(a))
#define NOTHING(name, a) ((void)0)
#define CALLBACK(name, a) HOROLOG_TRIGGER_CALLBACK(name, nothing, a)

/* Among calls: the function saves what it needs anyway. */
#define AMONG(suffix, what)                                                                                            \
	int among_##suffix(int x)                                                                                      \
	{                                                                                                              \
		const int y = other(x);                                                                                \
		what("steps/among", y);                                                                                \
		return other(y) * 2 + other(x) + y;                                                                    \
	}
/* Leaves, which need no frame of their own. */
#define START(suffix, what)                                                                                            \
	int start_##suffix(int x)                                                                                      \
	{                                                                                                              \
		what("steps/start", x);                                                                                \
		return x * 3 + 1;                                                                                      \
	}
#define MIDDLE(suffix, what)                                                                                           \
	int middle_##suffix(int x)                                                                                     \
	{                                                                                                              \
		int y = x * 7 + 3, z = x ^ y;                                                                          \
		__asm__ volatile("" : "+r"(y), "+r"(z));                                                               \
		what("steps/middle", y);                                                                               \
		return y * z + x;                                                                                      \
	}
#define ALL(suffix, what) AMONG(suffix, what) START(suffix, what) MIDDLE(suffix, what)
ALL(without, NOTHING)
ALL(trigger, HOROLOG_TRIGGER)
ALL(plain, PLAIN)
ALL(callback, CALLBACK)
ALL(plain_callback, PLAIN_CALLBACK)
