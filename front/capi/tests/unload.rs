//! When the library of a body is unloaded. The only test of its program: no other thread of it comes or goes.

mod common;

use horolog_exec::RunOptions;
use horolog_time::Span;
use std::path::Path;

const CODE: &str = r#"
        #define _GNU_SOURCE
        #include "horolog.h"
        #include <fcntl.h>
        #include <pthread.h>
        #include <unistd.h>
        static char path[4096];
        static volatile int over;
        static pthread_t thread;
        static void *work(void *nothing) {
            while (!over) {
                usleep(2000);
                if (access(path, F_OK) == 0) { unlink(path); }
            }
            return nothing;
        }
        int begin(int argc, const char *const *argv, void **state) {
            (void)argc; (void)state;
            for (unsigned at = 0; at < sizeof path - 1 && argv[0][at]; at++) path[at] = argv[0][at];
            if (pthread_create(&thread, 0, work, 0)) return 1;
            return pthread_setname_np(thread, "lives-on");
        }
        void end(void *state) { (void)state; over = 1; pthread_join(thread, 0); }
        int step(horolog_job *job) { (void)job; return 0; }
    "#;

/// Whether a file is mapped into this process.
fn is_mapped(file: &Path) -> bool {
    let maps = std::fs::read_to_string("/proc/self/maps").expect("procfs");
    maps.lines().any(|line| line.ends_with(&file.display().to_string()))
}

/// A thread that a body has started executes its library's code after the run: the library stays. One without such a thread goes.
#[test]
fn a_library_whose_threads_live_is_never_unloaded() {
    let allowed = horolog_sys::affinity::allowed_cpus().expect("affinity is readable");
    let cpu = *allowed.as_slice().last().expect("at least one processor");
    for functions in ["", ", init = \"begin\", exit = \"end\"", ", init = \"begin\""] {
        let Some(folder) = common::library(CODE) else { return };
        let (file, sign) = (folder.path().join("libtest.so"), folder.path().join("sign"));
        let text = format!(
            "[system]\nname = \"t\"\n[platform]\ncpus = [{cpu}]\n[[task]]\nname = \"t\"\nperiod = \"20 ms\"\nwcet = \"4 ms\"\npriority = 9\n\
             body = {{ library = \"libtest.so\", symbol = \"step\"{functions}, arguments = [\"{}\"] }}\n",
            sign.display()
        );
        let system =
            horolog_model::file::read(&text, "t.toml", &[]).unwrap_or_else(|errors| panic!("{errors}")).0;
        let mut options = RunOptions::for_span(Span::from_ns(100_000_000));
        options.folder = Some(folder.path().to_owned());
        let result = match horolog_exec::run(&system, &options) {
            Err(error) if error.is_not_permitted() => return println!("SKIPPED: {error}"),
            result => result.expect("it runs"),
        };
        let notes = result.outcome.notes;
        let told = notes.iter().filter(|note| note.contains("(1: lives-on ") && note.contains("stay loaded"));
        let lives_on = functions.contains("begin") && !functions.contains("end");
        assert_eq!(
            (is_mapped(&file), told.count()),
            (lives_on, usize::from(lives_on)),
            "{functions}: {notes:?}"
        );
        if lives_on {
            // The thread answers from the library's code.
            std::fs::write(&sign, "").expect("writable");
            while sign.exists() {
                std::thread::sleep(std::time::Duration::from_millis(2));
            }
        }
    }
}
