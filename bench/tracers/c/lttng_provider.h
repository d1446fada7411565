#undef LTTNG_UST_TRACEPOINT_PROVIDER
#define LTTNG_UST_TRACEPOINT_PROVIDER bench
#undef LTTNG_UST_TRACEPOINT_INCLUDE
#define LTTNG_UST_TRACEPOINT_INCLUDE "./lttng_provider.h"
#if !defined(LTTNG_PROVIDER_H) || defined(LTTNG_UST_TRACEPOINT_HEADER_MULTI_READ)
#define LTTNG_PROVIDER_H
#include <lttng/tracepoint.h>
LTTNG_UST_TRACEPOINT_EVENT(bench, event,
    LTTNG_UST_TP_ARGS(unsigned long, a, unsigned long, b),
    LTTNG_UST_TP_FIELDS(lttng_ust_field_integer(unsigned long, a, a)
                        lttng_ust_field_integer(unsigned long, b, b)))
#endif
#include <lttng/tracepoint-event.h>
