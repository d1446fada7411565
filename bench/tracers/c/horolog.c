/* horolog: one trigger with two integers; the runtime comes preloaded by `horolog trace record`. */
#include <horolog/trace.h>
#include "rounds.h"

int main(int argc, char **argv) {
    ROUNDS("horolog", mode(argc, argv), argument(argc, argv, 1, 5), argument(argc, argv, 2, 200000),
           HOROLOG_TRIGGER("bench/event", (unsigned long)i, (unsigned long)i + 1));
}
