/* Three threads on one processor that share a bus, written without a thought of priorities: a plain mutex, initialised
 * statically. The least important one holds it when the most important one asks, and the middle one, which uses nothing, is
 * ready meanwhile.
 *
 *     cc -g -pthread legacy.c -o legacy
 *     horolog run --locks locks.toml -- ./legacy
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { LOG = 10, VIDEO = 20, CONTROL = 30, STARTER = 40 };

static pthread_mutex_t bus = PTHREAD_MUTEX_INITIALIZER;
static atomic_int log_holds_the_bus, video_is_done;

static long long now(clockid_t clock)
{
    struct timespec time;
    clock_gettime(clock, &time);
    return time.tv_sec * 1000000000LL + time.tv_nsec;
}

/* Executes so long, however often it is preempted. */
static void work(long milliseconds)
{
    long long end = now(CLOCK_THREAD_CPUTIME_ID) + milliseconds * 1000000LL;
    while (now(CLOCK_THREAD_CPUTIME_ID) < end)
        ;
}

static void bus_write(long milliseconds)
{
    pthread_mutex_lock(&bus);
    log_holds_the_bus = 1;
    work(milliseconds);
    pthread_mutex_unlock(&bus);
}

static void *log_thread(void *nothing)
{
    bus_write(20);
    return nothing;
}

static void *video_thread(void *nothing)
{
    work(200);
    video_is_done = 1;
    return nothing;
}

static void *control_thread(void *nothing)
{
    /* As one that waits for its period. */
    const struct timespec moment = { .tv_nsec = 1000000 };
    nanosleep(&moment, NULL);
    long long asked = now(CLOCK_MONOTONIC);
    int found_taken = pthread_mutex_trylock(&bus) != 0;
    if (found_taken)
        pthread_mutex_lock(&bus);
    long long waited = now(CLOCK_MONOTONIC) - asked;
    int after_video = video_is_done;
    pthread_mutex_unlock(&bus);
    printf("control: found the bus %s, waited for video: %s\n", found_taken ? "taken" : "free", after_video ? "yes" : "no");
    fprintf(stderr, "control waited %lld us\n", waited / 1000);
    return nothing;
}

static void be(int priority, int processor)
{
    struct sched_param parameters = { .sched_priority = priority };
    cpu_set_t processors;
    CPU_ZERO(&processors);
    CPU_SET(processor, &processors);
    int error = pthread_setaffinity_np(pthread_self(), sizeof processors, &processors);
    if (!error)
        error = pthread_setschedparam(pthread_self(), SCHED_FIFO, &parameters);
    if (error) {
        fprintf(stderr, "SCHED_FIFO %d on processor %d: %s\n", priority, processor, strerror(error));
        exit(3);
    }
}

static pthread_t start(void *(*thread)(void *), int priority)
{
    struct sched_param parameters = { .sched_priority = priority };
    pthread_attr_t attributes;
    pthread_t started;
    pthread_attr_init(&attributes);
    pthread_attr_setinheritsched(&attributes, PTHREAD_EXPLICIT_SCHED);
    pthread_attr_setschedpolicy(&attributes, SCHED_FIFO);
    pthread_attr_setschedparam(&attributes, &parameters);
    int error = pthread_create(&started, &attributes, thread, NULL);
    if (error) {
        fprintf(stderr, "pthread_create: %s\n", strerror(error));
        exit(3);
    }
    return started;
}

int main(int count, char **words)
{
    const struct timespec moment = { .tv_nsec = 1000000 };
    be(STARTER, count > 1 ? atoi(words[1]) : 0);
    pthread_t log = start(log_thread, LOG);
    while (!log_holds_the_bus)
        nanosleep(&moment, NULL);
    /* Both begin once this thread waits. */
    pthread_t control = start(control_thread, CONTROL);
    pthread_t video = start(video_thread, VIDEO);
    pthread_join(control, NULL);
    pthread_join(video, NULL);
    pthread_join(log, NULL);
    return 0;
}
