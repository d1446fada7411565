/* Task code that deceives: each function is one lie of the catalogue. The tests build it with
 *
 *     cc -O2 -shared -fPIC -pthread -I front/capi/include -o libbodies.so tests/lies/bodies.c
 */
#define _GNU_SOURCE
#include "horolog.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define US 1000ull
#define MS 1000000ull

static uint64_t thread_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (uint64_t)now.tv_sec * 1000 * MS + (uint64_t)now.tv_nsec;
}

/* Executes for so long. */
static void spin(uint64_t ns)
{
    uint64_t end = thread_ns() + ns;
    while (thread_ns() < end) {
    }
}

static void nap(uint64_t ns)
{
    struct timespec span = {(time_t)(ns / (1000 * MS)), (long)(ns % (1000 * MS))};
    nanosleep(&span, NULL);
}

static void to_class(int policy, int priority)
{
    struct sched_param param = {.sched_priority = priority};
    sched_setscheduler(0, policy, &param);
}

/* No address of this process. */
static volatile int *volatile nowhere = (volatile int *)8;

/* From this job on a body lies; before it is honest. */
#define FIRST_LIE 10

static int lies(const horolog_job *job) { return horolog_job_number(job) >= FIRST_LIE; }

/* What an honest job does. */
int honest(horolog_job *job)
{
    (void)job;
    spin(500 * US);
    return 0;
}

/* Executes longer than its wcet of 1 ms. */
int longer(horolog_job *job)
{
    spin(lies(job) ? 1500 * US : 500 * US);
    return 0;
}

/* Executes so long that less important tasks miss. */
int much_longer(horolog_job *job)
{
    spin(lies(job) ? 9 * MS : 500 * US);
    return 0;
}

/* One job of twenty executes for longer than its wcet. */
int rarely_longer(horolog_job *job)
{
    spin(horolog_job_number(job) % 20 == 19 ? 3 * MS : 500 * US);
    return 0;
}

/* Executes a little longer with each job. */
int ever_longer(horolog_job *job)
{
    spin(500 * US + horolog_job_number(job) * 40 * US);
    return 0;
}

/* Never ends. */
int never_ends(horolog_job *job)
{
    if (lies(job)) {
        for (;;) {
            __asm__ volatile("" ::: "memory");
        }
    }
    return honest(job);
}

/* Waits for what never comes. */
int waits_for_ever(horolog_job *job)
{
    if (lies(job)) {
        int ends[2];
        char byte;
        if (pipe(ends) == 0) {
            while (read(ends[0], &byte, 1) != 1) {
            }
        }
    }
    return honest(job);
}

int calls_exit(horolog_job *job)
{
    if (lies(job)) {
        exit(0);
    }
    return honest(job);
}

int calls_exit_at_once(horolog_job *job)
{
    if (lies(job)) {
        _exit(0);
    }
    return honest(job);
}

int becomes_another_program(horolog_job *job)
{
    if (lies(job)) {
        execl("/bin/true", "true", (char *)NULL);
    }
    return honest(job);
}

int crashes(horolog_job *job)
{
    if (lies(job)) {
        *nowhere = 1;
    }
    return honest(job);
}

int aborts(horolog_job *job)
{
    if (lies(job)) {
        abort();
    }
    return honest(job);
}

int kills_its_process(horolog_job *job)
{
    if (lies(job)) {
        kill(getpid(), SIGKILL);
    }
    return honest(job);
}

int ends_its_thread(horolog_job *job)
{
    if (lies(job)) {
        pthread_exit(NULL);
    }
    return honest(job);
}

/* Goes to CPU 0. */
int moves(horolog_job *job)
{
    if (lies(job)) {
        cpu_set_t set;
        CPU_ZERO(&set);
        CPU_SET(0, &set);
        sched_setaffinity(0, sizeof set, &set);
    }
    return honest(job);
}

/* Leaves real-time scheduling. */
int becomes_ordinary(horolog_job *job)
{
    if (lies(job)) {
        to_class(SCHED_OTHER, 0);
    }
    return honest(job);
}

/* A less important task puts itself above every other one while it executes. */
int raises_itself(horolog_job *job)
{
    if (lies(job)) {
        to_class(SCHED_FIFO, 98);
        spin(3 * MS);
        return 0;
    }
    return honest(job);
}

/* Puts itself below every other task while it executes. */
int lowers_itself(horolog_job *job)
{
    if (lies(job)) {
        to_class(SCHED_FIFO, 5);
        spin(MS / 2);
        return 0;
    }
    return honest(job);
}

/* Sleeps within its job, which no file says. */
int sleeps(horolog_job *job)
{
    spin(200 * US);
    if (lies(job)) {
        nap(3 * MS);
    }
    spin(200 * US);
    return 0;
}

int stops_itself(horolog_job *job)
{
    if (lies(job) && horolog_job_number(job) % 10 == 0) {
        /* Somebody outside continues it. */
        kill(getpid(), SIGSTOP);
    }
    return honest(job);
}

static void *hog(void *length)
{
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(1, &set);
    sched_setaffinity(0, sizeof set, &set);
    to_class(SCHED_FIFO, 99);
    spin((uint64_t)(uintptr_t)length);
    return NULL;
}

/* Starts a thread of its own that is more important than every task. */
int starts_a_thread(horolog_job *job)
{
    if (lies(job) && horolog_job_number(job) % 5 == 0) {
        pthread_t thread;
        if (pthread_create(&thread, NULL, hog, (void *)(uintptr_t)(8 * MS)) == 0) {
            pthread_detach(thread);
        }
    }
    return honest(job);
}

/* Starts a process that is more important than every task. */
int starts_a_process(horolog_job *job)
{
    if (horolog_job_number(job) == FIRST_LIE && fork() == 0) {
        signal(SIGALRM, SIG_DFL);
        alarm(2);
        for (int i = 0; i < 10; i++) {
            hog((void *)(uintptr_t)(8 * MS));
            nap(20 * MS);
        }
        _exit(0);
    }
    return honest(job);
}

/* A deferred job of two segments that passes no preemption point. */
int passes_no_point(horolog_job *job)
{
    (void)job;
    spin(4 * MS);
    return 0;
}

/* A deferred job whose first segment is longer than the file says; the whole job is not. */
int long_segment(horolog_job *job)
{
    spin(lies(job) ? 3500 * US : 1500 * US);
    horolog_preemption_point(job, 1);
    spin(500 * US);
    return 0;
}

/* A preemptive job that makes itself non-preemptible. */
int not_preemptible(horolog_job *job)
{
    if (lies(job)) {
        horolog_set_preemptible(job, 0);
    }
    spin(3 * MS);
    return 0;
}

/* Locks the one within the other, which the file does not. */
int nests_what_is_apart(horolog_job *job)
{
    horolog_lock(job, "map");
    spin(100 * US);
    if (lies(job)) {
        horolog_lock(job, "log");
    }
    spin(100 * US);
    horolog_unlock(job, "map");
    if (!lies(job)) {
        horolog_lock(job, "log");
    }
    spin(100 * US);
    horolog_unlock(job, "log");
    return 0;
}

/* Locks so often that not every record finds a place. */
int locks_often(horolog_job *job)
{
    for (int i = 0; i < (lies(job) ? 4000 : 1); i++) {
        horolog_lock(job, "map");
        horolog_unlock(job, "map");
    }
    return honest(job);
}

/* Keeps the resource for longer than the file says. */
int long_section(horolog_job *job)
{
    horolog_lock(job, "map");
    spin(lies(job) ? 3 * MS : 300 * US);
    horolog_unlock(job, "map");
    return 0;
}

/* Ends its job with the resource locked. */
int leaves_it_locked(horolog_job *job)
{
    horolog_lock(job, "map");
    spin(300 * US);
    if (!lies(job)) {
        horolog_unlock(job, "map");
    }
    return 0;
}

/* Blocks every signal, that of a server's budget too. */
int blocks_signals(horolog_job *job)
{
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, NULL);
    spin(lies(job) ? 6 * MS : 500 * US);
    return 0;
}

/* Writes to standard output, where the result stands under --format json. */
int prints(horolog_job *job)
{
    printf("{\"closing\": {\"word\": \"holds\", \"exit\": 0}}\n");
    fflush(stdout);
    return honest(job);
}

/* Closes every descriptor but the standard ones. */
int closes_descriptors(horolog_job *job)
{
    if (horolog_job_number(job) == FIRST_LIE) {
        syscall(SYS_close_range, 3u, ~0u, 0u);
    }
    return honest(job);
}

/* Makes calls that only its own thread may make from another one. */
static void *borrowed(void *job)
{
    horolog_set_preemptible(job, 0);
    horolog_lock(job, "map");
    horolog_publish(job, "link", job, 8);
    (void)horolog_executed_ns(job);
    return NULL;
}

int lends_its_handle(horolog_job *job)
{
    pthread_t thread;
    if (lies(job) && pthread_create(&thread, NULL, borrowed, job) == 0) {
        pthread_join(thread, NULL);
    }
    return honest(job);
}

/* Uses the handle of a job that is over. */
static horolog_job *kept;

int keeps_its_handle(horolog_job *job)
{
    if (lies(job) && kept != NULL) {
        (void)horolog_executed_ns(kept);
        horolog_lock(kept, "map");
    }
    kept = job;
    return honest(job);
}

/* Before the start. */
int init_fails(int argc, const char *const *argv, void **state)
{
    (void)argc, (void)argv, (void)state;
    return 7;
}

int init_crashes(int argc, const char *const *argv, void **state)
{
    (void)argc, (void)argv, (void)state;
    *nowhere = 1;
    return 0;
}

int init_exits(int argc, const char *const *argv, void **state)
{
    (void)argc, (void)argv, (void)state;
    exit(0);
}

int init_never_ends(int argc, const char *const *argv, void **state)
{
    (void)argc, (void)argv, (void)state;
    for (;;) {
        nap(10 * MS);
    }
}

/* After the last job. */
void exit_crashes(void *state)
{
    (void)state;
    *nowhere = 1;
}

void exit_exits(void *state)
{
    (void)state;
    exit(0);
}
