// Shared by the build scripts of the libraries that are preloaded into programs.

/// Has the library bring the compiler's unwinder along. Else each program loads `libgcc_s.so` too, some ten system calls and two
/// pages of memory for what is used only where the library itself goes wrong. The unwinder's records have one form in all
/// versions of gcc, so that the program's own may walk through frames of the library.
fn bring_own_unwinder() {
    let compiler = std::env::var_os("RUSTC_LINKER").unwrap_or_else(|| "cc".into());
    let answer = std::process::Command::new(compiler).arg("-print-file-name=libgcc_eh.a").output();
    let file = answer.ok().and_then(|answer| String::from_utf8(answer.stdout).ok()).unwrap_or_default();
    let file = std::path::Path::new(file.trim());
    // A compiler without that file repeats its name.
    if !file.is_absolute() || !file.exists() {
        return;
    }
    // The standard library asks for `-lgcc_s`, and the linker takes the first file of that name.
    let folder = std::path::PathBuf::from(std::env::var_os("OUT_DIR").unwrap_or_default());
    if std::fs::copy(file, folder.join("libgcc_s.a")).is_ok() {
        println!("cargo::rustc-cdylib-link-arg=-L{}", folder.display());
    }
}
