// A known sequence of lock operations on one thread; prints the locks' addresses and where the calls stand.
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <threads.h>
#include <time.h>

static pthread_mutex_t a = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t b;
static pthread_rwlock_t rw = PTHREAD_RWLOCK_INITIALIZER;
static pthread_spinlock_t spin;
static pthread_cond_t condition = PTHREAD_COND_INITIALIZER;
static mtx_t c11;

__attribute__((noinline)) static void take_a(void) { pthread_mutex_lock(&a); __asm__ volatile(""); }

int main(void) {
    struct timespec passed = {1, 0};
    pthread_mutexattr_t attributes;
    pthread_mutexattr_init(&attributes);
    pthread_mutexattr_settype(&attributes, PTHREAD_MUTEX_RECURSIVE);
    pthread_mutexattr_setprotocol(&attributes, PTHREAD_PRIO_INHERIT);
    pthread_mutex_init(&b, &attributes);
    pthread_spin_init(&spin, 0);
    mtx_init(&c11, mtx_plain);
    printf("a %p\nb %p\nrw %p\nspin %p\ncondition %p\nc11 %p\nsite %p\n", (void *)&a, (void *)&b, (void *)&rw,
           (void *)&spin, (void *)&condition, (void *)&c11, (void *)take_a);
    fflush(stdout);
    take_a();
    pthread_mutex_lock(&b);
    pthread_mutex_trylock(&b);
    pthread_mutex_unlock(&b);
    pthread_mutex_unlock(&b);
    pthread_mutex_trylock(&a);
    pthread_cond_timedwait(&condition, &a, &passed);
    pthread_mutex_unlock(&a);
    pthread_rwlock_rdlock(&rw);
    pthread_rwlock_trywrlock(&rw);
    pthread_rwlock_unlock(&rw);
    pthread_rwlock_wrlock(&rw);
    pthread_rwlock_unlock(&rw);
    pthread_spin_lock(&spin);
    pthread_spin_unlock(&spin);
    mtx_lock(&c11);
    mtx_unlock(&c11);
    return 0;
}
