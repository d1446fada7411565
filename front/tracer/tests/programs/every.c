/* Every macro, number and type of arguments, in C and in C++; prints what its callback was given. */
#include <horolog/trace.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

static void print(const struct horolog_event *event, const uint64_t *words, uint32_t count)
{
	printf("%s %s", event->name, event->types);
	for (uint32_t i = 0; i < count; i++) {
		double d;
		memcpy(&d, &words[i], sizeof d);
		if (event->types[i] == 'f')
			printf(" %g", d);
		else if (event->types[i] == 's') {
			const struct horolog_string *string = (const struct horolog_string *)(uintptr_t)words[i];
			printf(" %.*s", (int)string->length, string->text);
		} else if (event->types[i] == 'p')
			printf(" %s", words[i] ? (const char *)(uintptr_t)words[i] : "null");
		else
			printf(" %lld", (long long)words[i]);
	}
	printf("\n");
}

#ifdef __cplusplus
template <class T> struct Box {
	T value;
	void show() { HOROLOG_TRIGGER_CALLBACK("every/template", print, value, this->value); }
};
enum class Colour : unsigned char { red = 3 };
inline __attribute__((noinline)) void shared(int x) { HOROLOG_TRIGGER_CALLBACK("every/inline", print, x); }
#else
static inline void shared(int x) { HOROLOG_TRIGGER_CALLBACK("every/inline", print, x); }
#endif

static int evaluated;
static int argument(void) { return ++evaluated; }

static void each(void *context, const char *name, const char *types, size_t sites, size_t enabled)
{
	(void)name, (void)types;
	((size_t *)context)[0] += sites;
	((size_t *)context)[1] += enabled;
}

int main(void)
{
	const bool yes = true;
	const unsigned char byte = 200;
	const short small = -5;
	const char *text = "text";
	HOROLOG_TRIGGER("every/recorded");
	HOROLOG_TRIGGER("every/recorded", 1, 2u, 3.0, 4.0f, text, yes, byte, small, 9ull, (void *)0);
	HOROLOG_TRIGGER_CALLBACK("every/0", print);
	HOROLOG_TRIGGER_CALLBACK("every/1", print, yes);
	HOROLOG_TRIGGER_CALLBACK("every/2", print, byte, small);
	HOROLOG_TRIGGER_CALLBACK("every/3", print, 1.5, 2.5f, text);
	HOROLOG_TRIGGER_CALLBACK("every/4", print, 1l, 2ul, 3ll, 4ull);
	HOROLOG_TRIGGER_CALLBACK("every/10", print, 1, 2, 3, 4, 5, 6, 7, 8, 9, -10);
	HOROLOG_TRIGGER_CALLBACK("every/text", print, HOROLOG_STRING(text), HOROLOG_STRING_N("abcdef", 3), HOROLOG_ARG("n", "items", 4),
				 HOROLOG_STRING((const char *)NULL));
	HOROLOG_SPAN_BEGIN("every/span", HOROLOG_FLOW(7), HOROLOG_STRING(text));
	HOROLOG_COUNTER("every/level", "items", byte);
	HOROLOG_SPAN_END("every/span");
	HOROLOG_TRIGGER_CALLBACK("every/evaluated", print, argument());
	for (int i = 0; i < 2; i++)
		shared(i);
	shared(7);
#ifdef __cplusplus
	HOROLOG_SPAN("every/scope", small);
	HOROLOG_SPAN("every/scope");
	Box<int>{ -4 }.show();
	Box<double>{ 0.25 }.show();
	HOROLOG_TRIGGER_CALLBACK("every/enum", print, Colour::red, nullptr);
#endif
	printf("evaluated %d\n", evaluated);
	size_t counted[2] = { 0, 0 };
	const int events = horolog_trace_list(each, counted);
	if (events < 0)
		printf("no runtime\n");
	else
		printf("%s\n", counted[0] == counted[1] ? "all enabled" : counted[1] ? "some enabled" : "none enabled");
	const int disabled = horolog_trace_disable("every/*");
	if (disabled != (events < 0 ? -ENOSYS : (int)counted[0]))
		printf("disable gave %d\n", disabled);
	HOROLOG_TRIGGER_CALLBACK("every/disabled", print, argument());
	printf("evaluated %d\n", evaluated);
	return 0;
}
