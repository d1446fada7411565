// A filter ends the process at every system call but those of this program, which goes on with an old thread, a new one, a
// child and an end in order. With an argument the filter is set by number, else by name.
#define _GNU_SOURCE
#include "horolog/trace.h"
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define ALLOW(name) \
	BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, __NR_##name, 0, 1), BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_barrier_t both;

static void steps(void)
{
	for (int i = 0; i < 100; i++) {
		pthread_mutex_lock(&lock);
		HOROLOG_TRIGGER("row/step", i);
		pthread_mutex_unlock(&lock);
	}
}

static void *old(void *unused)
{
	pthread_barrier_wait(&both);
	steps();
	return unused;
}

static void *new(void *unused)
{
	steps();
	return unused;
}

static void confine(int by_number)
{
	struct sock_filter rules[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		ALLOW(write), ALLOW(exit), ALLOW(exit_group), ALLOW(futex), ALLOW(rt_sigprocmask), ALLOW(clone),
		ALLOW(clone3), ALLOW(set_robust_list), ALLOW(rseq), ALLOW(wait4), ALLOW(mmap), ALLOW(mprotect),
		ALLOW(madvise),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
	};
	struct sock_fprog program = { sizeof rules / sizeof *rules, rules };
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
		exit(9);
	if (by_number ? syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &program)
		      : prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program))
		exit(9);
}

int main(int argc, char **argv)
{
	pthread_t first, second;
	(void)argv;
	pthread_barrier_init(&both, 0, 2);
	pthread_create(&first, 0, old, 0);
	confine(argc > 1);
	steps();
	pthread_barrier_wait(&both);
	pthread_join(first, 0);
	pthread_create(&second, 0, new, 0);
	pthread_join(second, 0);
	pid_t child = fork();
	if (!child) {
		steps();
		_exit(5);
	}
	int status = 0;
	waitpid(child, &status, 0);
	if (status != 5 << 8)
		return 8;
	(void)!write(1, "filter\n", 7);
	return 7;
}
