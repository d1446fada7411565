/* A site whose first byte is the last of a cache line, and whose second begins the next. */
#include <horolog/trace.h>

static volatile int passes;

int run_across(int times);
int run_across(int times)
{
	for (int i = 0; i < times; i++) {
		__asm__ volatile(".balign 64, 0x90\n .skip 63, 0x90");
		HOROLOG_TRIGGER("across/run", i, passes);
		passes++;
	}
	return times;
}
