/* LTTng-UST: one tracepoint with two integers, at a fixed rate: `paced_lttng RATE EVENTS`. */
#define LTTNG_UST_TRACEPOINT_CREATE_PROBES
#define LTTNG_UST_TRACEPOINT_DEFINE
#include "lttng_provider.h"
#include "paced.h"

int main(int argc, char **argv) {
    PACED(argc, argv, lttng_ust_tracepoint, bench, event, i, i + 1);
}
