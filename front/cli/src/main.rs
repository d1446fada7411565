//! The horolog command.
fn main() {}
