//! Gives the library the symbol versions of glibc's condition variables.
//!
//! glibc on x86-64 has two `pthread_cond_wait`: that of 2003 (GLIBC_2.2.5) whose `pthread_cond_t` holds a pointer, and
//! today's (GLIBC_2.3.2). A library that exports one unversioned symbol catches the programs of both and hands one's
//! object to the other's function. So both are exported, which takes named versions beside the anonymous list of
//! symbols that rustc passes to the linker: LLD allows that, GNU ld does not.

use std::path::PathBuf;
use std::process::Command;

include!("../tracer/own_unwinder.rs");

fn main() {
    println!("cargo::rerun-if-changed=symbol-versions.map");
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed=../tracer/own_unwinder.rs");
    bring_own_unwinder();
    println!("cargo::rustc-check-cfg=cfg(versioned_conditions)");
    let target = |what: &str| std::env::var(format!("CARGO_CFG_TARGET_{what}")).unwrap_or_default();
    if target("ARCH") != "x86_64" || target("ENV") != "gnu" || target("OS") != "linux" {
        return;
    }
    let Some(words) = lld() else {
        println!(
            "cargo::warning=no LLD found (rustup's toolchain brings one, Debian's package lld another): \
             libhorolog_locks.so will leave condition variables alone"
        );
        return;
    };
    println!("cargo::rustc-cfg=versioned_conditions");
    for word in words {
        println!("cargo::rustc-cdylib-link-arg={word}");
    }
    let folder = std::env::var("CARGO_MANIFEST_DIR").unwrap_or_default();
    println!("cargo::rustc-cdylib-link-arg=-Wl,--version-script={folder}/symbol-versions.map");
}

/// What makes the C compiler link with LLD: the toolchain's own, else the one in the path.
fn lld() -> Option<Vec<String>> {
    let rustc = std::env::var_os("RUSTC")?;
    let output = Command::new(rustc).args(["--print", "sysroot"]).output().ok()?;
    let sysroot = PathBuf::from(String::from_utf8(output.stdout).ok()?.trim());
    let own = sysroot.join("lib/rustlib").join(std::env::var("HOST").ok()?).join("bin/gcc-ld");
    if own.join("ld.lld").exists() {
        return Some(vec![format!("-B{}", own.display()), "-fuse-ld=lld".to_owned()]);
    }
    let there = Command::new("ld.lld").arg("--version").output().is_ok_and(|output| output.status.success());
    there.then(|| vec!["-fuse-ld=lld".to_owned()])
}
