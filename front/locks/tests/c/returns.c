// Every wrapped function with every outcome it can have; prints what it returned, and errno, which must stay as it was.
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <threads.h>
#include <time.h>
#include <unistd.h>

#define SHOW(call)                                                 \
    do {                                                           \
        errno = 77;                                                \
        int outcome = (call);                                      \
        printf("%s = %d, errno %d\n", #call, outcome, errno);      \
    } while (0)

static struct timespec in(clockid_t clock, long ms) {
    struct timespec t;
    clock_gettime(clock, &t);
    t.tv_nsec += ms * 1000000;
    t.tv_sec += t.tv_nsec / 1000000000;
    t.tv_nsec %= 1000000000;
    return t;
}

static struct timespec passed = {1, 0}, invalid = {0, 2000000000};

static pthread_mutex_t kind(int type, int robust, int protocol) {
    pthread_mutex_t mutex;
    pthread_mutexattr_t attributes;
    pthread_mutexattr_init(&attributes);
    pthread_mutexattr_settype(&attributes, type);
    pthread_mutexattr_setrobust(&attributes, robust);
    pthread_mutexattr_setprotocol(&attributes, protocol);
    pthread_mutex_init(&mutex, &attributes);
    return mutex;
}

// Runs a function in a thread of its own, to its end.
static void elsewhere(void *(*function)(void *), void *argument) {
    pthread_t thread;
    pthread_create(&thread, NULL, function, argument);
    pthread_join(thread, NULL);
}

static void *try_mutex(void *mutex) {
    SHOW(pthread_mutex_trylock(mutex));
    SHOW(pthread_mutex_timedlock(mutex, &passed));
    SHOW(pthread_mutex_timedlock(mutex, &invalid));
    SHOW(pthread_mutex_clocklock(mutex, CLOCK_MONOTONIC, &passed));
    SHOW(pthread_mutex_clocklock(mutex, CLOCK_PROCESS_CPUTIME_ID, &passed));
    return NULL;
}

static void *unlock_mutex(void *mutex) {
    SHOW(pthread_mutex_unlock(mutex));
    return NULL;
}

static void *die_holding(void *mutex) {
    SHOW(pthread_mutex_lock(mutex));
    return NULL;
}

static void mutexes(void) {
    pthread_mutex_t normal = PTHREAD_MUTEX_INITIALIZER;
    SHOW(pthread_mutex_lock(&normal));
    elsewhere(try_mutex, &normal);
    SHOW(pthread_mutex_unlock(&normal));
    struct timespec soon = in(CLOCK_REALTIME, 1000);
    SHOW(pthread_mutex_timedlock(&normal, &soon));
    SHOW(pthread_mutex_unlock(&normal));
    pthread_mutex_t checking = kind(PTHREAD_MUTEX_ERRORCHECK, PTHREAD_MUTEX_STALLED, PTHREAD_PRIO_NONE);
    SHOW(pthread_mutex_lock(&checking));
    SHOW(pthread_mutex_lock(&checking));
    elsewhere(unlock_mutex, &checking);
    SHOW(pthread_mutex_unlock(&checking));
    SHOW(pthread_mutex_unlock(&checking));
    pthread_mutex_t recursive = kind(PTHREAD_MUTEX_RECURSIVE, PTHREAD_MUTEX_STALLED, PTHREAD_PRIO_NONE);
    SHOW(pthread_mutex_lock(&recursive));
    SHOW(pthread_mutex_lock(&recursive));
    SHOW(pthread_mutex_trylock(&recursive));
    elsewhere(try_mutex, &recursive);
    SHOW(pthread_mutex_unlock(&recursive));
    SHOW(pthread_mutex_unlock(&recursive));
    SHOW(pthread_mutex_unlock(&recursive));
    SHOW(pthread_mutex_unlock(&recursive));
    pthread_mutex_t adaptive = kind(PTHREAD_MUTEX_ADAPTIVE_NP, PTHREAD_MUTEX_STALLED, PTHREAD_PRIO_NONE);
    SHOW(pthread_mutex_lock(&adaptive));
    elsewhere(try_mutex, &adaptive);
    SHOW(pthread_mutex_unlock(&adaptive));
}

static void robust_mutexes(void) {
    for (int protocol = PTHREAD_PRIO_NONE; protocol <= PTHREAD_PRIO_INHERIT; protocol++) {
        pthread_mutex_t mutex = kind(PTHREAD_MUTEX_NORMAL, PTHREAD_MUTEX_ROBUST, protocol);
        elsewhere(die_holding, &mutex);
        SHOW(pthread_mutex_lock(&mutex));
        SHOW(pthread_mutex_consistent(&mutex));
        SHOW(pthread_mutex_unlock(&mutex));
        elsewhere(die_holding, &mutex);
        SHOW(pthread_mutex_trylock(&mutex));
        SHOW(pthread_mutex_unlock(&mutex));
        SHOW(pthread_mutex_lock(&mutex));
    }
    pthread_mutex_t inheriting = kind(PTHREAD_MUTEX_NORMAL, PTHREAD_MUTEX_STALLED, PTHREAD_PRIO_INHERIT);
    SHOW(pthread_mutex_lock(&inheriting));
    SHOW(pthread_mutex_unlock(&inheriting));
}

static void *try_rwlock(void *lock) {
    SHOW(pthread_rwlock_tryrdlock(lock));
    SHOW(pthread_rwlock_trywrlock(lock));
    SHOW(pthread_rwlock_timedrdlock(lock, &passed));
    SHOW(pthread_rwlock_timedwrlock(lock, &passed));
    SHOW(pthread_rwlock_clockrdlock(lock, CLOCK_MONOTONIC, &passed));
    SHOW(pthread_rwlock_clockwrlock(lock, CLOCK_MONOTONIC, &passed));
    SHOW(pthread_rwlock_clockwrlock(lock, CLOCK_PROCESS_CPUTIME_ID, &passed));
    return NULL;
}

static void rwlocks(void) {
    pthread_rwlock_t lock = PTHREAD_RWLOCK_INITIALIZER;
    SHOW(pthread_rwlock_rdlock(&lock));
    SHOW(pthread_rwlock_rdlock(&lock));
    SHOW(pthread_rwlock_trywrlock(&lock));
    SHOW(pthread_rwlock_unlock(&lock));
    SHOW(pthread_rwlock_unlock(&lock));
    SHOW(pthread_rwlock_wrlock(&lock));
    SHOW(pthread_rwlock_rdlock(&lock));
    elsewhere(try_rwlock, &lock);
    SHOW(pthread_rwlock_unlock(&lock));
    struct timespec soon = in(CLOCK_MONOTONIC, 1000);
    SHOW(pthread_rwlock_clockrdlock(&lock, CLOCK_MONOTONIC, &soon));
    SHOW(pthread_rwlock_unlock(&lock));
}

static void spinlocks(void) {
    pthread_spinlock_t lock;
    pthread_spin_init(&lock, PTHREAD_PROCESS_PRIVATE);
    SHOW(pthread_spin_lock(&lock));
    SHOW(pthread_spin_trylock(&lock));
    SHOW(pthread_spin_unlock(&lock));
    SHOW(pthread_spin_trylock(&lock));
    SHOW(pthread_spin_unlock(&lock));
}

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t condition = PTHREAD_COND_INITIALIZER;
static int said;

static void *say(void *unused) {
    pthread_mutex_lock(&mutex);
    said = 1;
    pthread_cond_broadcast(&condition);
    pthread_mutex_unlock(&mutex);
    return unused;
}

static void conditions(void) {
    SHOW(pthread_mutex_lock(&mutex));
    SHOW(pthread_cond_timedwait(&condition, &mutex, &passed));
    SHOW(pthread_cond_timedwait(&condition, &mutex, &invalid));
    SHOW(pthread_cond_clockwait(&condition, &mutex, CLOCK_MONOTONIC, &passed));
    SHOW(pthread_cond_clockwait(&condition, &mutex, CLOCK_PROCESS_CPUTIME_ID, &passed));
    pthread_t thread;
    pthread_create(&thread, NULL, say, NULL);
    int outcome = 0;
    while (!said && outcome == 0) outcome = pthread_cond_wait(&condition, &mutex);
    printf("woken %d, %d\n", said, outcome);
    SHOW(pthread_mutex_unlock(&mutex));
    pthread_join(thread, NULL);
}

static int c11_elsewhere(void *lock) {
    SHOW(mtx_trylock(lock));
    SHOW(mtx_timedlock(lock, &passed));
    return 0;
}

static void c11(void) {
    mtx_t lock;
    cnd_t signalled;
    thrd_t thread;
    SHOW(mtx_init(&lock, mtx_timed | mtx_recursive));
    SHOW(cnd_init(&signalled));
    SHOW(mtx_lock(&lock));
    SHOW(mtx_trylock(&lock));
    thrd_create(&thread, c11_elsewhere, &lock);
    thrd_join(thread, NULL);
    SHOW(mtx_unlock(&lock));
    SHOW(cnd_timedwait(&signalled, &lock, &passed));
    SHOW(mtx_unlock(&lock));
}

// The second thread gets the lock only after the first has let it go.
static int order[4], next;

static void *second(void *unused) {
    pthread_mutex_lock(&mutex);
    order[next++] = 2;
    pthread_mutex_unlock(&mutex);
    return unused;
}

static void blocking(void) {
    pthread_mutex_lock(&mutex);
    pthread_t thread;
    pthread_create(&thread, NULL, second, NULL);
    usleep(30000);
    order[next++] = 1;
    pthread_mutex_unlock(&mutex);
    pthread_join(thread, NULL);
    printf("order %d %d\n", order[0], order[1]);
}

int main(void) {
    mutexes();
    robust_mutexes();
    rwlocks();
    spinlocks();
    conditions();
    c11();
    blocking();
    return 0;
}
