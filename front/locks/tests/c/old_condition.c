// A program linked to the condition variables of 2003: their object is a pointer to the real one.
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

__asm__(".symver pthread_cond_wait, pthread_cond_wait@GLIBC_2.2.5");
__asm__(".symver pthread_cond_timedwait, pthread_cond_timedwait@GLIBC_2.2.5");
__asm__(".symver pthread_cond_signal, pthread_cond_signal@GLIBC_2.2.5");

static union {
    pthread_cond_t condition;
    void *real;
    unsigned char bytes[sizeof(pthread_cond_t)];
} old;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static int said;

static void *say(void *unused) {
    pthread_mutex_lock(&mutex);
    said = 1;
    pthread_cond_signal(&old.condition);
    pthread_mutex_unlock(&mutex);
    return unused;
}

int main(void) {
    struct timespec passed = {1, 0};
    pthread_t thread;
    // Today's functions would read and write these bytes as counters; those of 2003 leave them alone.
    memset(old.bytes + 16, 0xAA, sizeof old.bytes - 16);
    printf("mutex %p\ncondition %p\n", (void *)&mutex, (void *)&old);
    fflush(stdout);
    pthread_mutex_lock(&mutex);
    printf("timed out %d\n", pthread_cond_timedwait(&old.condition, &mutex, &passed) == ETIMEDOUT);
    pthread_create(&thread, NULL, say, NULL);
    while (!said) pthread_cond_wait(&old.condition, &mutex);
    pthread_mutex_unlock(&mutex);
    pthread_join(thread, NULL);
    int untouched = 1;
    for (unsigned i = 16; i < sizeof old.bytes; i++) untouched &= old.bytes[i] == 0xAA;
    printf("said %d, a pointer %d, untouched %d\n", said, old.real != NULL, untouched);
    return 0;
}
