/* A library with one site. */
#include <horolog/trace.h>

static volatile int passes;

int run(int times);
int run(int times)
{
	for (int i = 0; i < times; i++) {
		HOROLOG_TRIGGER("module/run", i, passes);
		passes++;
	}
	return times;
}

static void find(void *context, const char *name, const char *types, size_t sites, size_t enabled)
{
	(void)name, (void)types, (void)sites;
	*(size_t *)context += enabled;
}

size_t enabled_sites(void);
size_t enabled_sites(void)
{
	size_t sites = 0;
	return horolog_trace_list(find, &sites) < 0 ? 0 : sites;
}
