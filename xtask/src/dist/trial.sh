#!/bin/sh
# Runs in a Debian of its own: installs the package, uses it, removes it; then the tarball. A line a check.
cd /trial || exit 1

check() { # NAME COMMAND...
    name=$1
    shift
    if "$@" >out 2>err; then
        echo "ok $name"
    else
        echo "FAILED $name: $*"
        cat out err
    fi
}

# Without what the package manager, the loader and this script keep themselves.
files() {
    find / -xdev \( -path /trial -o -path /proc -o -path /sys -o -path /dev -o -path /tmp -o -path /var/lib/dpkg -o -path /var/log \
        -o -path /var/cache \) -prune -o -print | sort
}

says() { # WORDS COMMAND...: succeeds, and prints these words
    words=$1
    shift
    "$@" >said 2>&1
    status=$?
    cat said
    [ $status -eq 0 ] && grep -q -- "$words" said
}

uses() { # EXAMPLES: what is installed is used, wherever it is
    cp -r "$1/tracing" "$1/user-library" .
    check "--include-dir" says "^$2/include\$" horolog --include-dir
    check "check" says 'name = "control"' horolog check "$1/quick-start/system.toml"
    check "analyze" says "every deadline is proved" horolog analyze "$1/quick-start/system.toml"
    check "Parquet" sh -c "horolog -q simulate $1/quick-start/system.toml --for '1 s' --seed 1 --trace s.hrt && horolog trace convert s.hrt s.parquet && test -s s.parquet"
    check "a C program by pkg-config" sh -c 'cc -O2 -Wall -Werror $(pkg-config --cflags horolog-trace) -o program tracing/queue.c'
    check "trace record" says "events lost: 0" horolog trace record -o t.hrt -- ./program
    check "its events" says "queue/push" horolog trace stats t.hrt
    check "a thousand pushes" sh -c 'test "$(horolog trace show t.hrt --event queue/push | grep -c queue/push)" -eq 1000'
    printf '#include <pthread.h>\nint main(void){static pthread_mutex_t m=PTHREAD_MUTEX_INITIALIZER;for(int i=0;i<1000;i++){pthread_mutex_lock(&m);pthread_mutex_unlock(&m);}return 0;}\n' >locked.c
    check "a program with a lock" cc -O2 -pthread -o locked locked.c
    check "trace locks" says "locked!main" horolog trace locks -- ./locked
    # The libraries before the sources, too: a linker that drops what is not referred to must not drop the runtime.
    check "the runtime linked, by pkg-config" sh -c 'cc -O2 $(pkg-config --cflags --libs horolog-trace-runtime) -Wl,--as-needed -o linked tracing/queue.c && ./linked'
    check "it is linked" sh -c 'ldd ./linked | grep -q libhorolog_trace.so'
    check "the runtime behind the sources" sh -c 'cc -O2 -Wl,--as-needed -o linked tracing/queue.c $(pkg-config --cflags --libs horolog-trace-runtime) && ldd ./linked | grep -q libhorolog_trace.so'
    check "a task's library, by make" make -C user-library
    check "a loop with it" says "control" horolog loop user-library/system.toml --best-effort --for "200 ms" --gate proof --machine none --out loop
    check "its report" test -s loop/report.html
}

# For the place of what was cut out of the base.
files >before
check "dpkg --install" dpkg --install horolog.deb
check "dpkg --verify" sh -c 'test -z "$(dpkg --verify horolog)"'
check "horolog --version" says "^horolog [0-9]" horolog --version
uses /usr/share/doc/horolog/examples /usr
for file in /usr/share/bash-completion/completions/horolog /usr/share/zsh/vendor-completions/_horolog \
    /usr/share/fish/vendor_completions.d/horolog.fish /usr/share/man/man1/horolog.1.gz /usr/share/man/man1/horolog-loop.1.gz \
    /usr/share/man/man1/horolog-trace-record.1.gz /usr/lib/systemd/system/horolog@.service /usr/share/doc/horolog/copyright \
    /usr/share/doc/horolog/third-party.txt.gz /usr/share/doc/horolog/changelog.gz /usr/share/doc/horolog/references.bib \
    /usr/share/doc/horolog/html/index.html /usr/share/doc/horolog/html/system-file.html /usr/share/doc/horolog/html/trace-format.html /usr/share/doc/horolog/html/install.html /usr/share/doc/horolog/html/reference/verbs.html \
    /usr/share/doc/horolog/html/reference/references.html /usr/share/doc/horolog/html/CONTRIBUTING.html; do
    check "$file" test -s "$file"
done
check "the service runs the installed command" grep -q '^ExecStart=/usr/bin/horolog run' /usr/lib/systemd/system/horolog@.service
check "dpkg --purge" dpkg --purge horolog
files >after
check "nothing is left" diff before after

tar -xzf horolog.tar.gz
mv horolog-*-linux /opt/horolog
PATH=/opt/horolog/bin:$PATH
export PATH
rm -rf tracing user-library program linked loop
cp -r /opt/horolog/share/doc/horolog/examples/user-library .
check "a task's library, by make without pkg-config's path" make -C user-library
rm -rf user-library
PKG_CONFIG_PATH=/opt/horolog/lib/pkgconfig
export PKG_CONFIG_PATH
uses /opt/horolog/share/doc/horolog/examples /opt/horolog
check "the tarball has both licences" test -s /opt/horolog/share/doc/horolog/LICENSE-APACHE -a -s /opt/horolog/share/doc/horolog/LICENSE-MIT

# The command alone, as cargo installs it.
mv /opt/horolog/share/doc/horolog/examples .
rm -rf /opt/horolog
unset PKG_CONFIG_PATH
PATH=/trial/alone:$PATH
check "alone: check" says 'name = "control"' horolog check examples/quick-start/system.toml
check "alone: the headers" sh -c 'cc -O2 -Wall -Werror -I "$(horolog --include-dir)" -o alone/program tracing/queue.c'
check "alone: the headers by pkg-config" sh -c 'PKG_CONFIG_PATH=$(horolog --include-dir)/../lib/pkgconfig pkg-config --exists horolog horolog-trace'
for verb in record top locks; do
    horolog trace $verb -- ./program >told 2>&1
    check "alone: trace $verb ends with 3" test $? -eq 3
    check "alone: it names the package and the tarball" sh -c 'grep -q "the Debian package and the tarball have them" told'
done
check "alone: simulate" says "control" horolog simulate examples/quick-start/system.toml --for "1 s" --seed 1
echo ended
