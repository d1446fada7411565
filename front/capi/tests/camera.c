/* A camera job with preemption points between its stages, for the tests. */
#include "horolog.h"

#include <stdlib.h>

/* A camera: three stages a frame. */
struct camera {
    unsigned long frames;
    unsigned long overruns;
    unsigned char picture[64 * 1024];
};

static void stage(struct camera *camera, unsigned seed)
{
    for (unsigned i = 0; i < sizeof camera->picture; i++) {
        camera->picture[i] = (unsigned char)(camera->picture[i] * 31u + seed + i);
    }
}

static void on_overrun(void *context, const horolog_overrun *overrun)
{
    (void)overrun;
    ((struct camera *)context)->overruns += 1;
}

int camera_init(int argc, const char *const *argv, void **state)
{
    (void)argc;
    (void)argv;
    *state = calloc(1, sizeof(struct camera));
    return *state == NULL;
}

int camera_frame(horolog_job *job)
{
    struct camera *camera = horolog_state(job);
    if (horolog_job_number(job) == 0) {
        horolog_on_overrun(job, on_overrun, camera);
    }
    for (unsigned i = 0; i < 3; i++) {
        stage(camera, i);
        if (i < 2) {
            horolog_preemption_point(job, 1);
        }
    }
    camera->frames += 1;
    return 0;
}

void camera_exit(void *state)
{
    free(state);
}
