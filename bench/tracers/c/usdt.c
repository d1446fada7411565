/* USDT: one probe with two integers; on, a uprobe that perf records. */
#include <sys/sdt.h>
#include "rounds.h"

int main(int argc, char **argv) {
    ROUNDS("usdt", mode(argc, argv), argument(argc, argv, 1, 5), argument(argc, argv, 2, 200000),
           DTRACE_PROBE2(bench, event, i, i + 1));
}
