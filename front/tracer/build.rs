//! The library stays loaded: sites that it has switched on call into it.

include!("own_unwinder.rs");

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed=own_unwinder.rs");
    bring_own_unwinder();
    println!("cargo::rustc-cdylib-link-arg=-Wl,-z,nodelete");
}
