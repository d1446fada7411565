//! "Did you mean …?"

/// Words of other tools and papers, with the keys and words of system files that mean the same: the first one that is allowed at the place is suggested.
const SYNONYMS: [(&str, &[&str]); 40] = [
    ("prio", &["priority"]),
    ("importance", &["priority"]),
    ("affinity", &["cpu", "cpus"]),
    ("core", &["cpu"]),
    ("cores", &["cpus"]),
    ("processor", &["cpu"]),
    ("processors", &["cpus"]),
    ("cpuset", &["cpus"]),
    ("rate", &["period", "separation"]),
    ("frequency", &["period", "separation"]),
    ("hz", &["period"]),
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
    ("rm", &["rate-monotonic", "fixed-priority"]),
    ("dm", &["deadline-monotonic", "fixed-priority"]),
    ("fp", &["fixed-priority"]),
];

/// A remedy for an unknown `word`: the one that means the same as another tool's word, the nearest one, or all of them.
#[must_use]
pub fn did_you_mean(word: &str, known: &[&str]) -> String {
    let plain = word.to_lowercase().replace(['-', ' '], "_");
    let meant = SYNONYMS.iter().find(|(synonym, _)| *synonym == plain).map_or(&[][..], |(_, words)| words);
    if let Some(word) = meant.iter().find(|word| known.contains(word)) {
        return format!("did you mean `{word}`?");
    }
    let nearest = known
        .iter()
        .map(|&candidate| {
            (strsim::damerau_levenshtein(&word.to_lowercase(), &candidate.to_lowercase()), candidate)
        })
        .min_by_key(|(distance, _)| *distance)
        .filter(|(distance, candidate)| *distance <= candidate.chars().count().div_ceil(3).max(1));
    match nearest {
        Some((_, candidate)) => format!("did you mean `{candidate}`?"),
        None if known.is_empty() => "there is none here".to_owned(),
        None => {
            let all: Vec<String> = known.iter().take(30).map(|word| format!("`{word}`")).collect();
            format!("known here: {}", all.join(", "))
        }
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
        assert_eq!(did_you_mean("x", &[]), "there is none here");
    }

    #[test]
    fn words_of_other_tools_are_known_where_they_have_a_meaning() {
        let task = ["name", "period", "separation", "priority", "cpu", "wcet", "deadline"];
        for (word, meant) in [
            ("prio", "priority"),
            ("affinity", "cpu"),
            ("Min-Interarrival", "separation"),
            ("MIT", "separation"),
            ("rate", "period"),
        ] {
            assert_eq!(did_you_mean(word, &task), format!("did you mean `{meant}`?"));
        }
        assert_eq!(did_you_mean("rate", &["separation", "cost"]), "did you mean `separation`?");
        assert_eq!(did_you_mean("rm", &["fixed-priority", "edf"]), "did you mean `fixed-priority`?");
        // Where none of them is allowed, the nearest word counts.
        assert_eq!(did_you_mean("prio", &["trio", "cpu"]), "did you mean `trio`?");
        let words: Vec<&str> = SYNONYMS.iter().map(|(word, _)| *word).collect();
        assert!(
            words.iter().enumerate().all(|(place, word)| !words[..place].contains(word)),
            "each word once"
        );
    }
}
