//! What tells one machine from another, as far as its costs go.

use serde::Serialize;

/// What a machine's costs depend on. A profile with another key is another machine's.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct MachineKey {
    /// The processor's name.
    pub processor: String,
    /// The kernel's release, as `6.18.44`.
    pub kernel: String,
    /// The kernel's command line.
    pub command_line: String,
    /// The hypervisor's name; `none` on bare metal.
    pub hypervisor: String,
    /// The frequency governors of the CPUs; `none` where the kernel does not govern the frequency.
    pub governor: String,
}

impl MachineKey {
    /// The keys in a profile's `[machine]`, in their order.
    pub const NAMES: [&str; 5] = ["processor", "kernel", "command_line", "hypervisor", "governor"];

    /// That of the running machine. What it does not tell is `unknown`.
    #[cfg(feature = "run")]
    #[must_use]
    pub fn of_this_machine() -> MachineKey {
        crate::doctor::machine_key()
    }

    /// The values in the order of [`MachineKey::NAMES`].
    #[must_use]
    pub fn values(&self) -> [&str; 5] {
        [&self.processor, &self.kernel, &self.command_line, &self.hypervisor, &self.governor]
    }

    /// The key of these values.
    #[must_use]
    pub fn of_values([processor, kernel, command_line, hypervisor, governor]: [String; 5]) -> MachineKey {
        MachineKey { processor, kernel, command_line, hypervisor, governor }
    }

    /// What differs from `here`, in words: one entry a key.
    #[must_use]
    pub fn differences(&self, here: &MachineKey) -> Vec<String> {
        let pairs = self.values().into_iter().zip(here.values());
        let named = MachineKey::NAMES.into_iter().zip(pairs);
        named
            .filter(|(_, (theirs, ours))| theirs != ours)
            .map(|(name, (theirs, ours))| format!("{name} `{theirs}` there, `{ours}` here"))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(kernel: &str, governor: &str) -> MachineKey {
        MachineKey::of_values(["cpu", kernel, "quiet", "none", governor].map(str::to_owned))
    }

    #[test]
    fn what_differs_is_named() {
        let ours = key("6.18.44", "none");
        assert!(ours.differences(&ours).is_empty());
        assert_eq!(
            key("6.1.0", "powersave").differences(&ours),
            ["kernel `6.1.0` there, `6.18.44` here", "governor `powersave` there, `none` here"]
        );
        for place in 0..5 {
            let mut values = ours.values().map(str::to_owned);
            values[place].push('x');
            let found = MachineKey::of_values(values).differences(&ours);
            assert!(found.len() == 1 && found[0].starts_with(MachineKey::NAMES[place]), "{found:?}");
        }
    }

    #[cfg(feature = "run")]
    #[test]
    fn this_machine_is_itself() {
        let key = MachineKey::of_this_machine();
        assert_eq!(key, MachineKey::of_this_machine());
        assert!(key.values().iter().all(|value| !value.is_empty()), "{key:?}");
    }
}
