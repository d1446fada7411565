#!/usr/bin/env bash
# Test suites of others that take too long for the tests: alone, recorded, and with their locks studied, inside a memory cgroup.
# The same tests must pass, fail and be skipped. Needs Debian's libglib2.0-tests and mariadb-test; what is not there is skipped.
#
#     bench/suites.sh [PATTERN]      PATTERN: which of MariaDB's main tests, by default ^(func|alter|lock|join)
set -uo pipefail
cd "$(dirname "$0")/.."
pattern=${1:-^(func|alter|lock|join)}
horolog=${HOROLOG:-$PWD/target/release/horolog}
[ -x "$horolog" ] || { echo "build it first: cargo build --release -p horolog -p horolog-tracer -p horolog-locks"; exit 2; }
work=$(mktemp -d)
group=
for place in /sys/fs/cgroup/memory /sys/fs/cgroup; do
    limit=$place/horolog-suites/memory.limit_in_bytes
    mkdir "$place/horolog-suites" 2>/dev/null || continue
    [ -e "$limit" ] || limit=$place/horolog-suites/memory.max
    if echo 2G >"$limit" 2>/dev/null; then
        group=$place/horolog-suites
        break
    fi
    rmdir "$place/horolog-suites"
done
[ -n "$group" ] || echo "no memory cgroup can be made here: without one"
trap 'rm -rf "$work"; sleep 1; [ -z "$group" ] || rmdir "$group"' EXIT

# run WAY COMMAND...: the command, alone or below a recorder, inside the cgroup.
run() {
    local way=$1
    shift
    case $way in
        record) set -- "$horolog" -q trace record --out "$work/trace.hrt" -- "$@" ;;
        locks) set -- "$horolog" -q trace locks -- "$@" ;;
    esac
    [ -z "$group" ] || set -- sh -c 'echo $$ >"$0" || exit 125; exec "$@"' "$group/cgroup.procs" "$@"
    "$@" </dev/null 2>&1
}

# compare NAME: the outcomes of the three ways.
compare() {
    local way
    printf '%s: %s outcomes alone' "$1" "$(wc -l <"$work/plain")"
    [ -s "$work/plain" ] || failed=1
    for way in record locks; do
        if diff -u "$work/plain" "$work/$way" >"$work/difference"; then
            printf ', the same in %s' "$way"
        else
            printf ', others in %s:\n' "$way"
            cat "$work/difference"
            failed=1
        fi
    done
    echo
}

failed=0
glib=/usr/libexec/installed-tests/glib
for name in 1bit-mutex thread-deprecated thread-pool-slow; do
    [ -x "$glib/$name" ] || { echo "SKIPPED: $name: no libglib2.0-tests"; continue; }
    for way in plain record locks; do
        run $way "$glib/$name" --tap | grep -oE '^(not )?ok [0-9]+ [^ ]+( # SKIP)?' | sort >"$work/$way"
    done
    compare "glib $name"
done

mtr=/usr/share/mysql/mysql-test
if [ -x "$mtr/mtr" ]; then
    for way in plain record locks; do
        start=$SECONDS
        (cd "$mtr" && run $way ./mtr --force --max-test-fail=0 --retry=0 --suite=main --do-test="$pattern" --vardir="$work/var-$way") |
            grep -oE '^main\.[^ ]+( .*)? \[ (pass|fail|skipped|disabled) \]' | sort >"$work/$way"
        echo "mariadb $way: $((SECONDS - start)) s"
    done
    compare "mariadb main $pattern"
else
    echo "SKIPPED: no mariadb-test"
fi
exit $failed
