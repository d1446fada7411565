/* Mutexes with attributes of the program's own: what they are stays. With `alone` no protocol is asked for. */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>

static int kind(pthread_mutex_t *mutex)
{
    return ((volatile int *)mutex)[4];
}

static int priority(void)
{
    struct sched_param parameters;
    sched_getparam(0, &parameters);
    return parameters.sched_priority;
}

static void show(const char *name, pthread_mutex_t *mutex)
{
    int lock = pthread_mutex_lock(mutex), within = priority();
    int again = pthread_mutex_trylock(mutex);
    if (again == 0)
        pthread_mutex_unlock(mutex);
    int unlock = pthread_mutex_unlock(mutex);
    printf("%s: lock %d, again %d, unlock %d; ", name, lock, again, unlock);
    fprintf(stderr, "%s kind %#x priority %d then %d\n", name, kind(mutex), within, priority());
    printf("not held %d, ", kind(mutex) & 3 && (kind(mutex) & 3) != 3 ? pthread_mutex_unlock(mutex) : 0);
    printf("destroy %d\n", pthread_mutex_destroy(mutex));
}

static void *hold(void *mutex)
{
    pthread_mutex_lock(mutex);
    return NULL;
}

int main(void)
{
    static const struct {
        const char *name;
        int type, robust, shared, protocol;
    } all[] = {
        { "default", PTHREAD_MUTEX_DEFAULT, 0, 0, 0 },
        { "recursive", PTHREAD_MUTEX_RECURSIVE, 0, 0, 0 },
        { "errorcheck", PTHREAD_MUTEX_ERRORCHECK, 0, 0, 0 },
        { "adaptive", PTHREAD_MUTEX_ADAPTIVE_NP, 0, 0, 0 },
        { "robust", PTHREAD_MUTEX_NORMAL, 1, 0, 0 },
        { "shared", PTHREAD_MUTEX_NORMAL, 0, 1, 0 },
        { "checking inheritance", PTHREAD_MUTEX_ERRORCHECK, 0, 0, PTHREAD_PRIO_INHERIT },
        { "own inheritance", PTHREAD_MUTEX_NORMAL, 0, 0, PTHREAD_PRIO_INHERIT },
    };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        pthread_mutexattr_t attributes;
        pthread_mutex_t mutex;
        pthread_mutexattr_init(&attributes);
        pthread_mutexattr_settype(&attributes, all[i].type);
        pthread_mutexattr_setrobust(&attributes, all[i].robust);
        pthread_mutexattr_setpshared(&attributes, all[i].shared);
        pthread_mutexattr_setprotocol(&attributes, all[i].protocol);
        pthread_mutex_init(&mutex, &attributes);
        show(all[i].name, &mutex);
    }
    pthread_mutex_t mutex = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;
    show("static recursive", &mutex);
    /* A dead owner. */
    pthread_mutexattr_t attributes;
    pthread_t thread;
    pthread_mutexattr_init(&attributes);
    pthread_mutexattr_setrobust(&attributes, 1);
    pthread_mutex_init(&mutex, &attributes);
    pthread_create(&thread, NULL, hold, &mutex);
    pthread_join(thread, NULL);
    int dead = pthread_mutex_lock(&mutex), consistent = pthread_mutex_consistent(&mutex);
    printf("dead owner %d, consistent %d, unlock %d\n", dead, consistent, pthread_mutex_unlock(&mutex));
    /* Released in another order than taken: the priority is that of what remains. */
    pthread_mutex_t first = PTHREAD_MUTEX_INITIALIZER, second = PTHREAD_MUTEX_INITIALIZER;
    pthread_mutex_lock(&first);
    pthread_mutex_lock(&second);
    pthread_mutex_unlock(&first);
    fprintf(stderr, "crossed %d", priority());
    pthread_mutex_unlock(&second);
    fprintf(stderr, " then %d\n", priority());
    return 0;
}
