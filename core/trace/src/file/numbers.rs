//! What the numbers in a trace's records stand for, as its head says.

use horolog_model::{Companion, Role, System};
use serde::{Deserialize, Serialize};

/// Who is meant by a task number.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Numbered {
    /// A task of the file, by its name.
    Task(String),
    /// The thread that works off the events of this device.
    Device(String),
    /// The background thread of the softirqs of this CPU.
    Background(u32),
}

/// What the numbers in records stand for: the place in each list is the number. An empty list: no record numbers such things.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Numbers {
    /// Tasks: those of the file, then the threads of its drivers that the records tell of.
    pub tasks: Vec<Numbered>,
    /// Servers and schedulers.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub servers: Vec<String>,
    /// Links.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub links: Vec<String>,
    /// Resources.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub resources: Vec<String>,
    /// Devices, the numbers of simulated softirqs; the kernel numbers its own.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub devices: Vec<String>,
    /// Simulated interrupts, then the devices that are served in an interrupt of their own; the kernel numbers its own.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub interrupts: Vec<String>,
    /// Requests.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub requests: Vec<String>,
    /// Modes, the base mode first; none where there is no other.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub modes: Vec<String>,
}

impl Numbers {
    /// Of the records about `companion`, which is one of `system`.
    ///
    /// ```
    /// # let text = "[system]\nname = \"n\"\n[[task]]\nname = \"control\"\nperiod = \"10 ms\"\nwcet = \"2 ms\"\npriority = 90\n\
    /// #     [[device]]\nname = \"network\"\nservice = \"thread\"\npriority = 50\nseparation = \"1 ms\"\ncost = \"10 us\"\n";
    /// use horolog_model::Companion;
    /// use horolog_trace::file::{Numbered, Numbers};
    /// let (system, _) = horolog_model::file::read(text, "network.toml", &[]).unwrap();
    /// let numbers = Numbers::of(&system, &Companion::new(&system).unwrap());
    /// let network = Numbered::Device("network".to_owned());
    /// assert_eq!(numbers.tasks, [Numbered::Task("control".to_owned()), network, Numbered::Background(0)]);
    /// assert_eq!(numbers.companion(&system).unwrap().roles.len(), 3);
    /// ```
    #[must_use]
    pub fn of(system: &System, companion: &Companion) -> Numbers {
        let threads = companion.system.tasks().iter().zip(&companion.roles);
        let numbered = |(task, role): (&horolog_model::Task, &Role)| match role {
            Role::Task => Numbered::Task(task.name.clone()),
            Role::Handler(device) => Numbered::Device(system.devices()[*device].name.clone()),
            Role::Background => Numbered::Background(task.cpu.0),
        };
        let devices: Vec<String> = system.devices().iter().map(|device| device.name.clone()).collect();
        let modes = (0..system.mode_count()).map(|mode| system.mode_name(mode).to_owned());
        let interrupts = system.interrupts().iter().map(|interrupt| interrupt.name.clone());
        Numbers {
            tasks: threads.map(numbered).collect(),
            servers: companion.system.servers().iter().map(|server| server.name.clone()).collect(),
            links: system.links().iter().map(|link| link.name.clone()).collect(),
            resources: system.resources().iter().map(|resource| resource.name.clone()).collect(),
            interrupts: interrupts.chain(devices.iter().cloned()).collect(),
            devices,
            requests: system.requests().iter().map(|request| request.name.clone()).collect(),
            modes: modes.filter(|_| !system.modes().is_empty()).collect(),
        }
    }

    /// The companion of `system` whose threads these numbers name.
    ///
    /// # Errors
    /// In words, where the system does not number its parts like this.
    pub fn companion(&self, system: &System) -> Result<Companion, String> {
        let has_thread = |name: &String| self.tasks.contains(&Numbered::Device(name.clone()));
        let has_background = self.tasks.iter().any(|task| matches!(task, Numbered::Background(_)));
        let companion = Companion::with(system, |device| has_thread(&device.name), has_background)
            .map_err(|error| error.to_string())?;
        let own = Numbers::of(system, &companion);
        let lists = [
            ("task", words(&self.tasks), words(&own.tasks)),
            ("server", self.servers.clone(), own.servers),
            ("link", self.links.clone(), own.links),
            ("resource", self.resources.clone(), own.resources),
            ("device", self.devices.clone(), own.devices),
            ("interrupt", self.interrupts.clone(), own.interrupts),
            ("request", self.requests.clone(), own.requests),
            ("mode", self.modes.clone(), own.modes),
        ];
        for (what, of_trace, of_system) in lists {
            // Nothing is numbered by an empty list, so the file may have more.
            if of_trace != of_system && !of_trace.is_empty() {
                return Err(other_file(what, &of_trace, &of_system));
            }
        }
        Ok(companion)
    }
}

/// What to say where a trace numbers other things than the system has.
pub(super) fn other_file(what: &str, of_trace: &[String], of_system: &[String]) -> String {
    let list = |names: &[String]| if names.is_empty() { "none".to_owned() } else { names.join(", ") };
    format!(
        "the trace is of other {what}s ({}) than the system has ({}); verify it against the file that it was made from",
        list(of_trace),
        list(of_system)
    )
}

fn words(tasks: &[Numbered]) -> Vec<String> {
    let word = |task: &Numbered| match task {
        Numbered::Task(name) => name.clone(),
        Numbered::Device(name) => format!("the thread of device {name}"),
        Numbered::Background(cpu) => format!("the background thread of CPU {cpu}"),
    };
    tasks.iter().map(word).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::file::Header;
    use horolog_time::Span;

    const TEXT: &str = "[system]\nname = \"n\"\n[[task]]\nname = \"a\"\nperiod = \"10 ms\"\nwcet = \"2 ms\"\npriority = 90\n\
        [[task]]\nname = \"b\"\nperiod = \"10 ms\"\nwcet = \"2 ms\"\npriority = 80\n\
        [[device]]\nname = \"x\"\nservice = \"thread\"\npriority = 50\nseparation = \"1 ms\"\ncost = \"10 us\"\n\
        [[device]]\nname = \"y\"\nclass = \"closed\"\nservice = \"thread\"\npriority = 40\nseparation = \"1 ms\"\ncost = \"10 us\"\n\
        [[request]]\nname = \"r\"\ntask = \"b\"\ndevice = \"y\"\n\
        [[link]]\nname = \"l\"\nfrom = \"a\"\nto = [\"b\"]\n";

    fn read(text: &str) -> System {
        horolog_model::file::read(text, "n.toml", &[]).unwrap_or_else(|errors| panic!("{errors}")).0
    }

    fn header(numbers: Option<Numbers>, names: &[&str]) -> Header {
        let names = names.iter().map(|&name| name.to_owned()).collect();
        let mut header = Header::simulated(String::new(), names, 0, Span::ZERO);
        header.numbers = numbers;
        header
    }

    #[test]
    fn a_head_names_its_companion() {
        let system = read(TEXT);
        for companion in [Companion::new(&system), Companion::emulated(&system)] {
            let companion = companion.expect("valid");
            let numbers = Numbers::of(&system, &companion);
            let text = serde_json::to_string(&numbers).expect("JSON");
            let back: Numbers = serde_json::from_str(&text).expect("JSON");
            assert_eq!(back, numbers);
            let found = header(Some(back), &[]).companion(&system).expect("it is of this system");
            assert_eq!(found.roles, companion.roles);
        }
        let numbers = Numbers::of(&system, &Companion::emulated(&system).expect("valid"));
        let text = serde_json::to_string(&numbers).expect("JSON");
        assert!(text.starts_with(r#"{"tasks":[{"task":"a"},{"task":"b"},{"device":"y"}],"#), "{text}");
    }

    #[test]
    fn a_thread_with_the_name_of_a_task_is_no_riddle() {
        // The device's thread is called x' in the companion; a task has that name in the other file.
        let same = read(&TEXT.replace("name = \"a\"", "name = \"x\"").replace("\"a\"", "\"x\""));
        let companion = Companion::new(&same).expect("valid");
        let numbers = Numbers::of(&same, &companion);
        assert_eq!(numbers.tasks[2], Numbered::Device("x".to_owned()));
        assert_eq!(companion.system.tasks()[2].name, "x'");
        assert!(header(Some(numbers), &[]).companion(&same).is_ok());
    }

    #[test]
    fn another_order_of_any_section_is_another_file() {
        let system = read(TEXT);
        let numbers = Numbers::of(&system, &Companion::new(&system).expect("valid"));
        let changes: [fn(&mut Numbers); 6] = [
            |numbers| numbers.tasks.swap(0, 1),
            |numbers| numbers.tasks.swap(2, 3),
            |numbers| numbers.links[0].push('\''),
            |numbers| numbers.devices.swap(0, 1),
            |numbers| numbers.requests.push("s".to_owned()),
            |numbers| numbers.modes.push("m".to_owned()),
        ];
        for (index, change) in changes.into_iter().enumerate() {
            let mut other = numbers.clone();
            change(&mut other);
            let error = header(Some(other), &[]).companion(&system).expect_err("another file");
            assert!(error.contains("verify it against the file"), "{index}: {error}");
        }
    }

    #[test]
    fn what_no_record_numbers_may_come_into_the_file_later() {
        let system = read(TEXT);
        let companion = Companion::emulated(&system).expect("valid");
        let measured = Header::measured(String::new(), Vec::new(), 0, 0).of_companion(&system, &companion);
        let more = "[[interrupt]]\nname = \"eth\"\nseparation = \"1 ms\"\ncost = \"1 us\"\n";
        let more = read(&format!("{TEXT}{more}"));
        assert_eq!(measured.companion(&more).expect("its numbers are the same").roles, companion.roles);
        let simulated =
            Header::simulated(String::new(), Vec::new(), 0, Span::ZERO).of_companion(&system, &companion);
        let error = simulated.companion(&more).expect_err("its interrupts have other numbers");
        assert!(error.contains("other interrupts (x, y) than the system has (eth, x, y)"), "{error}");
    }

    #[test]
    fn without_numbers_a_trace_has_the_tasks_of_the_file_alone() {
        let system = read(TEXT);
        let found = header(None, &["a", "b"]).companion(&system).expect("its own tasks");
        assert_eq!(found.roles, [Role::Task, Role::Task]);
        let error =
            header(None, &["a", "b", "x", "y", "ksoftirqd/0"]).companion(&system).expect_err("a guess");
        assert!(error.contains("record it again"), "{error}");
        let error = header(None, &["b", "a"]).companion(&system).expect_err("another file");
        assert!(error.contains("verify it against the file"), "{error}");
    }
}
