// What an enabled trigger must not disturb. Prints one line for each hazard; the same lines enabled and disabled, but for
// those that count.
#include <execinfo.h>
#include <horolog/trace.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int calls, misaligned, deepest, in_handler;

// Overwrites every register that a function may, vectors included, and demands the alignment that the ABI promises.
static void harsh(const horolog_event *, const uint64_t *, uint32_t)
{
	calls++;
	alignas(16) char local[64];
	memset(local, calls, sizeof local);
	if (reinterpret_cast<uintptr_t>(__builtin_frame_address(0)) % 16 != 0)
		misaligned++;
	__asm__ volatile("movaps %%xmm0, (%0)" ::"r"(local) : "memory");
	__asm__ volatile("pcmpeqd %%xmm0, %%xmm0\n pcmpeqd %%xmm1, %%xmm1\n pcmpeqd %%xmm2, %%xmm2\n pcmpeqd %%xmm3, %%xmm3\n"
			 "pcmpeqd %%xmm4, %%xmm4\n pcmpeqd %%xmm5, %%xmm5\n pcmpeqd %%xmm6, %%xmm6\n pcmpeqd %%xmm7, %%xmm7\n"
			 "pcmpeqd %%xmm8, %%xmm8\n pcmpeqd %%xmm9, %%xmm9\n pcmpeqd %%xmm10, %%xmm10\n"
			 "pcmpeqd %%xmm11, %%xmm11\n pcmpeqd %%xmm12, %%xmm12\n pcmpeqd %%xmm13, %%xmm13\n"
			 "pcmpeqd %%xmm14, %%xmm14\n pcmpeqd %%xmm15, %%xmm15\n mov $-1, %%rax\n mov %%rax, %%rcx\n"
			 "mov %%rax, %%rdx\n mov %%rax, %%rsi\n mov %%rax, %%rdi\n mov %%rax, %%r8\n mov %%rax, %%r9\n"
			 "mov %%rax, %%r10\n mov %%rax, %%r11\n" ::
				 : "rax", "rcx", "rdx", "rsi", "rdi", "r8", "r9", "r10", "r11", "xmm0", "xmm1", "xmm2", "xmm3",
				   "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9", "xmm10", "xmm11", "xmm12", "xmm13", "xmm14",
				   "xmm15", "memory", "cc");
}

// A leaf whose locals live below the stack pointer where the compiler uses the red zone.
__attribute__((noinline)) static uint64_t leaf(uint64_t seed)
{
	volatile uint64_t red[12];
	for (int i = 0; i < 12; i++)
		red[i] = seed * (i + 1);
	HOROLOG_TRIGGER_CALLBACK("hazard/red-zone", harsh, seed);
	uint64_t sum = 0;
	for (int i = 0; i < 12; i++)
		sum = sum * 31 + red[i];
	return sum;
}

__attribute__((noinline)) static double vectors(const double *p, int n)
{
	double a = 1, b = 2, c = 3, d = 4;
	float e = 5, f = 6;
	for (int i = 0; i < n; i++) {
		a += p[i], b -= p[i] * a, c += b / 3, d *= 1.0001, e += 0.5f, f -= e;
		HOROLOG_TRIGGER_CALLBACK("hazard/vectors", harsh, a, e, i, i > 3);
	}
	return a + b + c + d + e + f;
}

__attribute__((noinline)) static int throws(int depth)
{
	HOROLOG_TRIGGER_CALLBACK("hazard/unwind", harsh, depth);
	if (depth == 0)
		throw 42;
	const int below = throws(depth - 1);
	HOROLOG_TRIGGER_CALLBACK("hazard/unwind", harsh, depth);
	return below + 1;
}

static void refuses(const horolog_event *, const uint64_t *words, uint32_t)
{
	if (words[0] == 3)
		throw 7;
}

__attribute__((noinline)) static int invariant(int depth)
{
	struct Witness {
		~Witness() { in_handler++; }
	} witness;
	HOROLOG_TRIGGER_CALLBACK("hazard/invariant", refuses, depth);
	return depth == 9 ? 9 : invariant(depth + 1) + 0 * depth;
}

static void looks_up(const horolog_event *, const uint64_t *, uint32_t)
{
	void *frames[64];
	deepest = backtrace(frames, 64);
}

__attribute__((noinline)) static int nested(int depth)
{
	if (depth == 0)
		HOROLOG_TRIGGER_CALLBACK("hazard/backtrace", looks_up, depth);
	else
		depth += nested(depth - 1);
	__asm__ volatile("" : "+r"(depth));
	return depth;
}

static void handler(int)
{
	HOROLOG_TRIGGER("hazard/handler", in_handler);
	HOROLOG_TRIGGER_CALLBACK("hazard/handler", harsh, in_handler);
}

static void interrupted(const horolog_event *, const uint64_t *, uint32_t)
{
	raise(SIGUSR1);
}

int main(int argc, char **)
{
	const double p[] = { 1.5, 2.5, 3.5, 4.5, 5.5, 6.5, 7.5, 8.5 };
	printf("leaf %llx\n", static_cast<unsigned long long>(leaf(argc + 1000)));
	printf("vectors %.12g\n", vectors(p, 8));
	try {
		printf("unwound %d\n", throws(5));
	} catch (int thrown) {
		printf("unwound %d\n", thrown);
	}
	try {
		printf("invariant %d\n", invariant(0));
	} catch (int thrown) {
		printf("invariant broken %d\n", thrown);
	}
	printf("left %d\n", in_handler);
	nested(20);
	printf("backtrace %s\n", deepest == 0 ? "none" : deepest > 20 ? "whole" : "short");
	signal(SIGUSR1, handler);
	HOROLOG_TRIGGER_CALLBACK("hazard/interrupted", interrupted);
	printf("calls %d misaligned %d\n", calls, misaligned);
	return 0;
}
