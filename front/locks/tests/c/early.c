// Locks taken before any library is initialised, in constructors and destructors, inside malloc, in a signal handler,
// and across fork and vfork.
#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER, memory = PTHREAD_MUTEX_INITIALIZER;
static pthread_spinlock_t spin;
static volatile int calls;

static void use(void) {
    pthread_mutex_lock(&mutex);
    calls++;
    pthread_mutex_unlock(&mutex);
}

static void before_all(int count, char **arguments, char **environment) {
    (void)count, (void)arguments, (void)environment;
    use();
}
__attribute__((section(".preinit_array"), used)) static void (*preinit)(int, char **, char **) = before_all;

__attribute__((constructor(101))) static void constructor(void) { use(); }
__attribute__((destructor)) static void destructor(void) { use(); }

// A malloc that takes a lock, as some have; never frees.
static char store[8 << 20] __attribute__((aligned(16)));
static size_t used;

void *malloc(size_t size) {
    pthread_mutex_lock(&memory);
    size_t at = used;
    used += (size + 31) & ~(size_t)15;
    pthread_mutex_unlock(&memory);
    if (used > sizeof store) return NULL;
    *(size_t *)(store + at) = size;
    return store + at + 16;
}
void free(void *unused) { (void)unused; }
void *calloc(size_t count, size_t size) {
    void *all = malloc(count * size);
    if (all) memset(all, 0, count * size);
    return all;
}
void *realloc(void *old, size_t size) {
    void *larger = malloc(size);
    if (larger && old) {
        size_t before = *(size_t *)((char *)old - 16);
        memcpy(larger, old, before < size ? before : size);
    }
    return larger;
}

static void handler(int signal) {
    (void)signal;
    if (pthread_spin_trylock(&spin) == 0) {
        calls++;
        pthread_spin_unlock(&spin);
    }
}

int main(void) {
    pthread_spin_init(&spin, 0);
    signal(SIGUSR1, handler);
    raise(SIGUSR1);
    printf("calls so far %d\nmutex %p\nspin %p\nmemory %p\n", calls, (void *)&mutex, (void *)&spin, (void *)&memory);
    fflush(stdout);
    int status;
    pid_t child = fork();
    if (child == 0) {
        for (int i = 0; i < 1000; i++) use();
        _exit(calls == 1003 ? 0 : 1);
    }
    waitpid(child, &status, 0);
    printf("child %d\n", status);
    child = vfork();
    if (child == 0) {
        execlp("true", "true", (char *)NULL);
        _exit(9);
    }
    waitpid(child, &status, 0);
    printf("exec %d\n", status);
    use();
    return 0;
}
