//! "Did you mean …?"

/// Words of other tools and papers, with the keys and words of system files that mean the same: the first one that is allowed at the place is suggested.
const SYNONYMS: [(&str, &[&str]); 97] = [
    ("prio", &["priority"]),
    ("importance", &["priority"]),
    ("priority", &["priorities"]),
    ("priority_assignment", &["priorities"]),
    ("cpu_affinity", &["cpu", "cpus"]),
    ("affinity", &["cpu", "cpus"]),
    ("core", &["cpu"]),
    ("cores", &["cpus", "cpu"]),
    ("processor", &["cpu", "platform"]),
    ("processors", &["cpus", "platform"]),
    ("cpuset", &["cpus"]),
    ("rate", &["period", "separation"]),
    ("frequency", &["period", "rate", "separation"]),
    ("hz", &["period", "rate"]),
    ("interval", &["period", "separation"]),
    ("t", &["period"]),
    ("replenishment_period", &["period"]),
    ("mit", &["separation"]),
    ("miat", &["separation"]),
    ("min_interarrival", &["separation"]),
    ("min_interarrival_time", &["separation"]),
    ("minimum_interarrival_time", &["separation"]),
    ("interarrival", &["separation"]),
    ("interarrival_time", &["separation"]),
    ("activation", &["arrivals", "period"]),
    ("phase", &["offset"]),
    ("start", &["offset"]),
    ("c", &["wcet"]),
    ("runtime", &["wcet", "budget"]),
    ("execution_time", &["wcet"]),
    ("worst_case_execution_time", &["wcet"]),
    ("best_case_execution_time", &["bcet"]),
    ("d", &["deadline"]),
    ("relative_deadline", &["deadline"]),
    ("dmin", &["separation"]),
    ("capacity", &["budget"]),
    ("quota", &["budget"]),
    ("q", &["budget"]),
    ("scheduler", &["policy"]),
    ("algorithm", &["policy"]),
    ("policy", &["kind", "protocol"]),
    ("type", &["kind", "protocol"]),
    ("rm", RATE_MONOTONIC),
    ("rms", RATE_MONOTONIC),
    ("rmpo", RATE_MONOTONIC),
    ("rate_monotonic", RATE_MONOTONIC),
    ("dm", DEADLINE_MONOTONIC),
    ("dms", DEADLINE_MONOTONIC),
    ("dmpo", DEADLINE_MONOTONIC),
    ("deadline_monotonic", DEADLINE_MONOTONIC),
    ("opa", &["audsley"]),
    ("fp", &["fixed-priority"]),
    ("fpps", &["fixed-priority"]),
    ("sched_fifo", &["fixed-priority"]),
    ("sched_deadline", &["edf"]),
    ("lock", &["resource"]),
    ("mutex", &["resource"]),
    ("semaphore", &["resource"]),
    ("wcet", &["cost"]),
    ("bcet", &["least_cost"]),
    ("soft", &["constraint"]),
    ("hard", &["constraint"]),
    ("criticality", &["constraint"]),
    ("firm", &["soft"]),
    ("sporadic", &["separation"]),
    ("periodic", &["period"]),
    ("aperiodic", &["arrivals"]),
    ("duration", &["length", "wcet"]),
    ("pip", &["inheritance"]),
    ("pi", &["inheritance"]),
    ("priority_inheritance", &["inheritance"]),
    ("pthread_prio_inherit", &["inheritance"]),
    ("pcp", &["original-ceiling"]),
    ("icpp", &["ceiling"]),
    ("ipcp", &["ceiling"]),
    ("pthread_prio_protect", &["ceiling"]),
    ("srp", &["ceiling"]),
    ("npcs", &["non-preemptive"]),
    ("fmlp", &["fmlp-plus"]),
    ("cbs", &["constant-bandwidth"]),
    ("tbs", &["total-bandwidth"]),
    ("ds", &["deferrable"]),
    ("latency", &["deadline"]),
    ("critical", &["constraint"]),
    ("exec", &["wcet"]),
    ("thread", &["task"]),
    ("threads", &["task"]),
    ("process", &["task"]),
    ("processes", &["task"]),
    ("runnable", &["task"]),
    ("runnables", &["task"]),
    ("job", &["task"]),
    ("jobs", &["task"]),
    ("irq", &["interrupt"]),
    ("isr", &["interrupt"]),
    ("hardware", &["platform"]),
    ("machine", &["platform"]),
];

const RATE_MONOTONIC: &[&str] = &["rate-monotonic", "fixed-priority"];
const DEADLINE_MONOTONIC: &[&str] = &["deadline-monotonic", "fixed-priority"];

/// What the suggested word needs beside it, where it does not say the same by itself.
const HINTS: [(&[&str], &str, &str); 8] = [
    (
        &["rate", "frequency", "hz"],
        "period",
        "a period is 1 divided by the rate: 100 a second is `\"10 ms\"`",
    ),
    (&["wcet"], "cost", "it is the longest execution of one, as in `cost = \"5 us\"`"),
    (&["soft"], "constraint", "write `constraint = \"soft\"`"),
    (&["hard"], "constraint", "write `constraint = \"hard\"`, or leave it out"),
    (&["sporadic"], "separation", "a sporadic task has it in place of a period"),
    (&["firm"], "soft", "a late job of a soft task is counted, and fails no verdict; there is no third kind"),
    (RATE_WORDS, "fixed-priority", "add `priorities = \"rate-monotonic\"` to [system]"),
    (DEADLINE_WORDS, "fixed-priority", "add `priorities = \"deadline-monotonic\"` to [system]"),
];

const RATE_WORDS: &[&str] = &["rm", "rms", "rmpo", "rate_monotonic"];
const DEADLINE_WORDS: &[&str] = &["dm", "dms", "dmpo", "deadline_monotonic"];

/// A word as synonyms are compared.
pub(super) fn plain(word: &str) -> String {
    word.to_lowercase().replace(['-', ' '], "_")
}

/// The known word that means the same as a word of another tool.
pub(super) fn meant<'k>(word: &str, known: &[&'k str]) -> Option<&'k str> {
    meanings(&plain(word)).iter().find_map(|word| known.iter().find(|known| *known == word)).copied()
}

/// The keys and words of system files that mean the same as a plain word of another tool.
pub(super) fn meanings(plain: &str) -> &'static [&'static str] {
    SYNONYMS.iter().find(|(synonym, _)| *synonym == plain).map_or(&[], |(_, words)| words)
}

/// The known word that is nearest, where it is near enough to be a slip.
pub(super) fn nearest<'k>(word: &str, known: &[&'k str]) -> Option<(usize, &'k str)> {
    let distance = |known: &str| strsim::damerau_levenshtein(&word.to_lowercase(), &known.to_lowercase());
    let nearest = known.iter().map(|&known| (distance(known), known)).min_by_key(|(distance, _)| *distance);
    nearest.filter(|(distance, known)| *distance <= known.chars().count().div_ceil(3).max(1))
}

/// Whether a word is so near to another one that it may be a slip of it.
pub(crate) fn is_slip_of(word: &str, other: &str) -> bool {
    nearest(word, &[other]).is_some()
}

/// A remedy for an unknown `word`: the one that means the same as another tool's word, the nearest one, or all of them.
#[must_use]
pub fn did_you_mean(word: &str, known: &[&str]) -> String {
    guess(word, known).unwrap_or_else(|| {
        if known.is_empty() {
            return "the file has none: add it, or correct the name".to_owned();
        }
        let all: Vec<String> = known.iter().take(30).map(|word| format!("`{word}`")).collect();
        format!("known here: {}", all.join(", "))
    })
}

/// A question for an unknown `word`: whether the one that means the same as another tool's word, or the nearest one, was meant; `None`: none is near.
#[must_use]
pub fn guess(word: &str, known: &[&str]) -> Option<String> {
    if let Some(meant) = meant(word, known) {
        let plain = plain(word);
        let hint =
            HINTS.iter().find(|(words, for_word, _)| *for_word == meant && words.contains(&plain.as_str()));
        let hint = hint.map_or_else(String::new, |(.., hint)| format!(" {hint}"));
        return Some(format!("did you mean `{meant}`?{hint}"));
    }
    nearest(word, known).map(|(_, candidate)| format!("did you mean `{candidate}`?"))
}

/// Remedies for many unknown names. A nearest name takes a look at all that are known, so that of very many the last ones go without.
#[derive(Debug)]
pub(crate) struct Suggestions {
    /// How many names may still be looked at.
    looks: usize,
}

impl Default for Suggestions {
    fn default() -> Suggestions {
        Suggestions { looks: 1_000_000 }
    }
}

impl Suggestions {
    /// As [`did_you_mean`], while there are looks left.
    pub(crate) fn did_you_mean<'k>(
        &mut self,
        word: &str,
        known: impl IntoIterator<Item = &'k str>,
    ) -> String {
        if self.looks == 0 {
            return "correct the name".to_owned();
        }
        let known: Vec<&str> = known.into_iter().collect();
        self.looks = self.looks.saturating_sub(known.len());
        did_you_mean(word, &known)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn suggests_only_what_is_near() {
        assert_eq!(did_you_mean("perod", &["period", "deadline"]), "did you mean `period`?");
        assert_eq!(did_you_mean("Policy", &["policy"]), "did you mean `policy`?");
        assert_eq!(did_you_mean("zzz", &["period", "cpu"]), "known here: `period`, `cpu`");
        assert_eq!(did_you_mean("x", &[]), "the file has none: add it, or correct the name");
    }

    #[test]
    fn words_of_other_tools_are_known_where_they_have_a_meaning() {
        let task = ["name", "period", "separation", "priority", "cpu", "wcet", "deadline"];
        for (word, meant) in [
            ("prio", "priority"),
            ("affinity", "cpu"),
            ("Min-Interarrival", "separation"),
            ("MIT", "separation"),
            ("cores", "cpu"),
        ] {
            assert_eq!(did_you_mean(word, &task), format!("did you mean `{meant}`?"));
        }
        assert_eq!(did_you_mean("rate", &["separation", "cost"]), "did you mean `separation`?");
        let policies = ["fixed-priority", "edf"];
        assert_eq!(
            did_you_mean("rm", &policies),
            "did you mean `fixed-priority`? add `priorities = \"rate-monotonic\"` to [system]"
        );
        assert!(
            did_you_mean("deadline-monotonic", &policies)
                .ends_with("`priorities = \"deadline-monotonic\"` to [system]")
        );
        assert_eq!(did_you_mean("SCHED_DEADLINE", &policies), "did you mean `edf`?");
        assert_eq!(did_you_mean("rm", &["rate-monotonic", "audsley"]), "did you mean `rate-monotonic`?");
        assert!(
            did_you_mean("rate", &task)
                .starts_with("did you mean `period`? a period is 1 divided by the rate")
        );
        let protocols = ["mpcp", "msrp", "fslm", "ceiling", "inheritance", "original-ceiling", "fmlp-plus"];
        for (word, meant) in [
            ("PIP", "inheritance"),
            ("PTHREAD_PRIO_INHERIT", "inheritance"),
            ("pcp", "original-ceiling"),
            ("ICPP", "ceiling"),
            ("srp", "ceiling"),
            ("fmlp", "fmlp-plus"),
        ] {
            assert_eq!(did_you_mean(word, &protocols), format!("did you mean `{meant}`?"));
        }
        assert_eq!(
            did_you_mean("CBS", &["deferrable", "constant-bandwidth"]),
            "did you mean `constant-bandwidth`?"
        );
        assert_eq!(did_you_mean("policy", &["name", "kind"]), "did you mean `kind`?");
        assert_eq!(did_you_mean("type", &["name", "protocol"]), "did you mean `protocol`?");
        assert_eq!(did_you_mean("priority", &["name", "policy", "priorities"]), "did you mean `priorities`?");
        // Where none of them is allowed, the nearest word counts.
        assert_eq!(did_you_mean("prio", &["trio", "cpu"]), "did you mean `trio`?");
        let words: Vec<&str> = SYNONYMS.iter().map(|(word, _)| *word).collect();
        assert!(
            words.iter().enumerate().all(|(place, word)| !words[..place].contains(word)),
            "each word once"
        );
    }
}
