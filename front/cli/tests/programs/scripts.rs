//! Thirty scripts that open, duplicate, move and close files, for bash, dash and busybox alike.

/// Each runs in an empty folder of its own; `$SHELL_UNDER_TEST` is the shell.
pub(crate) const SCRIPTS: [&str; 30] = [
    // A file that the shell has opened, written by subshells.
    "exec 4>data; for i in 1 2 3; do ( echo line $i >&4 ); done; cat data",
    // Both outputs into one file, in order.
    "{ echo out; echo err >&2; echo out again; } >both 2>&1; cat both",
    // Both outputs changed for each other.
    "{ echo out; echo err >&2; } 3>&1 1>&2 2>&3 3>&-",
    // The standard input put aside and taken back.
    "printf 'a\\nb\\n' >in; exec 5<&0 <in; read x; read y; exec <&5 5<&-; echo $x $y",
    // Documents in the script, with and without expansion.
    "v=7; cat <<END; cat <<'END'\nvalue $v $((v * 2))\nEND\nvalue $v\nEND\n",
    // A document under another number.
    "cat 5<<END <&5\nfive\nEND\n",
    // Appending from several processes one after the other.
    "for i in 1 2 3 4; do sh -c \"echo $i\" >>log; done; cat log",
    // No file is overwritten but on purpose.
    "set -C; echo one >f; (echo two >f) 2>/dev/null; echo $?; echo three >|f; cat f",
    // One file for reading and writing.
    "printf 'first\\nsecond\\n' >f; exec 3<>f; read line <&3; echo $line; echo THIRD! >&3; cat f",
    // All numbers closed, and opened again.
    "exec 3>a 4>b 5>c; exec 3>&- 4>&- 5>&-; exec 3>d; echo d >&3; (ls /proc/self/fd; true) | wc -l; cat d",
    // A pipe whose reader writes to a file of the shell.
    "exec 6>f; echo through | (cat >&6); exec 6>&-; cat f",
    // Processes in the background, each with a number of its own.
    "exec 3>x 4>y; (sleep 0.05; echo x >&3) & (echo y >&4) & wait; cat x y",
    // A number closed inside a substitution only.
    "exec 3>f; v=$(exec 3>&-; echo inner); echo $v >&3; cat f",
    // Subshells in subshells, each with a file more.
    "(exec 3>a; (exec 4>b; (exec 5>c; echo c >&5; echo b >&4; echo a >&3))); cat a b c",
    // What is done at the end of the shell goes to a file that it has opened before.
    "exec 3>f; (trap 'echo at the end >&3' EXIT; echo first >&3); cat f",
    // The standard output of the whole rest.
    "exec 7>&1 >f; echo hidden; /bin/echo hidden too; exec >&7 7>&-; echo shown; cat f",
    // The same in a subshell only.
    "(exec >f; echo hidden); echo shown; cat f",
    // A loop that reads a file, and whose body closes its input.
    "printf '1\\n2\\n3\\n' >in; while read n <&3; do echo $n | cat; cat <&-; echo $?; done 3<in 2>/dev/null",
    // A named pipe.
    "mkfifo p; (echo through the pipe >p) & cat <p; wait",
    // Many copies.
    "echo much | tee a b c | tee d >e; cat a b c d e",
    // A file by the name of its number.
    "echo by number >f; cat /dev/fd/3 3<f; cat /proc/self/fd/4 4<f",
    // The open files of a program that a shell starts.
    "exec 3>a; ls /proc/self/fd | wc -l; exec 3>&-; ls /proc/self/fd | wc -l",
    // Children of children write to an inherited number.
    "seq 5 | xargs -n1 sh -c 'echo $0 >&4' 4>f; cat f",
    // What cannot be opened.
    "echo x 2>/dev/null >/nowhere/at/all; echo $?; cat <missing; echo $?; echo y >&8; echo $?",
    // Deaths by signals, and their statuses.
    "sh -c 'sh -c \"kill -9 \\$\\$\"; exit $?' 2>/dev/null; echo $?; (sh -c 'kill -15 $$') 2>/dev/null; echo $?; false; echo $?; exit 3",
    // Seven files at once.
    "exec 3>3 4>4 5>5 6>6 7>7 8>8 9>9; for i in 3 4 5 6 7 8 9; do sh -c \"echo $i >&$i\"; done; cat 3 4 5 6 7 8 9",
    // Few files are allowed.
    "ulimit -n 12; exec 3>a 4>b 5>c; (echo a >&3; echo b >&4; echo c >&5); cat a b c; ls /proc/self/fd | wc -l",
    // A function in a pipe in a subshell with a document.
    "f() { cat <<END\n$1 $2\nEND\n}; (f one two | (read a b; echo $b $a)) 3>&1 | cat",
    // Past a substitution to the shell's own output.
    "exec 3>&1; v=$(echo kept; echo direct >&3); echo $v; exec 3>&-",
    // The shell starts itself anew.
    "exec 4>f; echo one >&4; exec \"$SHELL_UNDER_TEST\" -c 'echo two >&4; cat f; ls /proc/self/fd | wc -l'",
];
