# The JSON in the foot of a simulation's trace, or of a recording of a program with triggers.
. front/cli/tests/documents/json/number.sh
case $1 in
simulation) horolog -q simulate examples/quick-start/system.toml --seed 1 --trace foot.hrt > simulated ;;
recording)
    gcc -O2 -I "$(horolog --include-dir)" -o foot-program examples/tracing/queue.c
    horolog -q trace record --out foot.hrt -- ./foot-program > recorded ;;
esac
foot=$(number foot.hrt $(($(stat -c %s foot.hrt) - 16)) 8)
tail -c +$((foot + 13)) foot.hrt | head -c "$(number foot.hrt $((foot + 4)) 4)"
