/*
 * Triggers for C (C11) and C++ (C++17), gcc and clang: tracing that costs one jump until it is switched on.
 *
 *     HOROLOG_TRIGGER("queue/enqueue", queue, HOROLOG_ARG("length", "items", queue->length), HOROLOG_STRING(from));
 *
 * Disabled, as every site is at first, a trigger is one two-byte jump over the next instruction; its arguments are not
 * evaluated. There may be none to ten: bool, integers of at most 64 bits, float, double, pointers, texts (HOROLOG_STRING);
 * anything else does not compile. An argument is called as HOROLOG_ARG says, else after the variable or member that it is.
 * A name switches every site that bears it, in all loaded modules, copies made by the compiler included. Usable
 * anywhere, signal handlers included. Spans, counters and flows: HOROLOG_SPAN_BEGIN and the macros behind it.
 *
 * This header is all that a program with triggers needs: it refers to no library. The runtime, libhorolog_trace, comes
 * preloaded (LD_PRELOAD, as `horolog trace record` does), linked (-lhorolog_trace) or, in a static program, as archive
 * (-Wl,-u,horolog_trace_refresh libhorolog_trace.a). Without it, sites can still be switched from outside
 * (`horolog trace enable PID NAME`), and their callbacks run.
 *
 * Where code must not or cannot be changed (HOROLOG_TRIGGER_PORTABLE defined, or another architecture than x86-64), a
 * trigger is a relaxed load of a flag and a predicted branch, with the same macros.
 */
#ifndef HOROLOG_TRACE_H
#define HOROLOG_TRACE_H

#include <errno.h>
#include <stddef.h>
#include <stdint.h>

#if !defined(__GNUC__) || !defined(__ELF__)
#error "horolog/trace.h needs gcc or clang, and ELF"
#endif
#if !defined(__x86_64__) && !defined(HOROLOG_TRIGGER_PORTABLE)
#define HOROLOG_TRIGGER_PORTABLE 1
#endif

#ifdef __cplusplus
#include <type_traits>
extern "C" {
#endif

/* What all sites of one name in one function share; 64 bytes, laid out as `horolog_probe::Event`. */
struct __attribute__((aligned(64))) horolog_event {
	const char *name;
	void (*call)(struct horolog_event *event, const uint64_t *words);
	void (*callback)(const struct horolog_event *event, const uint64_t *words, uint32_t count);
	uint32_t id;
	uint32_t arguments;
	uint64_t unheard;
	/* One letter an argument: b bool, u unsigned, i signed, f double, p address, s text. Filled in before a site is enabled. */
	char types[12];
	uint32_t enabled;
	const struct horolog_about *about;
};

/* The place of an event's site, and how its arguments were written; 32 bytes, laid out as `horolog_probe::About`. */
struct horolog_about {
	const char *arguments;
	const char *file;
	const char *function;
	uint32_t line;
	uint32_t form;
};

/* A text as an argument; its word is the address of this structure. */
struct horolog_string {
	const char *text;
	size_t length;
};

/* A function of yours behind HOROLOG_TRIGGER_CALLBACK: one word an argument, floats as the bits of a double, texts as the
 * address of a struct horolog_string. */
typedef void (*horolog_callback)(const struct horolog_event *event, const uint64_t *words, uint32_t count);

/* What a runtime offers to a module; reached through the functions at the end of this file. */
struct horolog_runtime {
	uint32_t version;
	uint32_t size;
	int (*enable)(const char *pattern);
	int (*disable)(const char *pattern);
	int (*list)(void (*each)(void *context, const char *name, const char *types, size_t sites, size_t enabled),
		    void *context);
};

/* The module's pointer to its runtime, found through the module's note. One a module. */
struct horolog_module {
	const struct horolog_runtime *runtime;
};
__attribute__((weak, visibility("hidden"), used)) struct horolog_module horolog_module_of = { NULL };

/* The runtime gives modules loaded later the positions that were asked for before. */
extern int horolog_trace_refresh(void) __attribute__((weak));

#ifdef __cplusplus
}
#endif

/* ---- arguments -------------------------------------------------------------------------------------------------- */

/* HOROLOG_ARG("length", "B", value): an argument with a name and a unit ("" where it has none), shown in every output. */
#define HOROLOG_ARG(name, unit, value) ((void)"horolog", (void)name, (void)unit, value)

/* A number that events of one matter share, whatever their threads: an arrow joins them, in order. The second ends it. */
#define HOROLOG_FLOW(id) HOROLOG_ARG("flow", "", id)
#define HOROLOG_FLOW_END(id) HOROLOG_ARG("flow_end", "", id)

/* The length of a text, of which no more is recorded than 256 bytes; a longer one is marked as cut. */
static inline __attribute__((unused)) struct horolog_string horolog_string_of_(const char *text)
{
	struct horolog_string string = { text ? text : "(null)", 0 };
	while (string.length <= 256 && string.text[string.length])
		string.length++;
	return string;
}
static inline __attribute__((unused)) struct horolog_string horolog_string_n_(const char *text, size_t length)
{
	struct horolog_string string = { text ? text : "(null)", text ? length : 6 };
	return string;
}

#ifdef __cplusplus
/* HOROLOG_STRING(text): a text that ends in a zero byte, as an argument; HOROLOG_STRING_N(text, length): one of a length. */
#define HOROLOG_STRING(text) (horolog_string_of_(text))
#define HOROLOG_STRING_N(text, length) (horolog_string_n_(text, length))
namespace horolog_detail {
template <class T> constexpr unsigned type()
{
	using D = std::decay_t<T>;
	static_assert(std::is_same_v<D, horolog_string> || std::is_same_v<D, bool> || std::is_pointer_v<D> || std::is_null_pointer_v<D> ||
			      std::is_enum_v<D> || std::is_same_v<D, float> || std::is_same_v<D, double> ||
			      (std::is_integral_v<D> && sizeof(D) <= 8),
		      "a trigger takes bool, integers of at most 64 bits, float, double, pointers and HOROLOG_STRING");
	if constexpr (std::is_same_v<D, bool>)
		return 1;
	else if constexpr (std::is_same_v<D, horolog_string>)
		return 6;
	else if constexpr (std::is_pointer_v<D> || std::is_null_pointer_v<D>)
		return 5;
	else if constexpr (std::is_floating_point_v<D>)
		return 4;
	else if constexpr (std::is_enum_v<D>)
		return std::is_signed_v<std::underlying_type_t<D>> ? 3 : 2;
	else
		return std::is_signed_v<D> ? 3 : 2;
}
template <class T> inline uint64_t word(T value)
{
	if constexpr (std::is_null_pointer_v<T>) {
		(void)value;
		return 0;
	} else if constexpr (std::is_pointer_v<T>) {
		return reinterpret_cast<uintptr_t>(value);
	} else if constexpr (std::is_floating_point_v<T>) {
		const double wide = value;
		uint64_t bits;
		__builtin_memcpy(&bits, &wide, sizeof bits);
		return bits;
	} else if constexpr (std::is_enum_v<T>) {
		return word(static_cast<std::underlying_type_t<T>>(value));
	} else if constexpr (std::is_signed_v<T>) {
		return static_cast<uint64_t>(static_cast<int64_t>(value));
	} else {
		return static_cast<uint64_t>(value);
	}
}
/* A text that lasts until the end of the call in which it is an argument. */
inline uint64_t word(const horolog_string &text) { return reinterpret_cast<uintptr_t>(&text); }
/* One descriptor a use, hidden, so that its address is a constant also in inline functions of shared libraries. */
template <class Here> struct __attribute__((visibility("hidden"))) descriptor {
	static inline const struct horolog_about about = { Here::written(), Here::file(), Here::function(), Here::line, 1 };
	static inline struct horolog_event event = { Here::name(),    Here::call(), Here::callback(), 0,
						     Here::arguments, 0,	    {},		      0,
						     &about };
};
} // namespace horolog_detail
#define HOROLOG_TYPE_(argument) (horolog_detail::type<decltype(argument)>())
#define HOROLOG_WORD_(argument) (horolog_detail::word(argument))
#else
static inline uint64_t horolog_word_unsigned_(uint64_t value) { return value; }
static inline uint64_t horolog_word_signed_(int64_t value) { return (uint64_t)value; }
/* The array of a structure that a function returns lasts until the end of the whole expression. */
struct horolog_lasting_ {
	struct horolog_string at[1];
};
static inline __attribute__((unused)) struct horolog_lasting_ horolog_lasting_of_(struct horolog_string string)
{
	struct horolog_lasting_ lasting = { { string } };
	return lasting;
}
#define HOROLOG_STRING(text) (horolog_lasting_of_(horolog_string_of_(text)).at)
#define HOROLOG_STRING_N(text, length) (horolog_lasting_of_(horolog_string_n_(text, length)).at)
static inline uint64_t horolog_word_string_(const struct horolog_string *value) { return (uintptr_t)value; }
static inline uint64_t horolog_word_pointer_(const volatile void *value) { return (uintptr_t)value; }
static inline uint64_t horolog_word_double_(double value)
{
	uint64_t bits;
	__builtin_memcpy(&bits, &value, sizeof bits);
	return bits;
}
#ifdef __SIZEOF_INT128__
__extension__ typedef __int128 horolog_int128_;
__extension__ typedef unsigned __int128 horolog_uint128_;
struct horolog_at_most_64_bits {
	char no;
};
/* Chosen for an integer of 128 bits, which is no such structure: an error that says why. */
static inline uint64_t horolog_word_wide_(struct horolog_at_most_64_bits value) { return (uint64_t)value.no; }
#define HOROLOG_WIDE_(w) , horolog_int128_ : w, horolog_uint128_ : w
#else
#define HOROLOG_WIDE_(w)
#endif
/* What is no number goes through the parameter `const volatile void *`, and compiles only if it is an address. */
#define HOROLOG_BY_TYPE_(argument, b, u, i, f, p, s, w)                                                                      \
	_Generic((argument), _Bool: b, unsigned char: u, unsigned short: u, unsigned int: u, unsigned long: u,         \
		 unsigned long long: u, char: i, signed char: i, short: i, int: i, long: i, long long: i, float: f,    \
		 double: f, struct horolog_string *: s, default: p HOROLOG_WIDE_(w))
/* What has no letter is told here, before the compiler tells it of a parameter in this header: a structure, a union, `long double`
 * and other floating points that are no double, a complex number, and an integer of 128 bits. Arrays and functions are addresses.
 * The classes are those of gcc's typeclass.h: 8 real, 9 complex, 12 record, 13 union. */
#define HOROLOG_IS_ADDRESS_(argument)                                                                                  \
	(__builtin_classify_type(argument) != 8 && __builtin_classify_type(argument) != 9 &&                           \
	 __builtin_classify_type(argument) != 12 && __builtin_classify_type(argument) != 13)
#define HOROLOG_TAKEN_(argument)                                                                                       \
	sizeof(struct {                                                                                                \
		char no;                                                                                               \
		_Static_assert(HOROLOG_BY_TYPE_(argument, 1, 1, 1, 1, HOROLOG_IS_ADDRESS_(argument), 1, 0),            \
			       "a trigger takes bool, integers of at most 64 bits, float, double, pointers and HOROLOG_STRING"); \
	})
#define HOROLOG_TYPE_(argument) (HOROLOG_BY_TYPE_(argument, 1, 2, 3, 4, 5, 6, 0) + 0 * (int)HOROLOG_TAKEN_(argument))
#define HOROLOG_WORD_(argument)                                                                                        \
	(HOROLOG_BY_TYPE_(argument, horolog_word_unsigned_, horolog_word_unsigned_, horolog_word_signed_,              \
			  horolog_word_double_, horolog_word_pointer_, horolog_word_string_, horolog_word_wide_)(argument))
#endif

/* ---- what an enabled site calls --------------------------------------------------------------------------------- */

/* Without a runtime: counts. */
static void __attribute__((unused, cold)) horolog_unheard_(struct horolog_event *event, const uint64_t *words)
{
	(void)words;
	__atomic_fetch_add(&event->unheard, 1, __ATOMIC_RELAXED);
}

/* One function for each number of arguments takes them in registers, so that the array costs the traced function no
 * stack. The pointer is plain: it is set before the first site is enabled, and points to a function at all times. */
#define HOROLOG_EMIT_(n, parameters, ...)                                                                              \
	static void __attribute__((unused, cold, noinline)) horolog_emit_##n##_ parameters                             \
	{                                                                                                              \
		const uint64_t words[] = { __VA_ARGS__ };                                                              \
		e->call(e, words);                                                                                     \
	}                                                                                                              \
	static void __attribute__((unused, cold, noinline)) horolog_call_##n##_ parameters                             \
	{                                                                                                              \
		const uint64_t words[] = { __VA_ARGS__ };                                                              \
		e->callback(e, words, n);                                                                              \
	}
static void __attribute__((unused, cold, noinline)) horolog_emit_0_(struct horolog_event *e) { e->call(e, NULL); }
static void __attribute__((unused, cold, noinline)) horolog_call_0_(struct horolog_event *e) { e->callback(e, NULL, 0); }
HOROLOG_EMIT_(1, (struct horolog_event *e, uint64_t a), a)
HOROLOG_EMIT_(2, (struct horolog_event *e, uint64_t a, uint64_t b), a, b)
HOROLOG_EMIT_(3, (struct horolog_event *e, uint64_t a, uint64_t b, uint64_t c), a, b, c)
HOROLOG_EMIT_(4, (struct horolog_event *e, uint64_t a, uint64_t b, uint64_t c, uint64_t d), a, b, c, d)
HOROLOG_EMIT_(5, (struct horolog_event *e, uint64_t a, uint64_t b, uint64_t c, uint64_t d, uint64_t f), a, b, c, d, f)
HOROLOG_EMIT_(6, (struct horolog_event *e, uint64_t a, uint64_t b, uint64_t c, uint64_t d, uint64_t f, uint64_t g), a,
	      b, c, d, f, g)
HOROLOG_EMIT_(7,
	      (struct horolog_event *e, uint64_t a, uint64_t b, uint64_t c, uint64_t d, uint64_t f, uint64_t g,
	       uint64_t h),
	      a, b, c, d, f, g, h)
HOROLOG_EMIT_(8,
	      (struct horolog_event *e, uint64_t a, uint64_t b, uint64_t c, uint64_t d, uint64_t f, uint64_t g, uint64_t h,
	       uint64_t i),
	      a, b, c, d, f, g, h, i)
HOROLOG_EMIT_(9,
	      (struct horolog_event *e, uint64_t a, uint64_t b, uint64_t c, uint64_t d, uint64_t f, uint64_t g, uint64_t h,
	       uint64_t i, uint64_t j),
	      a, b, c, d, f, g, h, i, j)
HOROLOG_EMIT_(10,
	      (struct horolog_event *e, uint64_t a, uint64_t b, uint64_t c, uint64_t d, uint64_t f, uint64_t g, uint64_t h,
	       uint64_t i, uint64_t j, uint64_t k),
	      a, b, c, d, f, g, h, i, j, k)
#undef HOROLOG_EMIT_

/* ---- the site --------------------------------------------------------------------------------------------------- */

/* The note by which a module's table is found in memory, stripped or not: once an assembly, one a module. */
#define HOROLOG_NOTE_                                                                                                  \
	".ifndef .Lhorolog_note_c\n"                                                                                   \
	".set .Lhorolog_note_c, 1\n"                                                                                   \
	".pushsection .note.horolog,\"aGR\",%%note,horolog_module_c,comdat\n"                                          \
	".balign 4\n"                                                                                                  \
	".long 8, 16, 1\n"                                                                                             \
	".asciz \"horolog\"\n"                                                                                         \
	".hidden __start_horolog_sites\n"                                                                              \
	".hidden __stop_horolog_sites\n"                                                                               \
	".long __start_horolog_sites - .\n"                                                                            \
	".long __stop_horolog_sites - .\n"                                                                             \
	".long horolog_module_of - .\n"                                                                                \
	".long 1\n"                                                                                                    \
	".popsection\n"                                                                                                \
	".endif\n"

#ifdef HOROLOG_TRIGGER_PORTABLE
#ifdef __aarch64__
#define HOROLOG_SYMBOL_ "S"
#else
#define HOROLOG_SYMBOL_ "i"
#endif
/* An entry whose size of code is 0, then the load and the branch. */
#define HOROLOG_SITE_(event, types, cold)                                                                              \
	do {                                                                                                           \
		__asm__ volatile(".pushsection horolog_sites,\"aR?\",%%progbits\n"                                     \
				 ".balign 4\n"                                                                         \
				 ".long 0\n"                                                                           \
				 ".long %c0 - .\n"                                                                     \
				 ".byte 0, 0\n"                                                                        \
				 ".short 1\n"                                                                          \
				 ".long %c1\n"                                                                         \
				 ".popsection\n" HOROLOG_NOTE_                                                         \
				 :                                                                                     \
				 : HOROLOG_SYMBOL_(&event), "i"(types));                                               \
		if (__builtin_expect(__atomic_load_n(&event.enabled, __ATOMIC_RELAXED) != 0, 0))                       \
			goto cold;                                                                                     \
	} while (0)
#else
/* L0: EB 05 (enabled: EB 00), E9 to the cold block. As bytes, since an assembler would shorten the second jump. */
#define HOROLOG_SITE_(event, types, cold)                                                                              \
	__asm__ goto("77: .byte 0xEB, 5, 0xE9\n"                                                                       \
		     ".long %l[" #cold "] - . - 4\n"                                                                   \
		     ".pushsection horolog_sites,\"aR?\",@progbits\n"                                                  \
		     ".balign 4\n"                                                                                     \
		     "78: .long 77b - 78b\n"                                                                           \
		     ".long %c0 - .\n"                                                                                 \
		     ".byte 5, 7\n"                                                                                    \
		     ".short 1\n"                                                                                      \
		     ".long %c1\n"                                                                                     \
		     ".popsection\n" HOROLOG_NOTE_                                                                     \
		     :                                                                                                 \
		     : "i"(&event), "i"(types)                                                                         \
		     :                                                                                                 \
		     : cold)
#endif

#ifdef __clang__
#define HOROLOG_COLD_
#else
#define HOROLOG_COLD_ __attribute__((cold, unused));
#endif

#ifdef __cplusplus
#define HOROLOG_EVENT_(all, text, user, count, ...)                                                                   \
	struct horolog_here {                                                                                          \
		enum : uint32_t { arguments = count, line = __LINE__ };                                                \
		static constexpr const char *name() { return text; }                                                   \
		static constexpr const char *written() { return all; }                                                 \
		static constexpr const char *file() { return __FILE__; }                                               \
		static constexpr const char *function() { return __PRETTY_FUNCTION__; }                                \
		static constexpr auto call() { return horolog_unheard_; }                                                          \
		static constexpr horolog_callback callback() { return user; }                                          \
		__VA_ARGS__                                                                                            \
	}
#define HOROLOG_THE_EVENT_ (horolog_detail::descriptor<horolog_here>::event)
#else
#define HOROLOG_EVENT_(all, text, user, count, ...)                                                                   \
	static const struct horolog_about horolog_where = { all, __FILE__, __func__, __LINE__, 1 };                    \
	static struct horolog_event horolog_here = { text, horolog_unheard_, user, 0, count, 0, { 0 }, 0, &horolog_where }
#define HOROLOG_THE_EVENT_ horolog_here
#endif

/* ---- the macros ------------------------------------------------------------------------------------------------- */

#if defined(__cplusplus)
#define HOROLOG_NAMED_(name) static_assert(sizeof(name) > 1, "an event has a name")
#else
#define HOROLOG_NAMED_(name) _Static_assert(sizeof(name) > 1, "an event has a name")
#endif
#if defined(__cplusplus)
/* Constants by name, since an operand of asm has to be constant without optimisation too. */
#define HOROLOG_TYPES_WORD_(types) enum : uint32_t { horolog_types = types }
#else
#define HOROLOG_TYPES_WORD_(types) enum { horolog_types = types }
#endif

#if defined(__cplusplus) && defined(__clang__) && __clang_major__ < 17
/* Older clang takes every label of a function for a target of each of its asm goto, and refuses to jump into the scope of
 * a variable. So each has a function to itself, whose result the optimiser makes into the jump. */
#define HOROLOG_BLOCK_(all, cold, name, count, user, types, ...)                                                       \
	do {                                                                                                           \
		HOROLOG_NAMED_(name);                                                                                  \
		HOROLOG_TYPES_WORD_(types);                                                                            \
		HOROLOG_EVENT_(all, name, user, count, static inline __attribute__((always_inline)) bool enabled() {        \
			HOROLOG_SITE_(horolog_detail::descriptor<horolog_here>::event, horolog_types, cold);           \
			return false;                                                                                  \
		cold:                                                                                                  \
			return true;                                                                                   \
		});                                                                                                    \
		if (horolog_here::enabled()) {                                                                         \
			__VA_ARGS__;                                                                                   \
		}                                                                                                      \
	} while (0)
#else
#define HOROLOG_BLOCK_(all, cold, name, count, user, types, ...)                                                       \
	do {                                                                                                           \
		HOROLOG_NAMED_(name);                                                                                  \
		HOROLOG_TYPES_WORD_(types);                                                                            \
		HOROLOG_EVENT_(all, name, user, count, );                                                                   \
		HOROLOG_SITE_(HOROLOG_THE_EVENT_, horolog_types, cold);                                                \
		if (0) {                                                                                               \
		cold:                                                                                                  \
			HOROLOG_COLD_ { __VA_ARGS__; }                                                                 \
		}                                                                                                      \
	} while (0)
#endif
#define HOROLOG_JOIN__(a, b) a##b
#define HOROLOG_JOIN_(a, b) HOROLOG_JOIN__(a, b)
#define HOROLOG_LABEL_ HOROLOG_JOIN_(horolog_cold_, __COUNTER__)
#define HOROLOG_PICK_(a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, chosen, ...) chosen
/* How many arguments follow the first, up to ten. */
#define HOROLOG_COUNT_(...)                                                                                            \
	HOROLOG_PICK_(__VA_ARGS__, over_ten, over_ten, over_ten, over_ten, over_ten, over_ten, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0, 0)

#define HOROLOG_TYPES_1_(a) HOROLOG_TYPE_(a)
#define HOROLOG_TYPES_2_(a, b) HOROLOG_TYPES_1_(a) | HOROLOG_TYPE_(b) << 3
#define HOROLOG_TYPES_3_(a, b, c) HOROLOG_TYPES_2_(a, b) | HOROLOG_TYPE_(c) << 6
#define HOROLOG_TYPES_4_(a, b, c, d) HOROLOG_TYPES_3_(a, b, c) | HOROLOG_TYPE_(d) << 9
#define HOROLOG_TYPES_5_(a, b, c, d, e) HOROLOG_TYPES_4_(a, b, c, d) | HOROLOG_TYPE_(e) << 12
#define HOROLOG_TYPES_6_(a, b, c, d, e, f) HOROLOG_TYPES_5_(a, b, c, d, e) | HOROLOG_TYPE_(f) << 15
#define HOROLOG_TYPES_7_(a, b, c, d, e, f, g) HOROLOG_TYPES_6_(a, b, c, d, e, f) | HOROLOG_TYPE_(g) << 18
#define HOROLOG_TYPES_8_(a, b, c, d, e, f, g, h) HOROLOG_TYPES_7_(a, b, c, d, e, f, g) | HOROLOG_TYPE_(h) << 21
#define HOROLOG_TYPES_9_(a, b, c, d, e, f, g, h, i) HOROLOG_TYPES_8_(a, b, c, d, e, f, g, h) | HOROLOG_TYPE_(i) << 24
#define HOROLOG_TYPES_10_(a, b, c, d, e, f, g, h, i, j) HOROLOG_TYPES_9_(a, b, c, d, e, f, g, h, i) | HOROLOG_TYPE_(j) << 27
#define HOROLOG_WORDS_1_(a) HOROLOG_WORD_(a)
#define HOROLOG_WORDS_2_(a, b) HOROLOG_WORDS_1_(a), HOROLOG_WORD_(b)
#define HOROLOG_WORDS_3_(a, b, c) HOROLOG_WORDS_2_(a, b), HOROLOG_WORD_(c)
#define HOROLOG_WORDS_4_(a, b, c, d) HOROLOG_WORDS_3_(a, b, c), HOROLOG_WORD_(d)
#define HOROLOG_WORDS_5_(a, b, c, d, e) HOROLOG_WORDS_4_(a, b, c, d), HOROLOG_WORD_(e)
#define HOROLOG_WORDS_6_(a, b, c, d, e, f) HOROLOG_WORDS_5_(a, b, c, d, e), HOROLOG_WORD_(f)
#define HOROLOG_WORDS_7_(a, b, c, d, e, f, g) HOROLOG_WORDS_6_(a, b, c, d, e, f), HOROLOG_WORD_(g)
#define HOROLOG_WORDS_8_(a, b, c, d, e, f, g, h) HOROLOG_WORDS_7_(a, b, c, d, e, f, g), HOROLOG_WORD_(h)
#define HOROLOG_WORDS_9_(a, b, c, d, e, f, g, h, i) HOROLOG_WORDS_8_(a, b, c, d, e, f, g, h), HOROLOG_WORD_(i)
#define HOROLOG_WORDS_10_(a, b, c, d, e, f, g, h, i, j) HOROLOG_WORDS_9_(a, b, c, d, e, f, g, h, i), HOROLOG_WORD_(j)

#define HOROLOG_RECORD_(all, name, n, ...)                                                                             \
	HOROLOG_BLOCK_(all, HOROLOG_LABEL_, name, n, NULL, HOROLOG_TYPES_##n##_(__VA_ARGS__),                          \
		       horolog_emit_##n##_(&HOROLOG_THE_EVENT_, HOROLOG_WORDS_##n##_(__VA_ARGS__)))
/* Each gets the whole of the arguments as text first, before a macro in them is expanded. */
#define HOROLOG_TRIGGER_0(all, name)                                                                                   \
	HOROLOG_BLOCK_(all, HOROLOG_LABEL_, name, 0, NULL, 0, horolog_emit_0_(&HOROLOG_THE_EVENT_))
#define HOROLOG_TRIGGER_1(all, name, ...) HOROLOG_RECORD_(all, name, 1, __VA_ARGS__)
#define HOROLOG_TRIGGER_2(all, name, ...) HOROLOG_RECORD_(all, name, 2, __VA_ARGS__)
#define HOROLOG_TRIGGER_3(all, name, ...) HOROLOG_RECORD_(all, name, 3, __VA_ARGS__)
#define HOROLOG_TRIGGER_4(all, name, ...) HOROLOG_RECORD_(all, name, 4, __VA_ARGS__)
#define HOROLOG_TRIGGER_5(all, name, ...) HOROLOG_RECORD_(all, name, 5, __VA_ARGS__)
#define HOROLOG_TRIGGER_6(all, name, ...) HOROLOG_RECORD_(all, name, 6, __VA_ARGS__)
#define HOROLOG_TRIGGER_7(all, name, ...) HOROLOG_RECORD_(all, name, 7, __VA_ARGS__)
#define HOROLOG_TRIGGER_8(all, name, ...) HOROLOG_RECORD_(all, name, 8, __VA_ARGS__)
#define HOROLOG_TRIGGER_9(all, name, ...) HOROLOG_RECORD_(all, name, 9, __VA_ARGS__)
#define HOROLOG_TRIGGER_10(all, name, ...) HOROLOG_RECORD_(all, name, 10, __VA_ARGS__)
#define HOROLOG_TRIGGER_over_ten(...) _Pragma("GCC error \"a trigger takes at most ten arguments\"")

#define HOROLOG_CALL_(all, name, user, n, ...)                                                                         \
	HOROLOG_BLOCK_(all, HOROLOG_LABEL_, name, n, user, HOROLOG_TYPES_##n##_(__VA_ARGS__),                          \
		       horolog_call_##n##_(&HOROLOG_THE_EVENT_, HOROLOG_WORDS_##n##_(__VA_ARGS__)))
#define HOROLOG_CALLBACK_0(all, name, user)                                                                            \
	HOROLOG_BLOCK_(all, HOROLOG_LABEL_, name, 0, user, 0, horolog_call_0_(&HOROLOG_THE_EVENT_))
#define HOROLOG_CALLBACK_1(all, name, user, ...) HOROLOG_CALL_(all, name, user, 1, __VA_ARGS__)
#define HOROLOG_CALLBACK_2(all, name, user, ...) HOROLOG_CALL_(all, name, user, 2, __VA_ARGS__)
#define HOROLOG_CALLBACK_3(all, name, user, ...) HOROLOG_CALL_(all, name, user, 3, __VA_ARGS__)
#define HOROLOG_CALLBACK_4(all, name, user, ...) HOROLOG_CALL_(all, name, user, 4, __VA_ARGS__)
#define HOROLOG_CALLBACK_5(all, name, user, ...) HOROLOG_CALL_(all, name, user, 5, __VA_ARGS__)
#define HOROLOG_CALLBACK_6(all, name, user, ...) HOROLOG_CALL_(all, name, user, 6, __VA_ARGS__)
#define HOROLOG_CALLBACK_7(all, name, user, ...) HOROLOG_CALL_(all, name, user, 7, __VA_ARGS__)
#define HOROLOG_CALLBACK_8(all, name, user, ...) HOROLOG_CALL_(all, name, user, 8, __VA_ARGS__)
#define HOROLOG_CALLBACK_9(all, name, user, ...) HOROLOG_CALL_(all, name, user, 9, __VA_ARGS__)
#define HOROLOG_CALLBACK_10(all, name, user, ...) HOROLOG_CALL_(all, name, user, 10, __VA_ARGS__)
#define HOROLOG_CALLBACK_over_ten(...) HOROLOG_TRIGGER_over_ten()
#define HOROLOG_FIRST_DROPPED_(first, ...) HOROLOG_COUNT_(__VA_ARGS__)

/* HOROLOG_TRIGGER("name", none to ten arguments): records the event. */
#define HOROLOG_TRIGGER(...)                                                                                           \
	HOROLOG_JOIN_(HOROLOG_TRIGGER_, HOROLOG_COUNT_(__VA_ARGS__))(#__VA_ARGS__, __VA_ARGS__)

/* HOROLOG_TRIGGER_CALLBACK("name", function, none to ten arguments): calls a function of yours, a horolog_callback, which
 * may check an invariant; it runs in the context of the site. */
#define HOROLOG_TRIGGER_CALLBACK(...)                                                                                  \
	HOROLOG_JOIN_(HOROLOG_CALLBACK_, HOROLOG_FIRST_DROPPED_(__VA_ARGS__))(#__VA_ARGS__, __VA_ARGS__)

/* ---- spans, counters -------------------------------------------------------------------------------------------- */

/* A span of a thread: from HOROLOG_SPAN_BEGIN("job", arguments...) to HOROLOG_SPAN_END("job", arguments...). Spans nest.
 * They are the events job/begin and job/end, which Perfetto shows as slices and `horolog trace stats` as durations. */
#define HOROLOG_SPAN_BEGIN(...) HOROLOG_SPAN_(begin, #__VA_ARGS__, __VA_ARGS__)
#define HOROLOG_SPAN_END(...) HOROLOG_SPAN_(end, #__VA_ARGS__, __VA_ARGS__)
#define HOROLOG_SPAN_(word, all, ...)                                                                                  \
	HOROLOG_JOIN_(HOROLOG_SPAN_, HOROLOG_COUNT_(__VA_ARGS__))(word, all, __VA_ARGS__)
#define HOROLOG_SPAN_0(word, all, name) HOROLOG_TRIGGER_0(all, name "/" #word)
#define HOROLOG_SPAN_1(word, all, name, ...) HOROLOG_RECORD_(all, name "/" #word, 1, __VA_ARGS__)
#define HOROLOG_SPAN_2(word, all, name, ...) HOROLOG_RECORD_(all, name "/" #word, 2, __VA_ARGS__)
#define HOROLOG_SPAN_3(word, all, name, ...) HOROLOG_RECORD_(all, name "/" #word, 3, __VA_ARGS__)
#define HOROLOG_SPAN_4(word, all, name, ...) HOROLOG_RECORD_(all, name "/" #word, 4, __VA_ARGS__)
#define HOROLOG_SPAN_5(word, all, name, ...) HOROLOG_RECORD_(all, name "/" #word, 5, __VA_ARGS__)
#define HOROLOG_SPAN_6(word, all, name, ...) HOROLOG_RECORD_(all, name "/" #word, 6, __VA_ARGS__)
#define HOROLOG_SPAN_7(word, all, name, ...) HOROLOG_RECORD_(all, name "/" #word, 7, __VA_ARGS__)
#define HOROLOG_SPAN_8(word, all, name, ...) HOROLOG_RECORD_(all, name "/" #word, 8, __VA_ARGS__)
#define HOROLOG_SPAN_9(word, all, name, ...) HOROLOG_RECORD_(all, name "/" #word, 9, __VA_ARGS__)
#define HOROLOG_SPAN_10(word, all, name, ...) HOROLOG_RECORD_(all, name "/" #word, 10, __VA_ARGS__)
#define HOROLOG_SPAN_over_ten(...) HOROLOG_TRIGGER_over_ten()

/* HOROLOG_COUNTER("queue/length", "items", value): a counter's new value and its unit; the event queue/length/counter, which
 * Perfetto draws as a curve, one a process. */
#define HOROLOG_COUNTER(name, unit, value) HOROLOG_TRIGGER(name "/counter", HOROLOG_ARG("value", unit, value))

#ifdef __cplusplus
/* HOROLOG_SPAN("job", arguments...): a span from here to the end of the block. */
#define HOROLOG_SPAN(...) HOROLOG_SPAN_AT_(__COUNTER__, #__VA_ARGS__, __VA_ARGS__)
#define HOROLOG_SPAN_AT_(number, all, ...) HOROLOG_SPAN_HERE_(number, all, __VA_ARGS__)
#define HOROLOG_SPAN_HERE_(number, all, ...)                                                                           \
	HOROLOG_SPAN_(begin, all, __VA_ARGS__);                                                                        \
	struct horolog_span_type_##number {                                                                            \
		~horolog_span_type_##number() { HOROLOG_SPAN_0(end, "", HOROLOG_NAME_(__VA_ARGS__, )); }               \
	} horolog_span_##number
#define HOROLOG_NAME_(name, ...) name
#endif

/* ---- switching from the program itself -------------------------------------------------------------------------- */

/* Enables every site whose name matches `pattern` (`*` any run of characters, `?` one), in all modules. The number of
 * sites, or a negative error: -ENOSYS without a runtime, -EINVAL for an empty pattern, -EPERM where nothing may change
 * code, -EFAULT where a site's bytes are foreign (then nothing was switched). Not for signal handlers. */
static inline __attribute__((unused)) int horolog_trace_enable(const char *pattern)
{
	return horolog_module_of.runtime ? horolog_module_of.runtime->enable(pattern) : -ENOSYS;
}

/* Disables, likewise. */
static inline __attribute__((unused)) int horolog_trace_disable(const char *pattern)
{
	return horolog_module_of.runtime ? horolog_module_of.runtime->disable(pattern) : -ENOSYS;
}

/* Calls `each` for every event: name, types, sites, those of them that are enabled. The number of events, or -ENOSYS. */
static inline __attribute__((unused)) int
horolog_trace_list(void (*each)(void *context, const char *name, const char *types, size_t sites, size_t enabled),
		   void *context)
{
	return horolog_module_of.runtime ? horolog_module_of.runtime->list(each, context) : -ENOSYS;
}

/* A module that is loaded later than the runtime introduces itself. */
static __attribute__((constructor(101), unused)) void horolog_introduce_(void)
{
	if (horolog_trace_refresh)
		horolog_trace_refresh();
}

#endif
