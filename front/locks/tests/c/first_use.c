#define _GNU_SOURCE
/* Many first uses at once, by threads whose rules differ: exclusion holds, and no thread waits for ever. */
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

enum { THREADS = 4, LOCKS = 20000, SIZE = sizeof(pthread_mutex_t) };

static pthread_mutex_t locks[LOCKS];
static int counts[LOCKS];
static pthread_barrier_t barrier;

__attribute__((noinline)) static int take_plainly(pthread_mutex_t *lock) { return pthread_mutex_lock(lock) * 1; }
__attribute__((noinline)) static int take_inherited(pthread_mutex_t *lock) { return pthread_mutex_lock(lock) * 1; }
__attribute__((noinline)) static int take_raised(pthread_mutex_t *lock)
{
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += 50;
    return pthread_mutex_clocklock(lock, CLOCK_MONOTONIC, &until) * 1;
}
__attribute__((noinline)) static int take_tried(pthread_mutex_t *lock)
{
    while (pthread_mutex_trylock(lock) != 0)
        ;
    return 0;
}

static void *use(void *number)
{
    int (*const take[THREADS])(pthread_mutex_t *) = { take_plainly, take_inherited, take_raised, take_tried };
    long wrong = 0;
    for (int round = 0; round < LOCKS; round++) {
        if (round % 50 == 0)
            pthread_barrier_wait(&barrier);
        wrong += take[(long)number](&locks[round]) != 0;
        counts[round] = counts[round] + 1;
        wrong += pthread_mutex_unlock(&locks[round]) != 0;
    }
    return (void *)wrong;
}

int main(void)
{
    pthread_t threads[THREADS];
    long wrong = 0;
    /* A second life of the same memory: first uses again. */
    for (int life = 0; life < 2; life++) {
        memset(locks, 0, sizeof locks);
        memset(counts, 0, sizeof counts);
        pthread_barrier_init(&barrier, NULL, THREADS);
        for (long i = 0; i < THREADS; i++)
            pthread_create(&threads[i], NULL, use, (void *)i);
        for (int i = 0; i < THREADS; i++) {
            void *found;
            pthread_join(threads[i], &found);
            wrong += (long)found;
        }
        for (int i = 0; i < LOCKS; i++)
            wrong += counts[i] != THREADS;
    }
    printf("wrong %ld, bytes %d\n", wrong, SIZE);
    return 0;
}
