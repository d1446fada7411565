/* LTTng-UST: one tracepoint with two integers. */
#define LTTNG_UST_TRACEPOINT_CREATE_PROBES
#define LTTNG_UST_TRACEPOINT_DEFINE
#include "lttng_provider.h"
#include "rounds.h"

int main(int argc, char **argv) {
    ROUNDS("lttng-ust", mode(argc, argv), argument(argc, argv, 1, 5), argument(argc, argv, 2, 200000),
           lttng_ust_tracepoint(bench, event, i, i + 1));
}
