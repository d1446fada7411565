// A thread cancelled in a condition wait, another by pthread_exit in its clean-up; C and C++, with and without exceptions.
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t condition = PTHREAD_COND_INITIALIZER;
static int waiting, cleaned;

static void clean(void *unused) {
    (void)unused;
    cleaned++;
    pthread_mutex_unlock(&mutex);
}

#ifdef __cplusplus
struct Guard {
    ~Guard() { clean(NULL); }
};
#endif

static void *wait_for_ever(void *unused) {
    pthread_mutex_lock(&mutex);
    waiting = 1;
#ifdef __cplusplus
    Guard guard;
    for (;;) pthread_cond_wait(&condition, &mutex);
#else
    pthread_cleanup_push(clean, NULL);
    for (;;) pthread_cond_wait(&condition, &mutex);
    pthread_cleanup_pop(0);
#endif
    return unused;
}

int main(void) {
    pthread_t thread;
    void *result;
    printf("mutex %p\ncondition %p\n", (void *)&mutex, (void *)&condition);
    fflush(stdout);
    pthread_create(&thread, NULL, wait_for_ever, NULL);
    for (int ready = 0; !ready; usleep(1000)) {
        pthread_mutex_lock(&mutex);
        ready = waiting;
        pthread_mutex_unlock(&mutex);
    }
    pthread_cancel(thread);
    pthread_join(thread, &result);
    printf("cancelled %d, cleaned %d, mutex free %d\n", result == PTHREAD_CANCELED, cleaned,
           pthread_mutex_trylock(&mutex) == 0);
    return 0;
}
