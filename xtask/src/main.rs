//! Set-up, tests, checks and generated files.
fn main() {}
