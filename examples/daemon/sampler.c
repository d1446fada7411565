/* A daemon as one finds them: it waits for its timer, works, hands the result to whoever listens, and waits again.
 *
 *   sampler [period=20ms] [work=3ms] [socket=PATH] [after=N exit|crash|spin]
 *
 * Nothing in it knows of horolog. The last words make it misbehave after N rounds, to see what a verification says. */
#include <errno.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

static volatile sig_atomic_t over;

static void stop(int signal)
{
    (void)signal;
    over = 1;
}

static long long now(clockid_t clock)
{
    struct timespec time;
    clock_gettime(clock, &time);
    return time.tv_sec * 1000000000LL + time.tv_nsec;
}

/* Works for so long, by the thread's own clock, and yields a sample. */
static double work(long long length)
{
    double sample = 0.0;
    long long end = now(CLOCK_THREAD_CPUTIME_ID) + length;
    do {
        for (int step = 1; step < 200; step++)
            sample += 1.0 / step;
    } while (now(CLOCK_THREAD_CPUTIME_ID) < end);
    return sample;
}

static long long milliseconds(const char *text)
{
    return atoll(text) * 1000000LL;
}

int main(int count, char **words)
{
    long long period = 20000000, length = 3000000, after = -1;
    const char *fault = "", *path = NULL;
    for (int word = 1; word < count; word++) {
        if (!strncmp(words[word], "period=", 7))
            period = milliseconds(words[word] + 7);
        else if (!strncmp(words[word], "work=", 5))
            length = milliseconds(words[word] + 5);
        else if (!strncmp(words[word], "socket=", 7))
            path = words[word] + 7;
        else if (!strncmp(words[word], "after=", 6))
            after = atoll(words[word] + 6);
        else
            fault = words[word];
    }
    struct sigaction action = { .sa_handler = stop };
    sigaction(SIGTERM, &action, NULL);
    int out = socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK, 0);
    struct sockaddr_un listener = { .sun_family = AF_UNIX };
    if (path)
        strncpy(listener.sun_path, path, sizeof listener.sun_path - 1);
    int timer = timerfd_create(CLOCK_MONOTONIC, 0);
    struct itimerspec rhythm = { .it_interval = { period / 1000000000, period % 1000000000 } };
    rhythm.it_value = rhythm.it_interval;
    if (timer < 0 || out < 0 || timerfd_settime(timer, 0, &rhythm, NULL) < 0) {
        perror("sampler");
        return 1;
    }
    for (long long round = 0; !over; round++) {
        if (round == after) {
            if (!strcmp(fault, "exit"))
                return 3;
            if (!strcmp(fault, "crash"))
                raise(SIGSEGV);
            while (!strcmp(fault, "spin"))
                work(length);
        }
        uint64_t expired;
        if (read(timer, &expired, sizeof expired) < 0 && errno != EINTR)
            return 1;
        double sample = work(length);
        if (path) /* No reader: nothing is sent. */
            (void)sendto(out, &sample, sizeof sample, 0, (struct sockaddr *)&listener, sizeof listener);
    }
    return 0;
}
