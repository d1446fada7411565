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
 *     cc -O2 -shared -fPIC -I .../front/capi/include -o libapp.so app.c
 *
 * The handle is valid during the call only. All times are nanoseconds since the common start of all tasks.
 * The code runs with locked memory under SCHED_FIFO: it should not allocate, lock, or sleep.
 */
#ifndef HOROLOG_H
#define HOROLOG_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The version of this layout; `horolog_abi_version(job)` gives the executive's. */
#define HOROLOG_ABI_VERSION 3u

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
    void (*next_segment)(horolog_job *, uint32_t);
    void (*set_preemptible)(horolog_job *, int32_t);
    uint64_t (*remaining_ns)(horolog_job *);
    uint64_t (*executed_ns)(horolog_job *);
    int32_t (*must_end)(horolog_job *);
    void (*on_overrun)(horolog_job *, horolog_overrun_fn, void *);
    int32_t (*request_mode)(horolog_job *, const char *);
    int32_t (*publish)(horolog_job *, const char *, const void *, uint32_t);
    int64_t (*latched)(horolog_job *, const char *);
    int64_t (*read)(horolog_job *, const char *, void *, uint32_t);
    int32_t (*lock)(horolog_job *, const char *);
    int32_t (*unlock)(horolog_job *, const char *);
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
};

/* The version of the executive's layout. */
static inline uint32_t horolog_abi_version(const horolog_job *job) { return job->table->version; }

/* The job's number, counted from 0. */
static inline uint64_t horolog_job_number(const horolog_job *job) { return job->number; }

/* The job's nominal arrival. */
static inline uint64_t horolog_release_ns(const horolog_job *job) { return job->release_ns; }

/* The job's absolute deadline, or HOROLOG_NO_DEADLINE. */
static inline uint64_t horolog_deadline_ns(const horolog_job *job) { return job->deadline_ns; }

/* The task's own state: what `init` stored, or the last `horolog_set_state`. */
static inline void *horolog_state(const horolog_job *job) { return job->state; }

/* Replaces the task's state. */
static inline void horolog_set_state(horolog_job *job, void *state) { job->state = state; }

/* Whether somebody more important waits for this job's next preemption point: one load. */
static inline int horolog_should_yield(const horolog_job *job)
{
    return (int)(__atomic_load_n(job->attention, __ATOMIC_RELAXED) & 1u);
}

/* A preemption point between two segments of a deferred task. Where `allow` is not 0 and somebody more important
 * waits, they run now, and this returns once the job has the processor again. Returns whether somebody waited.
 * Idle, it costs one load and a branch. */
static inline int horolog_preemption_point(horolog_job *job, int allow)
{
    if (__builtin_expect(__atomic_load_n(job->attention, __ATOMIC_RELAXED) == 0, 1)) {
        return 0;
    }
    return job->table->preemption_point(job, allow);
}

/* Announces which segment (its index in the system file) follows the next preemption point, at a branch. */
static inline void horolog_next_segment(horolog_job *job, uint32_t segment) { job->table->next_segment(job, segment); }

/* Switches this task's own preemptibility, for this job and those after it. */
static inline void horolog_set_preemptible(horolog_job *job, int preemptible)
{
    job->table->set_preemptible(job, preemptible);
}

/* What is left of the job's worst-case execution time; 0 where it is used up. A system call. */
static inline uint64_t horolog_remaining_ns(horolog_job *job) { return job->table->remaining_ns(job); }

/* What the job has executed so far. A system call. */
static inline uint64_t horolog_executed_ns(horolog_job *job) { return job->table->executed_ns(job); }

/* Whether the job should end at the next opportunity: the overrun policy or the end of the run says so. */
static inline int horolog_must_end(horolog_job *job) { return job->table->must_end(job); }

/* Calls `function(context, ...)` from now on whenever a job of this task overruns. */
static inline void horolog_on_overrun(horolog_job *job, horolog_overrun_fn function, void *context)
{
    job->table->on_overrun(job, function, context);
}

/* Asks for the mode of this name (a `[[mode]]` of the system file, or "base"), as a request of the file at this instant does.
 * Returns whether there is such a mode; without, nothing happens. Since version 2. */
static inline int horolog_request_mode(horolog_job *job, const char *name) 
{
    return job->table->version < 2u ? 0 : job->table->request_mode(job, name);
}

/* Gives the value that this job publishes on a link that its task writes: a `[[link]]` of the system file with a `size`. The last
 * one given is there for readers from the job's deadline on, once the job has completed. Returns 0, or -1 where there is no
 * such link or the value is too long. A job that gives none publishes its number and no bytes. */
static inline int horolog_publish(horolog_job *job, const char *link, const void *value, uint32_t length)
{
    return job->table->version < 3u ? -1 : job->table->publish(job, link, value, length);
}

/* Whose value this job has from a link that its task reads: the number of the writer's job, or -1 where nothing was
 * published when this job arrived. */
static inline int64_t horolog_latched(horolog_job *job, const char *link)
{
    return job->table->version < 3u ? -1 : job->table->latched(job, link);
}

/* Copies that value, at most `length` bytes of it. Returns how many bytes it has; -1 where there is none, and where a job that
 * started after its deadline came too late for the bytes. */
static inline int64_t horolog_read(horolog_job *job, const char *link, void *into, uint32_t length)
{
    return job->table->version < 3u ? -1 : job->table->read(job, link, into, length);
}

/* Locks the resource of this name, which a `[[task.section]]` of the task names, and comes back once the job has it. Returns 0, or -1
 * where no section of the task names it: then nothing is locked. What a job still holds at its end is unlocked. Since version 3. */
static inline int horolog_lock(horolog_job *job, const char *resource)
{
    return job->table->version < 3u ? -1 : job->table->lock(job, resource);
}

/* Unlocks the resource. Returns 0, or -1 where the job does not hold it. Since version 3. */
static inline int horolog_unlock(horolog_job *job, const char *resource)
{
    return job->table->version < 3u ? -1 : job->table->unlock(job, resource);
}

#ifdef __cplusplus
}
#endif

#endif
