/* The loop alone, as gcc compiles it: what "off" is compared with. */
#include "rounds.h"

int main(int argc, char **argv) {
    ROUNDS("empty-loop-c", "off", argument(argc, argv, 1, 5), argument(argc, argv, 2, 200000), (void)0);
}
