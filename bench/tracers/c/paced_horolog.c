/* horolog: one trigger with two integers, at a fixed rate: `paced_horolog RATE EVENTS`. */
#include <horolog/trace.h>
#include "paced.h"

int main(int argc, char **argv) {
    PACED(argc, argv, HOROLOG_TRIGGER, "bench/event", i, i + 1);
}
