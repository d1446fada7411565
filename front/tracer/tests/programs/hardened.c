/* A system that refuses to write to code through the kernel, and to synchronise cores: seccomp stands in for it. */
#include <errno.h>
#include <fcntl.h>
#include <horolog/trace.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

static int calls;
static void count(const struct horolog_event *event, const uint64_t *words, uint32_t number)
{
	(void)event, (void)words, (void)number;
	calls++;
}

__attribute__((noinline)) static void site(void) { HOROLOG_TRIGGER_CALLBACK("hardened/site", count); }

/* No file opens for reading and writing, membarrier does not exist. */
static int harden(void)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_membarrier, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_openat, 0, 4),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[2])),
		BPF_STMT(BPF_ALU | BPF_AND | BPF_K, O_ACCMODE),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, O_RDWR, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EACCES),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = { sizeof code / sizeof code[0], code };
	return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
}

/* A process that denies itself memory that is or becomes both writable and executable (PR_SET_MDWE). */
static int without_writable_code(void)
{
	if (prctl(65, 1, 0, 0, 0)) {
		printf("SKIPPED: no PR_SET_MDWE here\n");
		return 0;
	}
	const char *methods[] = { "kernel", "remap" };
	for (int i = 0; i < 2; i++) {
		setenv("HOROLOG_TRACE_SWITCH", methods[i], 1);
		printf("%s enabled %d\n", methods[i], horolog_trace_enable("hardened/*"));
		site();
		horolog_trace_disable("hardened/*");
		site();
		printf("calls %d\n", calls);
	}
	return 0;
}

int main(int argc, char **argv)
{
	(void)argv;
	if (argc > 1)
		return without_writable_code();
	if (harden()) {
		printf("SKIPPED: no seccomp here\n");
		return 0;
	}
	printf("enabled %d\n", horolog_trace_enable("hardened/*"));
	site();
	printf("calls %d\n", calls);
	horolog_trace_disable("hardened/*");
	site();
	char line[512];
	int replaced = 0;
	FILE *maps = fopen("/proc/self/maps", "r");
	while (maps && fgets(line, sizeof line, maps))
		replaced |= strstr(line, "horolog-text") != NULL;
	printf("replaced %s\n", replaced ? "yes" : "no");
	/* Told to use the kernel alone, it says no. */
	setenv("HOROLOG_TRACE_SWITCH", "kernel", 1);
	printf("kernel refused %d\n", horolog_trace_enable("hardened/*"));
	site();
	printf("calls %d\n", calls);
	return 0;
}
