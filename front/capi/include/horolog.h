/* horolog.h: task code in C for horolog.
 *
 * A task with  body = { library = "libapp.so", symbol = "control_step" }  calls
 *
 *     int control_step(horolog_job *job);
 *
 * once a job, on the task's own real-time thread. The return value 0 means that all is well; jobs that return
 * anything else are counted. With  init = "control_init", exit = "control_exit", arguments = ["..."]  it also calls
 *
 *     int  control_init(int argc, const char *const *argv, void **state);
 *     void control_exit(void *state);
 *
 * once each, before the common start (anything but 0 calls the run off) and after the last job.
 *
 * A library links against nothing: everything here is inline, or goes through a table behind the handle. Build with
 *
 *     cc -O2 -shared -fPIC -I "$(horolog --include-dir)" -o libapp.so app.c
 *     cc -O2 -shared -fPIC $(pkg-config --cflags horolog) -o libapp.so app.c
 *
 * The handle is valid on the task's own thread, from the beginning of this call to its end, and nowhere else. Every function looks: with
 * NULL, on another thread, in a process that the job has forked, after the job's end (also in the jobs after it, until its memory serves again 16 jobs later; and in another
 * run) it does nothing and gives a code below 0, for which `horolog_error_text` has words:
 *
 *     functions that return int or int64_t      HOROLOG_NO_HANDLE, HOROLOG_OTHER_THREAD or HOROLOG_JOB_ENDED
 *     functions that return uint64_t            HOROLOG_NO_VALUE
 *     horolog_state                             NULL
 *     horolog_abi_version                       0
 *
 * `horolog_check(job)` gives the code itself. The outcome of the run says how often a task's handles were refused.
 *
 * All times are nanoseconds since the common start of all tasks.
 * The code runs with locked memory under SCHED_FIFO: it should not allocate, lock, or sleep.
 */
#ifndef HOROLOG_H
#define HOROLOG_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The version of this layout; `horolog_abi_version(job)` gives the executive's. */
#define HOROLOG_ABI_VERSION 4u

/* What the functions below return where they did nothing. */
#define HOROLOG_NOT_FOUND (-1)    /* no such link, resource or function, or a value that does not fit */
#define HOROLOG_NO_HANDLE (-2)    /* the handle is NULL */
#define HOROLOG_OTHER_THREAD (-3) /* the handle belongs to a job under way on another thread */
#define HOROLOG_JOB_ENDED (-4)    /* the handle's job has ended */

/* In place of a number, where the handle was refused; `horolog_check` says why. */
#define HOROLOG_NO_VALUE UINT64_MAX

/* No deadline. */
#define HOROLOG_NO_DEADLINE UINT64_MAX

/* What an overrun exceeds, or-ed together. */
#define HOROLOG_SEGMENT_OVERRUN 1u      /* this segment's worst case */
#define HOROLOG_JOB_OVERRUN_CERTAIN 2u  /* the job cannot end within its worst case any more */
#define HOROLOG_JOB_OVERRUN 4u          /* the job's worst case: less important tasks suffer */
#define HOROLOG_HARMS_MORE_IMPORTANT 8u /* more important tasks are blocked for longer than analysed */

typedef struct horolog_overrun {
    uint64_t job;
    uint64_t executed_ns;
    uint32_t segment;
    uint32_t flags;
} horolog_overrun;

/* Called on the task's own thread, at the next preemption point or at the job's end, once a job. Must not block. */
typedef void (*horolog_overrun_fn)(void *context, const horolog_overrun *overrun);

typedef struct horolog_job horolog_job;

/* Private: use the functions below. */
struct horolog_job_table {
    uint32_t version;
    uint32_t reserved;
    int32_t (*preemption_point)(horolog_job *, int32_t);
    int32_t (*next_segment)(horolog_job *, uint32_t);
    int32_t (*set_preemptible)(horolog_job *, int32_t);
    uint64_t (*remaining_ns)(horolog_job *);
    uint64_t (*executed_ns)(horolog_job *);
    int32_t (*must_end)(horolog_job *);
    int32_t (*on_overrun)(horolog_job *, horolog_overrun_fn, void *);
    int32_t (*request_mode)(horolog_job *, const char *);
    int32_t (*publish)(horolog_job *, const char *, const void *, uint32_t);
    int64_t (*latched)(horolog_job *, const char *);
    int64_t (*read)(horolog_job *, const char *, void *, uint32_t);
    int32_t (*lock)(horolog_job *, const char *);
    int32_t (*unlock)(horolog_job *, const char *);
    int32_t (*check)(const horolog_job *);
};

/* Private: use the functions below. */
struct horolog_job {
    const uint32_t *attention;
    const struct horolog_job_table *table;
    void *context;
    void *state;
    uint64_t number;
    uint64_t release_ns;
    uint64_t deadline_ns;
    uintptr_t owner;
    const void *refusals;
};

/* Private: what tells the calling thread from others; one instruction. */
static inline uintptr_t horolog_own_thread(void)
{
    uintptr_t self;
#if defined(__x86_64__)
    __asm__("movq %%fs:0, %0" : "=r"(self));
#elif defined(__aarch64__)
    __asm__("mrs %0, tpidr_el0" : "=r"(self));
#else
#error "horolog.h: this processor is not supported; x86-64 and aarch64 are"
#endif
    return self;
}

/* Whether the handle may be used here and now: 0, or one of the codes above. */
static inline int horolog_check(const horolog_job *job)
{
    if (__builtin_expect(job == 0, 0)) {
        return HOROLOG_NO_HANDLE;
    }
    if (__builtin_expect(__atomic_load_n(&job->owner, __ATOMIC_RELAXED) == horolog_own_thread(), 1)) {
        return 0;
    }
    return job->table->check(job);
}

/* What a code of the functions below means. */
static inline const char *horolog_error_text(int code)
{
    switch (code) {
    case HOROLOG_NOT_FOUND:
        return "there is no such link, resource or function, or the value does not fit";
    case HOROLOG_NO_HANDLE:
        return "the job handle is NULL: pass the one that the job's function was called with";
    case HOROLOG_OTHER_THREAD:
        return "the job handle belongs to a job under way on another thread: use it on the task's own thread alone";
    case HOROLOG_JOB_ENDED:
        return "the job of this handle has ended: use the handle that the present job's function was called with";
    default:
        return code < 0 ? "an unknown error" : "no error";
    }
}

/* The version of the executive's layout; 0 with NULL. */
static inline uint32_t horolog_abi_version(const horolog_job *job) { return job == 0 ? 0 : job->table->version; }

/* The job's number, counted from 0. */
static inline uint64_t horolog_job_number(const horolog_job *job)
{
    return horolog_check(job) ? HOROLOG_NO_VALUE : job->number;
}

/* The job's nominal arrival. */
static inline uint64_t horolog_release_ns(const horolog_job *job)
{
    return horolog_check(job) ? HOROLOG_NO_VALUE : job->release_ns;
}

/* The job's absolute deadline, or HOROLOG_NO_DEADLINE (which is also what a refused handle gives). */
static inline uint64_t horolog_deadline_ns(const horolog_job *job)
{
    return horolog_check(job) ? HOROLOG_NO_VALUE : job->deadline_ns;
}

/* The task's own state: what `init` stored, or the last `horolog_set_state`. */
static inline void *horolog_state(const horolog_job *job) { return horolog_check(job) ? (void *)0 : job->state; }

/* Replaces the task's state. Returns 0, or a code. */
static inline int horolog_set_state(horolog_job *job, void *state)
{
    int refused = horolog_check(job);
    if (!refused) {
        job->state = state;
    }
    return refused;
}

/* Whether a more important job waits for this job's next preemption point: 0, 1, or a code. */
static inline int horolog_should_yield(const horolog_job *job)
{
    int refused = horolog_check(job);
    return refused ? refused : (int)(__atomic_load_n(job->attention, __ATOMIC_RELAXED) & 1u);
}

/* A preemption point between two segments of a deferred task. Where `allow` is not 0 and somebody more important
 * waits, they run now, and this returns once the job has the processor again. Returns whether one waited, or a code.
 * Idle, it costs the look at the handle, one load and a branch. */
static inline int horolog_preemption_point(horolog_job *job, int allow)
{
    int refused = horolog_check(job);
    if (__builtin_expect(refused != 0, 0)) {
        return refused;
    }
    if (__builtin_expect(__atomic_load_n(job->attention, __ATOMIC_RELAXED) == 0, 1)) {
        return 0;
    }
    return job->table->preemption_point(job, allow);
}

/* Announces which segment (its index in the system file) follows the next preemption point, at a branch. Returns 0, or a code. */
static inline int horolog_next_segment(horolog_job *job, uint32_t segment)
{
    int refused = horolog_check(job);
    return refused ? refused : job->table->next_segment(job, segment);
}

/* Switches this task's own preemptibility, for this job and those after it. Returns 0, or a code. */
static inline int horolog_set_preemptible(horolog_job *job, int preemptible)
{
    int refused = horolog_check(job);
    return refused ? refused : job->table->set_preemptible(job, preemptible);
}

/* What is left of the job's worst-case execution time; 0 where it is used up. A system call. */
static inline uint64_t horolog_remaining_ns(horolog_job *job)
{
    return horolog_check(job) ? HOROLOG_NO_VALUE : job->table->remaining_ns(job);
}

/* What the job has executed so far. A system call. */
static inline uint64_t horolog_executed_ns(horolog_job *job)
{
    return horolog_check(job) ? HOROLOG_NO_VALUE : job->table->executed_ns(job);
}

/* Whether the job should end at the next opportunity: the overrun policy or the end of the run says so. 0, 1, or a code. */
static inline int horolog_must_end(horolog_job *job)
{
    int refused = horolog_check(job);
    return refused ? refused : job->table->must_end(job);
}

/* Calls `function(context, ...)` from now on whenever a job of this task overruns. Returns 0, or a code (HOROLOG_NOT_FOUND for NULL).
 * At the job's end its handle is refused within the function. */
static inline int horolog_on_overrun(horolog_job *job, horolog_overrun_fn function, void *context)
{
    int refused = horolog_check(job);
    return refused ? refused : job->table->on_overrun(job, function, context);
}

/* Asks for the mode of this name (a `[[mode]]` of the system file, or "base"), as a request of the file at this instant does.
 * Returns whether there is such a mode, or a code; without, nothing happens. Since version 2. */
static inline int horolog_request_mode(horolog_job *job, const char *name)
{
    int refused = horolog_check(job);
    return refused ? refused : job->table->request_mode(job, name);
}

/* Gives the value that this job publishes on a link that its task writes: a `[[link]]` of the system file with a `size`. The last
 * one given is there for readers from the job's deadline on, once the job has completed. Returns 0, or a code: HOROLOG_NOT_FOUND where
 * there is no such link or the value is too long. A job that gives none publishes its number and no bytes. Since version 3. */
static inline int horolog_publish(horolog_job *job, const char *link, const void *value, uint32_t length)
{
    int refused = horolog_check(job);
    return refused ? refused : job->table->publish(job, link, value, length);
}

/* Whose value this job has from a link that its task reads: the number of the writer's job, or a code: HOROLOG_NOT_FOUND where nothing
 * was published when this job arrived. Since version 3. */
static inline int64_t horolog_latched(horolog_job *job, const char *link)
{
    int refused = horolog_check(job);
    return refused ? refused : job->table->latched(job, link);
}

/* Copies that value, at most `length` bytes of it. Returns how many bytes it has, or a code: HOROLOG_NOT_FOUND where there is none, and
 * where a job that started after its deadline came too late for the bytes. Since version 3. */
static inline int64_t horolog_read(horolog_job *job, const char *link, void *into, uint32_t length)
{
    int refused = horolog_check(job);
    return refused ? refused : job->table->read(job, link, into, length);
}

/* Locks the resource of this name, which a `[[task.section]]` of the task names, and comes back once the job has it. Returns 0, or a
 * code: HOROLOG_NOT_FOUND where no section of the task names it, where the job holds another one and the protocols of the two do not
 * nest (spin locks, `inheritance` and `none` nest with nothing), or where the run has ended meanwhile: then nothing is locked. One that the job holds already stays locked
 * once: the first unlock lets go of it. What a job still holds at its end is unlocked. Since version 3. */
static inline int horolog_lock(horolog_job *job, const char *resource)
{
    int refused = horolog_check(job);
    return refused ? refused : job->table->lock(job, resource);
}

/* Unlocks the resource. Returns 0, or a code: HOROLOG_NOT_FOUND where the job does not hold it. Since version 3. */
static inline int horolog_unlock(horolog_job *job, const char *resource)
{
    int refused = horolog_check(job);
    return refused ? refused : job->table->unlock(job, resource);
}

#ifdef __cplusplus
}
#endif

#endif
