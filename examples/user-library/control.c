/* A control loop in C: steers a position towards a target, once a job.
 *
 * Built by `make -C examples/user-library`; system.toml names the functions.
 */
#include "horolog.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct control {
    double gain;
    double target;
    double position;
    unsigned long jobs;
};

/* Before the common start, at normal priority: here memory may be allocated. */
int control_init(int argc, const char *const *argv, void **state)
{
    struct control *control = calloc(1, sizeof *control);
    if (control == NULL) {
        return 1;
    }
    control->gain = 0.5;
    control->target = 1000.0;
    for (int i = 0; i < argc; i++) {
        if (strncmp(argv[i], "gain=", 5) == 0) {
            control->gain = strtod(argv[i] + 5, NULL);
        }
    }
    *state = control;
    /* Anything but 0 calls the run off. */
    return control->gain > 0.0 && control->gain <= 1.0 ? 0 : 2;
}

/* Once a job, under real-time priority: no allocation, no lock, no input or output. */
int control_step(horolog_job *job)
{
    struct control *control = horolog_state(job);
    control->position += control->gain * (control->target - control->position);
    control->jobs += 1;
    return 0;
}

/* After the last job, at normal priority again. */
void control_exit(void *state)
{
    struct control *control = state;
    printf("control: %lu jobs, position %.3f\n", control->jobs, control->position);
    free(control);
}
