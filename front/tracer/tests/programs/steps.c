/* Pairs of functions that differ in a trigger alone, for counting instructions. */
#include <horolog/trace.h>

static __attribute__((noinline)) void nothing(const struct horolog_event *event, const uint64_t *words, uint32_t count)
{
	__asm__ volatile("" ::"r"(event), "r"(words), "r"(count));
}

__attribute__((noinline, noclone)) static int other(int x)
{
	__asm__ volatile("" : "+r"(x));
	return x + 1;
}

/* The same call without a site. */
#define PLAIN(name, a)                                                                                                 \
	do {                                                                                                           \
		static struct horolog_event event = { name, horolog_unheard_, NULL, 0, 1, 0, { 0 }, 0, 0 };            \
		horolog_emit_1_(&event, HOROLOG_WORD_(a));                                                             \
	} while (0)
#define PLAIN_CALLBACK(name, a)                                                                                        \
	do {                                                                                                           \
		static struct horolog_event event = { name, horolog_unheard_, nothing, 0, 1, 0, { 0 }, 0, 0 };         \
		const uint64_t words[] = { HOROLOG_WORD_(a) };                                                         \
		nothing(&event, words, 1);                                                                             \
	} while (0)

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
