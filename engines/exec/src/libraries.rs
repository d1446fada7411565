//! The libraries of bodies, looked at before anything is run or measured: whether each is one, and has the functions that the file names.
//!
//! Nothing is loaded for that, since loading runs code. What only the loader can find is left to it.

use crate::body::place;
use horolog_model::{Body, ModelError, System};
use object::{Object as _, ObjectSymbol as _};
use std::fs::File;
use std::io;
use std::path::Path;

/// The first letters of the libraries that a compiler links by itself. They hold no body.
const COMPILERS: [&str; 9] = [
    "libc.",
    "libm.",
    "libdl.",
    "librt.",
    "libpthread.",
    "libgcc_s.",
    "libstdc++.",
    "libatomic.",
    "ld-linux",
];

/// Larger libraries, and those with more names, are left to the loader.
const MOST_BYTES: u64 = 1 << 30;
const MOST_NAMES: usize = 1 << 16;

/// What is wrong with the libraries of this system; `folder` is where relative paths begin. A bare name that is not there is left to the
/// system's loader.
#[must_use]
pub fn library_faults(system: &System, folder: Option<&Path>) -> Vec<ModelError> {
    let mut faults = Vec::new();
    for task in system.tasks() {
        let Some(Body::Library { library, symbol, init, exit, .. }) = &task.body else { continue };
        let place = place(library, folder);
        let fault = |key: &str, reason: String, remedy: String| {
            let at = format!("task.{}.body.{key}", task.name);
            ModelError { at, reason, remedy }
        };
        let file = match open_regular(&place) {
            Ok(Some(file)) => file,
            Ok(None) => {
                let reason = format!("{} is not a regular file", place.display());
                faults.push(fault("library", reason, "give the path of a shared library".to_owned()));
                continue;
            }
            Err(_) if !library.contains('/') => continue,
            Err(error) => {
                let remedy = "build it first, and give the path from the system file's folder".to_owned();
                faults.push(fault("library", format!("cannot read {}: {error}", place.display()), remedy));
                continue;
            }
        };
        let Some(functions) = functions_of(file) else {
            let reason = format!("{} is not a shared library", place.display());
            faults.push(fault("library", reason, "build it with `cc -shared -fPIC`".to_owned()));
            continue;
        };
        let named = [("symbol", Some(symbol)), ("init", init.as_ref()), ("exit", exit.as_ref())];
        for (key, name) in named.into_iter().filter_map(|(key, name)| Some((key, name?))) {
            if functions.are_all && !functions.names.contains(name) {
                let reason = format!("{library} has no function `{name}`");
                faults.push(fault(key, reason, remedy_for(name, &functions.names)));
            }
        }
    }
    faults
}

/// Opens a file; `None` where it is no regular file: reading a pipe would wait.
fn open_regular(place: &Path) -> io::Result<Option<File>> {
    if std::fs::metadata(place)?.is_file() { File::open(place).map(Some) } else { Ok(None) }
}

/// What a shared library gives to others.
struct Functions {
    /// Its own functions and values.
    names: Vec<String>,
    /// Whether the loader finds no others: it also looks in the libraries that this one needs.
    are_all: bool,
}

/// What a shared library gives to others; `None` where the file is no shared library. Only what is needed of it is read.
fn functions_of(file: File) -> Option<Functions> {
    if file.metadata().is_ok_and(|facts| facts.len() > MOST_BYTES) {
        return Some(Functions { names: Vec::new(), are_all: false });
    }
    let file = object::ReadCache::new(file);
    let file = object::File::parse(&file).ok().filter(|file| file.kind() == object::ObjectKind::Dynamic)?;
    let given = file.dynamic_symbols().filter(|symbol| !symbol.is_undefined());
    let names = given.filter_map(|symbol| symbol.name().ok().map(str::to_owned));
    let names: Vec<String> = names.take(MOST_NAMES).collect();
    let is_compilers = |name: &[u8]| COMPILERS.iter().any(|known| name.starts_with(known.as_bytes()));
    let needs_no_other = file.import_libraries().is_ok_and(|mut needed| {
        needed.all(|library| library.is_ok_and(|library| is_compilers(library.name())))
    });
    // Without sections the names cannot be told.
    let are_all = needs_no_other && names.len() < MOST_NAMES && file.sections().next().is_some();
    Some(Functions { names, are_all })
}

/// The nearest names that are there, else why one may not be seen.
fn remedy_for(name: &str, functions: &[String]) -> String {
    let distance = |known: &str| strsim::damerau_levenshtein(name, known);
    let near = functions.iter().map(|known| (distance(known), known));
    let mut near: Vec<(usize, &String)> =
        near.filter(|(distance, _)| *distance <= name.chars().count().div_ceil(3)).collect();
    near.sort();
    near.dedup();
    match near.as_slice() {
        [] => "check its name, and that it is not static (in C++: extern \"C\")".to_owned(),
        [(_, only)] => format!("did you mean `{only}`?"),
        [(_, first), (_, second), ..] => format!("did you mean `{first}` or `{second}`?"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn faults(body: &str, folder: &Path) -> Vec<ModelError> {
        let text = format!(
            "[system]\nname = \"s\"\n[[task]]\nname = \"a\"\nperiod = \"10 ms\"\nwcet = \"1 ms\"\npriority = 1\nbody = {{ {body} }}\n"
        );
        let (system, _) = horolog_model::file::read(&text, "s.toml", &[]).expect("a valid file");
        library_faults(&system, Some(folder))
    }

    #[test]
    fn a_library_is_looked_at_before_it_is_loaded() {
        let folder = tempfile::tempdir().expect("a folder");
        let at = |name: &str| folder.path().join(name);
        std::fs::write(at("text.so"), "nothing").expect("written");
        std::fs::write(at("e.c"), "int callback(void *job) { return 0; }\n").expect("written");
        let built = std::process::Command::new("cc")
            .args(["-shared", "-fPIC", "-o"])
            .args([at("libe.so"), at("e.c")])
            .status();
        if !built.is_ok_and(|status| status.success()) {
            println!("SKIPPED: no C compiler");
            return;
        }
        let good = r#"library = "./libe.so", symbol = "callback""#;
        assert_eq!(faults(good, folder.path()), []);
        let slip = &faults(&good.replace("callback", "calback"), folder.path())[0];
        assert_eq!(slip.at, "task.a.body.symbol");
        assert_eq!(slip.reason, "./libe.so has no function `calback`");
        assert_eq!(slip.remedy, "did you mean `callback`?");
        let far = &faults(&good.replace("callback", "x"), folder.path())[0];
        assert!(far.remedy.starts_with("check its name"), "{far:?}");
        let none = &faults(&good.replace("libe", "libf"), folder.path())[0];
        assert!(none.at.ends_with("body.library") && none.reason.starts_with("cannot read"), "{none:?}");
        let text = &faults(&good.replace("libe.so", "text.so"), folder.path())[0];
        assert!(text.reason.ends_with("text.so is not a shared library"), "{text:?}");
        // Neither a device without an end nor a pipe without a writer is read.
        let pipe = std::process::Command::new("mkfifo").arg(at("pipe.so")).status();
        assert!(pipe.expect("mkfifo is a program").success());
        for (name, shown) in [("/dev/zero", "/dev/zero"), ("./pipe.so", "pipe.so"), ("pipe.so", "pipe.so")] {
            let body = format!(r#"library = "{name}", symbol = "f""#);
            let told = &faults(&body, folder.path())[0];
            assert!(told.at.ends_with("body.library"), "{told:?}");
            assert!(told.reason.ends_with(&format!("{shown} is not a regular file")), "{told:?}");
        }
        // The loader looks for a bare name where it likes.
        assert_eq!(faults(r#"library = "libhere_is_none.so", symbol = "f""#, folder.path()), []);
    }

    /// A path is shown as the file gives it, from the folder that the file's own path names.
    #[test]
    fn a_library_that_is_missing_is_called_by_a_short_path() {
        for (folder, library, shown) in [
            (".", "./none.so", "./none.so"),
            ("some", "./none.so", "some/none.so"),
            ("some/./where", "in/../none.so", "some/where/in/../none.so"),
        ] {
            let told = &faults(&format!(r#"library = "{library}", symbol = "f""#), Path::new(folder))[0];
            assert!(told.reason.starts_with(&format!("cannot read {shown}: ")), "{told:?}");
        }
    }

    /// What the loader finds is not refused: functions that are chosen when the library is loaded, and those of a library that it needs.
    #[test]
    fn what_the_loader_finds_is_accepted() {
        let folder = tempfile::tempdir().expect("a folder");
        let at = |name: &str| folder.path().join(name);
        let own = "typedef int job(void *);\nstatic int f(void *of) { return 0; }\n\
            static job *choose(void) { return f; }\n\
            int chosen(void *) __attribute__((ifunc(\"choose\")));\n";
        std::fs::write(at("own.c"), own).expect("written");
        std::fs::write(at("other.c"), "int elsewhere(void *job) { return 0; }\n").expect("written");
        let built = |arguments: &[&str]| {
            let cc = std::process::Command::new("cc")
                .current_dir(folder.path())
                .args(["-shared", "-fPIC"])
                .args(arguments)
                .status();
            cc.is_ok_and(|status| status.success())
        };
        let needs = ["-o", "libneeds.so", "own.c", "-Wl,--no-as-needed,-rpath,$ORIGIN", "-L.", "-lother"];
        let is_built =
            built(&["-o", "libown.so", "own.c"]) && built(&["-o", "libother.so", "other.c"]) && built(&needs);
        if !is_built {
            println!("SKIPPED: no C compiler with ifunc");
            return;
        }
        for (library, symbol, is_there) in [
            ("libown.so", "chosen", true),
            ("libown.so", "elsewhere", false),
            ("libneeds.so", "chosen", true),
            ("libneeds.so", "elsewhere", true),
        ] {
            let body = format!(r#"library = "./{library}", symbol = "{symbol}""#);
            assert_eq!(faults(&body, folder.path()).is_empty(), is_there, "{library} {symbol}");
            let loaded = horolog_sys::library::Library::open(&at(library), symbol, None, None);
            assert_eq!(loaded.is_ok(), is_there, "{library} {symbol}");
        }
    }
}
