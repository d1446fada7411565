//! Links of the system file (decision 0009).

use horolog_model::{Link, System, file};

const TASKS: &str = "[system]\nname = \"l\"\n[[task]]\nname = \"a\"\nperiod = \"10 ms\"\nwcet = \"1 ms\"\n\
    priority = 1\n[[task]]\nname = \"b\"\narrivals = [\"0 ms\"]\nwcet = \"1 ms\"\npriority = 2\n";

fn read(link: &str) -> Result<System, String> {
    let text = format!("{TASKS}[[link]]\nname = \"pose\"\n{link}");
    file::read(&text, "l.toml", &[]).map(|(system, _)| system).map_err(|errors| errors.to_string())
}

fn refused(link: &str, reason: &str, remedy: &str) {
    let text = read(link).expect_err(reason);
    assert!(text.contains(reason) && text.contains(remedy), "{text}");
}

#[test]
fn a_link_reads_and_reads_back() {
    let system = read("from = \"a\"\nto = [\"b\", \"a\"]\nsize = 65536\n").expect("a valid file");
    let pose = Link {
        name: "pose".into(),
        from: "a".into(),
        to: vec!["b".into(), "a".into()],
        size: Some(65536),
        ..Link::default()
    };
    assert_eq!(system.links(), [pose]);
    assert_eq!(system.writer_of(0).0, 0);
    assert_eq!(system.readers_of(0).map(|id| id.0).collect::<Vec<_>>(), [0, 1]);
    assert_eq!(system.first_beyond_servers(), None);
    for printed in [file::print(&system), file::print_expanded(&system)] {
        assert!(printed.contains("kind = \"let\""), "{printed}");
        assert_eq!(file::read(&printed, "printed", &[]).expect("valid").0, system);
    }
    let bare = read("kind = \"let\"\nfrom = \"a\"\nto = [\"b\"]\nsize = 1\n").expect("valid");
    assert_ne!(bare.digest(), system.digest());
    let other = read("kind = \"let\"\nfrom = \"a\"\nto = [\"b\"]\n").expect("valid");
    assert_ne!(bare.digest(), other.digest());
    assert_eq!(other.links()[0].size, None);
}

#[test]
fn what_a_link_may_not_be_is_refused_with_a_remedy() {
    refused("from = \"b\"\nto = [\"a\"]\n", "`b` has no deadline", "give the task a `deadline`");
    refused("from = \"c\"\nto = [\"a\"]\n", "there is no task `c`", "");
    refused("from = \"a\"\nto = []\n", "nobody reads this link", "name at least one task");
    refused("from = \"a\"\nto = [\"a\", \"a\"]\n", "`a` is named twice", "name it once");
    refused("from = \"a\"\nto = [\"a\", \"c\"]\n", "there is no task `c`", "");
    refused("from = \"a\"\nto = [\"a\"]\nsize = 0\n", "a value has no bytes", "leave `size` out");
    refused("from = \"a\"\nto = [\"a\"]\nsize = 65537\n", "more than the 65536", "an index into memory");
    refused("to = [\"a\"]\n", "needs a `from`", "");
    refused("from = \"a\"\n", "needs a `to`", "");
    let twice = "from = \"a\"\nto = [\"a\"]\n[[link]]\nname = \"pose\"\nfrom = \"a\"\nto = [\"a\"]\n";
    refused(twice, "two links are called `pose`", "give each its own name");
}

#[test]
fn a_value_of_a_link_can_be_replaced_by_name() {
    let text = format!("{TASKS}[[link]]\nname = \"pose\"\nfrom = \"a\"\nto = [\"a\"]\n");
    let (system, _) = file::read(&text, "l.toml", &["link.pose.size=8".into()]).expect("valid");
    assert_eq!(system.links()[0].size, Some(8));
}
