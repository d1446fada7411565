# The JSON in the head of a simulation's trace: FILE.
. front/cli/tests/documents/json/number.sh
horolog -q simulate "$1" --for 40ms --seed 1 --trace head.hrt > simulated
tail -c +21 head.hrt | head -c "$(number head.hrt 12 4)"
