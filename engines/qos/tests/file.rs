//! The file: what is right is read exactly, and what is wrong is told at its place with a remedy.

use horolog_qos::{Class, file::read};

const GOOD: &str = r#"schema = "horolog.qos/1"
[qos]
name = "one"
[[resource]]
name = "cpu"
capacity = 100
[[resource]]
name = "net"
capacity = 50
[[application]]
name = "camera"
weight = 1.5
[[application.dimension]]
name = "format"
weight = 0.001
values = ["small", "large"]
utilities = [0.5, 1]
[[application.dimension]]
name = "rate"
values = ["10 fps", "30 fps"]
utilities = [0.25, 1]
[[application.set_point]]
quality = { format = "small", rate = "10 fps" }
uses = { cpu = 10 }
[[application.set_point]]
quality = { format = "large", rate = "30 fps" }
uses = { cpu = 40, net = 7 }
[[application]]
name = "voice"
set_point = [{ name = "on", utility = 0.000001, uses = { net = 1 } }]
"#;

#[test]
fn a_good_file_is_read_exactly() {
    let problem = read(GOOD, "a.toml").expect("a good file");
    assert_eq!(problem.class(), Class::Mrmd);
    let points = &problem.applications()[0].set_points;
    // 1.5 (0.001 · 0.5 + 0.25) and 1.5 (0.001 + 1).
    assert_eq!((points[0].utility, points[1].utility), (375_750_000, 1_501_500_000));
    assert_eq!(
        (points[0].uses.as_slice(), points[1].uses.as_slice()),
        ([10, 0].as_slice(), [40, 7].as_slice())
    );
    assert_eq!(points[1].name, "large, 30 fps");
    assert_eq!(problem.applications()[1].set_points[0].utility, 1_000);
}

/// One change, and the line, reason and remedy that it brings.
#[test]
fn what_is_wrong_is_told_at_its_place() {
    let mut failures = Vec::new();
    for (from, to, line, reason, remedy) in [
        (
            "horolog.qos/1",
            "horolog.qos/2",
            1,
            "this is another kind of file",
            "begin the file with `schema = \"horolog.qos/1\"`",
        ),
        ("[qos]", "[qso]", 2, "a file of qualities has no `qso`", "did you mean `qos`?"),
        (
            "capacity = 100",
            "capacity = 1.5",
            6,
            "`capacity` takes a whole number here",
            "a whole number from 0 on; state amounts in a unit small enough, as bytes or microseconds",
        ),
        (
            "capacity = 100",
            "capacity = -1",
            6,
            "this number is out of bounds for `capacity`",
            "a whole number from 0 on; state amounts in a unit small enough, as bytes or microseconds",
        ),
        ("name = \"net\"", "name = \"cpu\"", 8, "two resources are called `cpu`", "rename one of them"),
        (
            "weight = 1.5",
            "weight = 1.0005",
            12,
            "this number cannot be kept exactly as `weight`",
            "a number from 0 on with at most 3 decimals, such as 2.5",
        ),
        ("weight = 1.5", "wieght = 1.5", 12, "[[application]] has no key `wieght`", "did you mean `weight`?"),
        (
            "[0.5, 1]",
            "[0.5, 0.4]",
            17,
            "the utility falls from one value to the next",
            "order the values from the least to the best",
        ),
        (
            "[0.5, 1]",
            "[0.5]",
            17,
            "there are 2 values and 1 utilities",
            "give one utility for each value, in the same order",
        ),
        (
            "[\"small\", \"large\"]",
            "[\"small\", \"small\"]",
            16,
            "`small` is here twice",
            "name each value once",
        ),
        (
            "format = \"small\"",
            "format = \"smal\"",
            23,
            "this is not a value of `format`",
            "did you mean `small`?",
        ),
        (
            "format = \"small\", ",
            "",
            23,
            "the set-point says nothing of `format`",
            "add `\"format\" = \"small\"`",
        ),
        (
            "uses = { cpu = 10 }",
            "uses = { gpu = 10 }",
            24,
            "there is no resource `gpu`",
            "did you mean `cpu`?",
        ),
        (
            "uses = { cpu = 10 }",
            "uses = { cpu = 10 }\nutility = 1",
            25,
            "the utility follows from the dimensions",
            "give the utilities of values in [[application.dimension]], and `quality` here",
        ),
        (
            "utility = 0.000001",
            "utility = 0.0000001",
            30,
            "this number cannot be kept exactly as `utility`",
            "a number from 0 on with at most 6 decimals, such as 2.5",
        ),
        (
            "utility = 0.000001, ",
            "",
            30,
            "[[application.set_point]] has no `utility`",
            "add `utility = 1` to `[[application.set_point]]`",
        ),
        (
            "name = \"voice\"",
            "name = \"camera\"",
            29,
            "two applications are called `camera`",
            "rename one of them",
        ),
        (
            "capacity = 100\n",
            "",
            4,
            "[[resource]] has no `capacity`",
            "add `capacity = 1000` to `[[resource]]`",
        ),
        (
            "weight = 0.001",
            "weight = 0.001\nleast = \"large\"\nmost = \"small\"",
            16,
            "`least` lies above `most`",
            "exchange the two",
        ),
    ] {
        assert!(GOOD.contains(from), "{from}");
        let text = GOOD.replacen(from, to, 1);
        let found = read(&text, "a.toml").expect_err(to);
        let all: Vec<_> = found.messages().collect();
        let is_told = |one: &horolog_model::Message| {
            (one.line, one.reason.as_str(), one.remedy.as_str()) == (Some(line), reason, remedy)
        };
        if !all.iter().any(is_told) {
            failures.push(format!("{to}: {all:#?}"));
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

#[test]
fn bounds_of_a_dimension_leave_set_points_out() {
    let text = GOOD.replacen("weight = 0.001", "weight = 0.001\nleast = \"large\"", 1);
    let problem = read(&text, "a.toml").expect("a good file");
    assert_eq!(problem.applications()[0].set_points.len(), 1);
    let text = GOOD.replacen("weight = 0.001", "weight = 0.001\nmost = \"small\"", 1).replacen(
        "format = \"small\", rate",
        "format = \"large\", rate",
        1,
    );
    let found = read(&text, "a.toml").expect_err("nothing is left").to_string();
    assert!(found.contains("no set-point lies between `least` and `most`"), "{found}");
}

#[test]
fn a_divisible_problem_has_one_resource_and_concave_utilities() {
    let of = |points: &str| {
        let text = format!(
            "schema = \"horolog.qos/1\"\nqos = {{ name = \"d\", divisible = true }}\n[[resource]]\nname = \"r\"\ncapacity = 9\n\
             [[application]]\nname = \"a\"\nset_point = [\n{points}\n]\n"
        );
        read(&text, "d.toml").map(|problem| problem.is_divisible()).map_err(|found| found.to_string())
    };
    let point = |name: &str, amount: u64, utility: u64| {
        format!("{{ name = \"{name}\", utility = {utility}, uses = {{ r = {amount} }} }},\n")
    };
    let three = |middle| of(&(point("a", 0, 0) + &point("b", 2, middle) + &point("c", 4, 4)));
    assert_eq!((three(2), three(3)), (Ok(true), Ok(true)));
    assert!(three(1).expect_err("convex").contains("rises faster"));
    assert!(of(&(point("a", 2, 0) + &point("b", 2, 1))).expect_err("no more").contains("do not rise"));
    let two = GOOD.replacen("name = \"one\"", "name = \"one\"\ndivisible = true", 1);
    assert!(read(&two, "a.toml").expect_err("two resources").to_string().contains("several resources"));
}

/// Whatever is cut off, or put in the place of a byte, ends in a message and never in a panic.
#[test]
fn no_text_makes_it_panic() {
    for end in 0..GOOD.len() {
        let _ = read(&GOOD[..end], "a.toml");
    }
    for at in 0..GOOD.len() {
        for byte in ["\"", "[", "}", "-", "9999999999999999999", "\n"] {
            let text = format!("{}{byte}{}", &GOOD[..at], &GOOD[at + 1..]);
            let _ = read(&text, "a.toml");
        }
    }
}

#[test]
fn sums_beyond_63_bits_are_refused() {
    let text = GOOD.replacen("cpu = 40", "cpu = 9223372036854775807", 1);
    assert!(read(&text, "a.toml").is_ok(), "the largest amount alone");
    let text = text.replacen("{ net = 1 }", "{ net = 1, cpu = 1 }", 1);
    let found = read(&text, "a.toml").expect_err("one more").to_string();
    assert!(found.contains("add up to more than 63 bits"), "{found}");
    let text = GOOD.replacen("weight = 1.5", "weight = 9300000000", 1);
    let found = read(&text, "a.toml").expect_err("too useful").to_string();
    assert!(found.contains("larger than 63 bits") || found.contains("more than 63 bits"), "{found}");
}
