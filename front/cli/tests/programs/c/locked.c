// Locks all its memory, as real-time programs do, and says how much that was: no session and no table of ours is in it. What comes later is locked,
// too, and a call that succeeds leaves errno alone.
#include "horolog/trace.h"
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void work(void)
{
	for (int i = 0; i < 50; i++) {
		pthread_mutex_lock(&lock);
		HOROLOG_TRIGGER("row/step", i);
		pthread_mutex_unlock(&lock);
	}
}

static long locked_kib(void)
{
	char line[256];
	long kib = -1;
	FILE *status = fopen("/proc/self/status", "r");
	while (status && fgets(line, sizeof line, status))
		if (sscanf(line, "VmLck: %ld", &kib) == 1)
			break;
	if (status)
		fclose(status);
	return kib;
}

int main(void)
{
	work();
	errno = EDOM;
	int result = mlockall(MCL_CURRENT | MCL_FUTURE);
	int is_left_alone = errno == EDOM;
	long now = locked_kib();
	char *later = mmap(NULL, 1 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	long more = locked_kib() - now;
	work();
	printf("%d %d %d %d\n", result, is_left_alone, now > 1024 && now < 4608, later != MAP_FAILED && more >= 1024);
	return 7;
}
