//! The command as a user types it: `tests/cmd/*.md` and `examples/*/expected.md` hold commands and what
//! they print. `TRYCMD=overwrite` writes the
//! outputs anew.

use std::path::PathBuf;

#[test]
fn commands_print_what_is_written_down() {
    // Commands name files as a user in the repository's root does.
    let root =
        PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().expect("the repository");
    std::env::set_current_dir(&root).expect("the repository");
    trycmd::TestCases::new()
        .register_bin("horolog", std::path::Path::new(env!("CARGO_BIN_EXE_horolog")))
        .env("NO_COLOR", "1")
        // A profile of the machine that runs the tests must not change what they prove.
        .env("XDG_STATE_HOME", "/nonexistent")
        .case("front/cli/tests/cmd/*.md")
        .case("examples/*/expected.md");
}
