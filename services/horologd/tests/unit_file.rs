//! The unit file is one that systemd understands.

use std::process::Command;

#[test]
fn systemd_understands_the_unit_file() {
    let unit = concat!(env!("CARGO_MANIFEST_DIR"), "/systemd/horologd.service");
    let text = std::fs::read_to_string(unit).expect("it is there");
    assert!(text.contains("ExecStopPost=/usr/bin/horologd --put-back"));
    let folder = tempfile::tempdir().expect("a folder");
    let copy = folder.path().join("horologd.service");
    std::fs::write(&copy, text.replace("/usr/bin/horologd", env!("CARGO_BIN_EXE_horologd"))).expect("room");
    match Command::new("systemd-analyze").args(["verify", "--man=no"]).arg(&copy).output() {
        Ok(said) => {
            let words = String::from_utf8_lossy(&said.stderr).into_owned();
            assert!(said.status.success() && !words.contains("horologd.service:"), "{words}");
        }
        Err(error) => println!("SKIPPED: systemd-analyze: {error}"),
    }
}
