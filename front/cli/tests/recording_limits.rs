//! What a recording takes at most: the memory of its rings in a memory cgroup.

mod common;

use common::narrow::Narrow;
use common::{Done, HOROLOG, inside};
use std::process::Stdio;

/// The recorder's page says how much the rings of all processes may have; its second word is the limit.
const TELL_LIMIT: &str = "od -A n -t u8 -j 8 -N 8 \"$HOROLOG_TRACE.budget\"";

#[test]
fn the_rings_take_a_tenth_of_the_recorders_memory_cgroup() {
    let Some(narrow) = Narrow::new("rings") else { return };
    // The limit of a group above counts, too.
    let inner = narrow.inner();
    let folder = tempfile::tempdir().expect("a folder");
    let limit = |group: &Narrow, words: &[&str]| {
        let mut command = group.command(HOROLOG);
        command.args(["-q", "trace", "record", "--out", &inside(&folder, "t.hrt")]).args(words);
        command.args(["--", "sh", "-c", TELL_LIMIT]).stdin(Stdio::null());
        let ended = Done::of(&mut command);
        assert_eq!(ended.status, Some(0), "{ended:?}");
        let told = ended.out.lines().find_map(|line| line.trim().parse::<u64>().ok());
        told.unwrap_or_else(|| panic!("no limit in {ended:?}"))
    };
    let tenth = (256 << 20) / 10;
    assert_eq!((limit(&narrow, &[]), limit(&inner, &[])), (tenth, tenth));
    assert_eq!(limit(&inner, &["--memory", "64M"]), 64 << 20, "what is asked for is given");
}
