// Forbids itself the time-stamp counter after 100 steps; a child of fork goes on below that.
#include "horolog/trace.h"
#include <pthread.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void steps(void)
{
	for (int i = 0; i < 100; i++) {
		pthread_mutex_lock(&lock);
		HOROLOG_TRIGGER("row/step", i);
		pthread_mutex_unlock(&lock);
	}
}

static void *work(void *unused)
{
	steps();
	return unused;
}

int main(void)
{
	pthread_t thread;
	steps();
	if (prctl(PR_SET_TSC, PR_TSC_SIGSEGV))
		return 9;
	steps();
	pthread_create(&thread, 0, work, 0);
	pthread_join(thread, 0);
	pid_t child = fork();
	if (!child) {
		steps();
		_exit(5);
	}
	int status = 0;
	waitpid(child, &status, 0);
	if (status != 5 << 8)
		return 8;
	(void)!write(1, "counter\n", 8);
	return 7;
}
