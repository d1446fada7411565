// What is started while a lock is held, and its priority: that of the thread by itself. `started show WHAT` tells its own.
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <threads.h>
#include <unistd.h>

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static char *own;
extern char **environ;

static int priority(void) {
    struct sched_param parameters;
    sched_getparam(0, &parameters);
    return parameters.sched_priority;
}

static void *show(void *what) {
    printf("%s %d\n", (char *)what, priority());
    return NULL;
}

static int show_c11(void *what) {
    show(what);
    return 0;
}

// In a child: by each function that replaces the program.
static void replaced(int way) {
    char name[20];
    snprintf(name, sizeof name, "exec%d", way);
    char *words[] = {own, "show", name, NULL};
    pid_t child = way == 0 ? vfork() : fork();
    if (child == 0) {
        switch (way) {
        case 0: execve(own, words, environ); break;
        case 1: execv(own, words); break;
        case 2: execvp(own, words); break;
        case 3: execvpe(own, words, environ); break;
        case 4: execl(own, own, "show", name, (char *)NULL); break;
        case 5: execlp(own, own, "show", name, (char *)NULL); break;
        // More words than registers.
        case 6: execle(own, own, "show", name, "4", "5", "6", "7", "8", "9", (char *)NULL, environ); break;
        }
        _exit(9);
    }
    waitpid(child, NULL, 0);
}

int main(int count, char **words) {
    setbuf(stdout, NULL);
    if (count > 2) {
        printf("%s %d of %d words\n", words[2], priority(), count);
        return 0;
    }
    own = words[0];
    pthread_mutex_lock(&mutex);
    int raised = priority();
    fprintf(stderr, "raised %d\n", raised);
    pthread_t thread;
    pthread_create(&thread, NULL, show, "thread");
    pthread_join(thread, NULL);
    thrd_t other;
    thrd_create(&other, show_c11, "thrd");
    thrd_join(other, NULL);
    char command[4096];
    snprintf(command, sizeof command, "'%s' show system", own);
    printf("status %d\n", system(command));
    snprintf(command, sizeof command, "'%s' show popen", own);
    char line[100] = "";
    FILE *stream = popen(command, "r");
    printf("%s", fgets(line, sizeof line, stream));
    pclose(stream);
    pid_t child;
    char *spawned[] = {own, "show", "spawn", NULL};
    posix_spawn(&child, own, NULL, NULL, spawned, environ);
    waitpid(child, NULL, 0);
    posix_spawnp(&child, own, NULL, NULL, spawned, environ);
    waitpid(child, NULL, 0);
    for (int way = 0; way < 7; way++) replaced(way);
    printf("still %d\n", priority() == raised);
    // One that fails: with its error, and the thread's own priority afterwards.
    errno = 0;
    execl("/nowhere/at/all", "all", (char *)NULL);
    printf("failed %d\n", errno);
    errno = 0;
    pthread_mutex_unlock(&mutex);
    printf("then %d, errno %d\n", priority(), errno);
    return 0;
}
