//! The closing line: `closing` of the contract.

use horolog_time::Span;
use serde::Serialize;

/// The closing line, word for word as the terminal and the JSON have it.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize)]
pub struct Closing {
    /// `holds`, `no`, `undecided` or `not-allowed`.
    pub word: String,
    /// The exit status.
    pub exit: u8,
    /// The reason in one line.
    pub text: String,
    /// What to do.
    pub help: Option<String>,
    /// Who missed deadlines, and how often.
    pub missed: Vec<Missed>,
    /// What was found, the gravest first.
    pub causes: Vec<Cause>,
}

/// Who missed deadlines.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Missed {
    /// The task, device or request.
    pub name: String,
    /// How many deadlines.
    pub count: u64,
}

/// One thing that the verdict rests on.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Cause {
    /// The class of the findings.
    pub class: String,
    /// The check that found them.
    pub check: String,
    /// The task, thread or interrupt.
    pub subject: String,
    /// How many findings.
    pub count: u64,
    /// By how much the worst one exceeds what is allowed.
    pub worst_excess_ns: Span,
}

/// How many names a line lists, as the closing line does.
const NAMED: usize = 3;

impl Closing {
    /// "9 deadlines missed: motor 7, imu 2"; behind three names only how many more. `None` where none was.
    #[must_use]
    pub fn missed_in_words(&self) -> Option<String> {
        let all: u64 = self.missed.iter().map(|one| one.count).sum();
        let named = self.missed.iter().take(NAMED);
        let mut names: Vec<String> =
            named.map(|one| format!("{} {}", one.name, grouped(one.count))).collect();
        match self.missed.len().saturating_sub(NAMED) {
            0 => {}
            1 => names.push("1 task more".to_owned()),
            more => names.push(format!("{} tasks more", grouped(more as u64))),
        }
        let word = if all == 1 { "deadline" } else { "deadlines" };
        (all > 0).then(|| format!("{} {word} missed: {}", grouped(all), names.join(", ")))
    }

    /// The help for who reads the page without scripts. Where the closing line sends to the page's file, which is open already, this
    /// says what scripts show there.
    #[must_use]
    pub fn help_in_page(&self) -> Option<String> {
        let help = self.help.as_ref()?;
        let Some((before, file)) = help.split_once("find the cause in ") else { return Some(help.clone()) };
        let Some((_, after)) = file.rsplit_once("report.html") else { return Some(help.clone()) };
        let what = if self.missed.is_empty() { "the findings" } else { "the first missed job" };
        Some(format!("{before}look at {what}, with scripts switched on{after}"))
    }
}

/// A count for people: `1,500`.
#[must_use]
pub fn grouped(count: u64) -> String {
    let digits = count.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn says_who_missed_and_how_often() {
        let missed = |all: &[(&str, u64)]| {
            let missed = all.iter().map(|&(name, count)| Missed { name: name.to_owned(), count });
            Closing { missed: missed.collect(), ..Closing::default() }.missed_in_words()
        };
        assert_eq!(missed(&[("motor", 7), ("imu", 2)]).unwrap(), "9 deadlines missed: motor 7, imu 2");
        assert_eq!(missed(&[("motor", 1)]).unwrap(), "1 deadline missed: motor 1");
        assert_eq!(missed(&[]), None);
        let four = [("a", 4), ("b", 3), ("c", 2), ("d", 1)];
        assert_eq!(missed(&four).unwrap(), "10 deadlines missed: a 4, b 3, c 2, 1 task more");
        let many: Vec<(&str, u64)> = four.into_iter().cycle().take(12).collect();
        assert_eq!(missed(&many).unwrap(), "30 deadlines missed: a 4, b 3, c 2, 9 tasks more");
    }

    #[test]
    fn the_page_does_not_send_to_itself() {
        let help = |help: Option<&str>, missed: &[&str]| {
            let missed = missed.iter().map(|&name| Missed { name: name.to_owned(), count: 1 });
            let help = help.map(str::to_owned);
            Closing { help, missed: missed.collect(), ..Closing::default() }.help_in_page()
        };
        let find = "raise wcet to 1.5 ms, or find the cause in out/report.html";
        assert_eq!(
            help(Some(find), &["motor"]).unwrap(),
            "raise wcet to 1.5 ms, or look at the first missed job, with scripts switched on"
        );
        assert_eq!(
            help(Some("find the cause in my report.html/report.html"), &[]).unwrap(),
            "look at the findings, with scripts switched on"
        );
        assert_eq!(help(Some("isolate CPU 1"), &["motor"]).unwrap(), "isolate CPU 1");
        assert_eq!(help(None, &["motor"]), None);
    }
}
