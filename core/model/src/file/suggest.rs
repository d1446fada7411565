//! "Did you mean …?"

/// A remedy for an unknown `word`: the nearest known one, or all of them.
#[must_use]
pub fn did_you_mean(word: &str, known: &[&str]) -> String {
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
}
