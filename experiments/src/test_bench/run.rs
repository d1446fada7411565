//! One run of one application under one policy.

use super::metrics::Metrics;
use super::policy::Policy;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// What carried a run out.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Backend {
    /// Virtual time.
    Simulated,
    /// Threads of this machine.
    Real,
}

impl Backend {
    pub(crate) fn word(self) -> &'static str {
        match self {
            Backend::Simulated => "simulated",
            Backend::Real => "real",
        }
    }
}

/// One run, as the journal keeps it.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub(crate) struct Run {
    pub(crate) application: usize,
    pub(crate) policy: Policy,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) gain: Option<u64>,
    pub(crate) backend: Backend,
    pub(crate) metrics: Metrics,
}

/// Which run it is, whatever it came to.
pub(crate) type Key = (Backend, usize, Option<u64>, Policy);

impl Run {
    pub(crate) fn key(&self) -> Key {
        (self.backend, self.application, self.gain, self.policy)
    }
}

impl Serialize for Policy {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.word())
    }
}

impl<'de> Deserialize<'de> for Policy {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Policy, D::Error> {
        let word = String::deserialize(deserializer)?;
        Policy::from_word(&word).ok_or_else(|| serde::de::Error::custom(format!("no policy `{word}`")))
    }
}
