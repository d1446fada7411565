/* What the C rivals share: rounds of a loop, printed as nanoseconds an event, one line a round. Between rounds the
 * tracer's drain gets time to empty its buffers, since a cost counts only where nothing is lost. Switched off, a round
 * has fifty times as many events: it would be over in a few microseconds. */
#ifndef ROUNDS_H
#define ROUNDS_H
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static double now_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1e9 + t.tv_nsec;
}

#define ROUNDS(name, mode, rounds, count, statement)                                   \
    for (long round = 0; round < (rounds); round++) {                                  \
        long events = (mode)[1] == 'f' ? 50 * (count) : (count);                       \
        double begin = now_ns();                                                       \
        for (long i = 0; i < events; i++) {                                            \
            statement;                                                                 \
            __asm__ volatile("" ::: "memory");                                         \
        }                                                                              \
        printf("%s %s %.3f\n", name, mode, (now_ns() - begin) / (double)events);       \
        fflush(stdout);                                                                \
        nanosleep(&(struct timespec){0, 300000000}, NULL);                             \
    }

static long argument(int argc, char **argv, int position, long otherwise) {
    return argc > position ? atol(argv[position]) : otherwise;
}

/* "off" or "on": whoever starts the program knows whether a tracer listens. */
static const char *mode(int argc, char **argv) { return argc > 3 ? argv[3] : "off"; }
#endif
