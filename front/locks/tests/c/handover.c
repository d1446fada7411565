#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include <errno.h>
#include <sys/wait.h>
#include <sched.h>
/* The pattern of pthread_atfork: locked before, unlocked in both. */
static pthread_mutex_t plain = PTHREAD_MUTEX_INITIALIZER;
static void prepare(void) { pthread_mutex_lock(&plain); }
static void parent(void) { pthread_mutex_unlock(&plain); }
static void child(void) { pthread_mutex_unlock(&plain); }
static int priority(void) { struct sched_param p; sched_getparam(0, &p); return p.sched_priority; }
static void *use(void *a) { for (int i = 0; i < 1000; i++) { pthread_mutex_lock(&plain); pthread_mutex_unlock(&plain); } return a; }
int main(void)
{
    pthread_t thread;
    int status, before = priority();
    pthread_atfork(prepare, parent, child);
    pthread_create(&thread, 0, use, 0);
    for (int i = 0; i < 20; i++) {
        pid_t pid = fork();
        if (pid == 0) {
            pthread_t own;
            int wrong = pthread_mutex_trylock(&plain);
            if (!wrong) wrong = pthread_mutex_trylock(&plain) != EBUSY;
            if (!wrong) wrong = pthread_mutex_unlock(&plain);
            if (wrong) _exit(10 + wrong % 100);
            pthread_create(&own, 0, use, 0);
            use(0);
            pthread_join(own, 0);
            if (priority() != before) _exit(3);
            /* And once more below the child. */
            pid_t grandchild = fork();
            if (grandchild == 0) { use(0); _exit(priority() == before ? 0 : 4); }
            waitpid(grandchild, &status, 0);
            _exit(WIFEXITED(status) ? WEXITSTATUS(status) : 5);
        }
        waitpid(pid, &status, 0);
        if (status) { printf("child %x\n", status); return 1; }
    }
    pthread_join(thread, 0);
    /* Locked before, unlocked in the child in the middle of a section. */
    pthread_mutex_t *own = malloc(sizeof *own);
    pthread_mutex_init(own, 0);
    pthread_mutex_lock(own);
    pid_t pid = fork();
    int unlocked = pthread_mutex_unlock(own), again = pthread_mutex_lock(own);
    pthread_mutex_unlock(own);
    if (pid == 0) _exit(unlocked || again ? 9 : pthread_mutex_destroy(own));
    waitpid(pid, &status, 0);
    printf("forked %d %d %d %x priority %d\n", unlocked, again, pthread_mutex_destroy(own), status, priority() - before);
    return 0;
}
