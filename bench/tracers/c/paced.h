/* A fixed rate of events: PACED(name, rate, seconds, macro, event...) prints the rate that was reached. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

static unsigned long long now_ns(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec * 1000000000ull + time.tv_nsec;
}

/* Rate 0: as fast as it goes. Bursts of 32 between two looks at the clock. */
#define PACED(argc, argv, macro, ...)                                                                        \
    do {                                                                                                     \
        unsigned long long rate = strtoull((argv)[1], 0, 10), total = strtoull((argv)[2], 0, 10), i = 0;     \
        unsigned long long begun = now_ns(), ended;                                                          \
        while (i < total) {                                                                                  \
            unsigned long long until = i + 32 < total ? i + 32 : total;                                      \
            for (; i < until; i++)                                                                           \
                macro(__VA_ARGS__);                                                                          \
            if (rate)                                                                                        \
                while (now_ns() - begun < (unsigned long long)((double)i * 1e9 / (double)rate))              \
                    __builtin_ia32_pause();                                                                  \
        }                                                                                                    \
        ended = now_ns();                                                                                    \
        struct rusage used;                                                                                  \
        getrusage(RUSAGE_SELF, &used);                                                                       \
        printf("reached %.0f\n", (double)total * 1e9 / (double)(ended - begun));                             \
        printf("cpu_ns %lld\n", (used.ru_utime.tv_sec + used.ru_stime.tv_sec) * 1000000000ll +               \
               (used.ru_utime.tv_usec + used.ru_stime.tv_usec) * 1000ll);                                    \
    } while (0)
