// Forbids itself every system call but read, write, exit and sigreturn; the kernel forbids the time-stamp counter with them.
#define _GNU_SOURCE
#include "horolog/trace.h"
#include <linux/seccomp.h>
#include <pthread.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void step(int i)
{
	pthread_mutex_lock(&lock);
	HOROLOG_TRIGGER("row/step", i);
	pthread_mutex_unlock(&lock);
}

int main(void)
{
	for (int i = 0; i < 100; i++)
		step(i);
	if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT))
		return 9;
	for (int i = 0; i < 100; i++)
		step(i);
	(void)!write(1, "strict\n", 7);
	syscall(SYS_exit, 7);
}
