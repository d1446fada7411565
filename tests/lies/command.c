/* A program that a `command` body starts: it executes and sleeps, honestly or not.
 *
 *     command PERIOD_US EXECUTES_US [exit|crash|spin|child|teardown JOBS]
 *
 * After JOBS jobs it exits with status 3, crashes, never sleeps again, or leaves its work to a child process.
 */
#define _GNU_SOURCE
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static uint64_t ns_of(clockid_t clock)
{
    struct timespec now;
    clock_gettime(clock, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static void spin(uint64_t ns)
{
    uint64_t end = ns_of(CLOCK_THREAD_CPUTIME_ID) + ns;
    while (ns_of(CLOCK_THREAD_CPUTIME_ID) < end) {
    }
}

int main(int argc, char **argv)
{
    uint64_t period = argc > 1 ? strtoull(argv[1], NULL, 10) * 1000 : 20000000;
    uint64_t executes = argc > 2 ? strtoull(argv[2], NULL, 10) * 1000 : 500000;
    const char *end = argc > 3 ? argv[3] : "";
    unsigned long jobs = argc > 4 ? strtoul(argv[4], NULL, 10) : 0;
    uint64_t next = ns_of(CLOCK_MONOTONIC);
    for (unsigned long job = 0;; job++) {
        if (*end != '\0' && job == jobs) {
            if (strcmp(end, "exit") == 0) {
                return 3;
            }
            if (strcmp(end, "crash") == 0) {
                abort();
            }
            if (strcmp(end, "spin") == 0) {
                alarm(10);
                for (;;) {
                    __asm__ volatile("" ::: "memory");
                }
            }
            if (strcmp(end, "child") == 0 && fork() != 0) {
                return 0;
            }
            alarm(10);
        }
        next += period;
        struct timespec at = {(time_t)(next / 1000000000u), (long)(next % 1000000000u)};
        clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, NULL);
        spin(executes);
    }
}
