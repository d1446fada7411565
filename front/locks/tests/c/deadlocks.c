// Waits that only a time-out ends: cycles, owners that are none of this process, owners that ended. Prints what each
// call returned, which is the same without a protocol.
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <threads.h>
#include <time.h>
#include <unistd.h>

static const int kinds[] = {PTHREAD_MUTEX_NORMAL, PTHREAD_MUTEX_RECURSIVE, PTHREAD_MUTEX_ERRORCHECK, PTHREAD_MUTEX_ADAPTIVE_NP};
static pthread_mutex_t a, b;
static pthread_barrier_t both;

static pthread_mutex_t of_kind(int kind) {
    pthread_mutex_t mutex;
    pthread_mutexattr_t attributes;
    pthread_mutexattr_init(&attributes);
    pthread_mutexattr_settype(&attributes, kind);
    pthread_mutex_init(&mutex, &attributes);
    return mutex;
}

static int timed(pthread_mutex_t *mutex, clockid_t clock, long ms) {
    struct timespec t;
    clock_gettime(clock, &t);
    t.tv_nsec += ms * 1000000;
    t.tv_sec += t.tv_nsec / 1000000000;
    t.tv_nsec %= 1000000000;
    int kept = errno = 77;
    int outcome = clock == CLOCK_REALTIME ? pthread_mutex_timedlock(mutex, &t) : pthread_mutex_clocklock(mutex, clock, &t);
    return errno == kept ? outcome : -errno;
}

static struct { clockid_t clock; long other_ms, own_ms; int other, own, closes_late; } cross;

static void *other_side(void *unused) {
    pthread_mutex_lock(&a);
    pthread_barrier_wait(&both);
    usleep(cross.closes_late ? 0 : 60000);
    cross.other = timed(&b, cross.clock, cross.other_ms);
    if (cross.other == 0) pthread_mutex_unlock(&b);
    pthread_mutex_unlock(&a);
    return unused;
}

// Each holds one and asks for the other's: who gives up first lets the other one have it.
static void cross_lock(int kind, clockid_t clock, long other_ms, long own_ms, int closes_late) {
    a = of_kind(kind), b = of_kind(kind);
    cross.clock = clock, cross.other_ms = other_ms, cross.own_ms = own_ms, cross.closes_late = closes_late;
    pthread_barrier_init(&both, NULL, 2);
    pthread_t thread;
    pthread_create(&thread, NULL, other_side, NULL);
    pthread_mutex_lock(&b);
    pthread_barrier_wait(&both);
    usleep(closes_late ? 60000 : 0);
    cross.own = own_ms ? timed(&a, clock, own_ms) : pthread_mutex_lock(&a);
    if (cross.own == 0) pthread_mutex_unlock(&a);
    pthread_mutex_unlock(&b);
    pthread_join(thread, NULL);
    printf("cross %d %d late %d: other %d own %d, then", kind, clock, closes_late, cross.other, cross.own);
    printf(" %d", pthread_mutex_trylock(&a)), printf(" %d", pthread_mutex_trylock(&b));
    printf(" %d", pthread_mutex_unlock(&a)), printf(" %d\n", pthread_mutex_unlock(&b));
}

static void *hold(void *unused) {
    pthread_mutex_lock(&a);
    pthread_barrier_wait(&both);
    usleep(150000);
    pthread_mutex_unlock(&a);
    return unused;
}

// A child has a copy of what a thread of its parent holds: nobody unlocks it there, also when the parent's does.
static void in_a_child(int kind) {
    a = of_kind(kind);
    pthread_barrier_init(&both, NULL, 2);
    pthread_t thread;
    pthread_create(&thread, NULL, hold, NULL);
    pthread_barrier_wait(&both);
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        printf("child %d: %d", kind, timed(&a, CLOCK_REALTIME, 30));
        printf(" %d %d", timed(&a, CLOCK_MONOTONIC, 200), pthread_mutex_trylock(&a));
        pthread_mutex_t own = of_kind(kind);
        printf(", own %d", timed(&own, CLOCK_REALTIME, 30)), printf(" %d\n", pthread_mutex_unlock(&own));
        fflush(stdout);
        _exit(7);
    }
    int status;
    waitpid(child, &status, 0);
    pthread_join(thread, NULL);
    printf("status %x, then %d\n", status, pthread_mutex_lock(&a));
}

static void *end_holding(void *unused) {
    pthread_mutex_lock(&a);
    pthread_barrier_wait(&both);
    usleep(60000);
    return unused;
}

static void *wait_for_it(void *outcome) {
    *(int *)outcome = timed(&a, CLOCK_REALTIME, 120);
    return NULL;
}

// The owner ends with two threads waiting: nobody gets it.
static void owner_ends(int kind) {
    a = of_kind(kind);
    pthread_barrier_init(&both, NULL, 2);
    pthread_t owner, waiters[2];
    int outcomes[2];
    pthread_create(&owner, NULL, end_holding, NULL);
    pthread_barrier_wait(&both);
    for (int i = 0; i < 2; i++) pthread_create(&waiters[i], NULL, wait_for_it, &outcomes[i]);
    pthread_join(owner, NULL);
    for (int i = 0; i < 2; i++) pthread_join(waiters[i], NULL);
    printf("ended %d: %d %d, then %d", kind, outcomes[0], outcomes[1], timed(&a, CLOCK_MONOTONIC, 20));
    printf(" %d", pthread_mutex_trylock(&a)), printf(" %d\n", pthread_mutex_trylock(&a));
    // Without anybody waiting.
    a = of_kind(kind);
    pthread_create(&owner, NULL, end_holding, NULL);
    pthread_barrier_wait(&both);
    pthread_join(owner, NULL);
    printf("left %d: %d", kind, timed(&a, CLOCK_REALTIME, 20)), printf(" %d\n", pthread_mutex_trylock(&a));
}

static int c11_side(void *lock) {
    struct timespec passed = {1, 0};
    printf("mtx %d %d\n", mtx_timedlock(lock, &passed) == thrd_timedout, mtx_trylock(lock) == thrd_busy);
    return 0;
}

// Times before and beyond all clocks, of a mutex that is held, by its holder and by another thread.
static void *odd_times(void *mutex) {
    struct timespec times[] = {{-1, 0}, {-1, 2000000000}, {0, -1}, {0, 1000000000}, {1, 999999999}};
    printf("times");
    for (int i = 0; i < 5; i++) {
        printf(" %d", pthread_mutex_timedlock(mutex, &times[i]));
        printf(" %d", pthread_mutex_clocklock(mutex, CLOCK_MONOTONIC, &times[i]));
    }
    printf(" %d\n", pthread_mutex_clocklock(mutex, CLOCK_MONOTONIC_RAW, &times[4]));
    return NULL;
}

int main(void) {
    setbuf(stdout, NULL);
    for (int i = 0; i < 4; i++) {
        // Whoever closes the cycle is refused by the kernel: once it is the one that gives up first, once the other.
        for (int late = 0; late < 2; late++) {
            cross_lock(kinds[i], CLOCK_REALTIME, 400, 150, late);
            cross_lock(kinds[i], CLOCK_MONOTONIC, 150, 400, late);
        }
        cross_lock(kinds[i], CLOCK_REALTIME, 150, 0, 1);
        in_a_child(kinds[i]);
        owner_ends(kinds[i]);
        a = of_kind(kinds[i]);
        pthread_mutex_lock(&a);
        odd_times(&a);
        pthread_t thread;
        pthread_create(&thread, NULL, odd_times, &a);
        pthread_join(thread, NULL);
        printf("unlock %d\n", pthread_mutex_unlock(&a));
    }
    mtx_t lock;
    thrd_t side;
    mtx_init(&lock, mtx_timed | mtx_recursive);
    mtx_lock(&lock);
    thrd_create(&side, c11_side, &lock);
    thrd_join(side, NULL);
    mtx_unlock(&lock);
    printf("again %d", mtx_lock(&lock)), printf(" %d\n", mtx_trylock(&lock));
    return 0;
}
