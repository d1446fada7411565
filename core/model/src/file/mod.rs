//! The system file: [`read`] makes a checked [`System`] of it, [`print()`] writes one that reads back to an equal
//! system. `docs/system-file.md` describes every key.

mod body;
mod criticality;
mod decimal;
mod driver;
mod example;
mod foreign;
pub mod keys;
mod link;
mod mode;
mod overrides;
mod placing;
mod print;
mod reader;
mod references;
mod repair;
mod request;
mod reserve;
mod resource;
mod scheduler;
mod sections;
mod segments;
mod server;
mod suggest;
mod syntax;
pub mod table;
mod task;
mod tree;

pub use placing::{read_unplaced, with_cpus};
pub use print::{print, print_expanded};

use crate::check::{self, Finding, Paths};
use crate::diagnostic::{Diagnostic, Diagnostics};
use crate::source::{self, Place, Source, Text};
use crate::{
    Cluster, Device, Draft, Interference, Interrupt, Link, Mode, Platform, Policy, PriorityAssignment,
    Request, Resource, Server, SpinPriority, System, Task,
};
use reader::Reader;
use scheduler::{Named, Scheduler};
use sections::SystemSection;
use std::collections::BTreeSet;
use std::io::Read as _;
use std::path::Path;
use std::sync::Arc;
pub(crate) use suggest::{Suggestions, is_slip_of};
pub use suggest::{did_you_mean, guess};
use tree::{Node, Table, Value};

/// Reads a system file from its text; `name` is what messages call it. Each override is a path, `=` and a value,
/// as in `task.control.wcet=3 ms`, which replace values of the file in their order.
///
/// # Errors
/// Everything that is wrong with the file and the overrides, in one go.
///
/// ```
/// let text = r#"
/// [system]
/// name = "one loop"
/// [[task]]
/// name = "control"
/// period = "10 ms"
/// wcet = "2 ms"
/// priority = 90
/// "#;
/// let (system, _) = horolog_model::file::read(text, "loop.toml", &["task.control.wcet=3ms".into()]).unwrap();
/// assert_eq!(system.tasks()[0].wcet.to_string(), "3 ms");
///
/// let errors = horolog_model::file::read(text, "loop.toml", &["task.control.wcet=3".into()]).unwrap_err();
/// assert!(errors.to_string().contains("where a duration belongs"));
/// ```
pub fn read(text: &str, name: &str, overrides: &[String]) -> Result<(System, Source), Diagnostics> {
    let texts = texts_of(text, name, overrides);
    let (mut root, found) = tree::parse(text, 0);
    if !found.is_empty() {
        // What a broken file means is a guess; its syntax comes first.
        return Err(Diagnostics::from_list(found, texts));
    }
    if let Some(other) = of_another_verb(&root) {
        return Err(Diagnostics::from_list(vec![other], texts));
    }
    let mut reader = Reader::default();
    reader.sections_meant(&mut root);
    lay_over(&mut reader, &mut root, overrides);
    finish(reader, &root, texts)
}

/// What is told of a file that another verb reads.
fn of_another_verb(root: &Table) -> Option<Diagnostic> {
    if root.get("system").is_some() {
        return None;
    }
    if let Some(experiment) = root.get("experiment") {
        let told = Diagnostic::new(
            "this is an experiment and no system file",
            "run it: `horolog experiment run FILE`",
        );
        return Some(told.place(&experiment.place));
    }
    let schema = root.get("schema")?;
    let Value::Text(word) = &schema.value else { return None };
    let (what, remedy) = match word.split('/').next()? {
        "horolog.sweep" => ("a sweep", "run it: `horolog sweep FILE`"),
        "horolog.qos" => ("a quality-of-service file", "solve it: `horolog qos allocate FILE`"),
        _ => return None,
    };
    Some(Diagnostic::new(format!("this is {what} and no system file"), remedy).place(&schema.place))
}

fn texts_of(text: &str, name: &str, overrides: &[String]) -> Arc<[Text]> {
    let mut texts = vec![Text { name: name.to_owned(), content: text.to_owned() }];
    texts.extend(overrides.iter().map(|set| Text { name: "--set".to_owned(), content: set.clone() }));
    texts.into()
}

/// Lays the overrides over a file's values.
fn lay_over(reader: &mut Reader, root: &mut Table, overrides: &[String]) {
    for (index, set) in overrides.iter().enumerate() {
        if let Err(diagnostic) = overrides::apply(root, set, index + 1) {
            reader.found.push(diagnostic);
        }
    }
}

/// The system that a file's values say.
fn finish(mut reader: Reader, root: &Table, texts: Arc<[Text]>) -> Result<(System, Source), Diagnostics> {
    let draft = reader.file(root);
    reader.beside_unread(root);
    match (draft, reader.found.is_empty()) {
        (Some(draft), true) => {
            let system = System::of_checked(draft);
            Ok((system, Source { texts, places: reader.places, folder: None }))
        }
        _ => {
            let mut found = reader.found;
            // A server whose kind does not belong there needs no priority either.
            let unwanted: BTreeSet<String> = found
                .iter()
                .filter(|one| one.reason().ends_with(check::NEEDS_FIXED_PRIORITIES))
                .filter_map(|one| Some(format!("{}.priority", one.path()?.strip_suffix(".kind")?)))
                .filter(|priority| !reader.places.contains_key(priority))
                .collect();
            found.retain(|one| !one.path().is_some_and(|path| unwanted.contains(path)));
            found.sort_by_key(Diagnostic::start);
            Err(Diagnostics::from_list(found, texts))
        }
    }
}

/// No file that a person or horolog writes is longer, and some that are not files never end.
const MOST_BYTES: u64 = 1 << 30;

/// The bytes of a file, at most a gibibyte.
///
/// # Errors
/// Where it cannot be read or is longer.
pub fn read_bytes(path: &Path) -> std::io::Result<Vec<u8>> {
    bytes_of(std::fs::File::open(path)?)
}

fn bytes_of(stream: impl std::io::Read) -> std::io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    stream.take(MOST_BYTES + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > MOST_BYTES {
        return Err(std::io::Error::other("it is longer than 1 GiB"));
    }
    Ok(bytes)
}

/// The text of a file, at most a gibibyte.
///
/// # Errors
/// Where it cannot be read, is longer, or is not UTF-8.
pub fn read_text(path: &Path) -> std::io::Result<String> {
    String::from_utf8(read_bytes(path)?).map_err(|_| std::io::Error::other("it is not UTF-8"))
}

/// Reads a system file from disk; [`Source::folder`] then tells where its libraries count from.
///
/// # Errors
/// As [`read`]; also where the file cannot be read or is not UTF-8.
pub fn read_path(path: &Path, overrides: &[String]) -> Result<(System, Source), Diagnostics> {
    let name = path.display().to_string();
    let bytes = read_bytes(path).map_err(|error| {
        let remedy = match error.kind() {
            std::io::ErrorKind::NotFound => {
                "check the path; `horolog init` writes a system file to start from"
            }
            std::io::ErrorKind::PermissionDenied => "allow yourself to read it",
            _ => "give the path of a system file",
        };
        Diagnostics::general(format!("cannot read {name}: {error}"), remedy)
    })?;
    let (system, source) = read_utf8(bytes, &name, overrides)?;
    let folder =
        path.parent().map(|folder| if folder.as_os_str().is_empty() { Path::new(".") } else { folder });
    Ok((system, Source { folder: folder.map(Path::to_path_buf), ..source }))
}

/// Reads a system file from a stream, such as the standard input; its libraries count from the working folder.
///
/// # Errors
/// As [`read_path`].
pub fn read_from(
    stream: impl std::io::Read,
    name: &str,
    overrides: &[String],
) -> Result<(System, Source), Diagnostics> {
    let bytes = bytes_of(stream).map_err(|error| {
        Diagnostics::general(format!("cannot read {name}: {error}"), "give a system file")
    })?;
    let (system, source) = read_utf8(bytes, name, overrides)?;
    Ok((system, Source { folder: Some(Path::new(".").to_path_buf()), ..source }))
}

fn read_utf8(bytes: Vec<u8>, name: &str, overrides: &[String]) -> Result<(System, Source), Diagnostics> {
    let text = String::from_utf8(bytes).map_err(|error| {
        let valid = error.utf8_error().valid_up_to();
        let line = error.as_bytes()[..valid].iter().filter(|&&b| b == b'\n').count() + 1;
        Diagnostics::general(format!("{name}, line {line}: this is not UTF-8"), "save the file as UTF-8")
    })?;
    read(&text, name, overrides)
}

impl Reader {
    /// The whole file; `None` where a section could not be read.
    fn file(&mut self, root: &Table) -> Option<Draft> {
        let start = Node { place: Place { text: 0, range: 0..0 }, value: Value::Table(Table::default()) };
        let system = match root.get("system") {
            Some(node) => self.system(node),
            None => {
                let remedy = "start the file with `[system]` and `name = \"…\"` below";
                self.fail(&start, "system", "there is no [system]", remedy);
                SystemSection::unknown()
            }
        };
        let platform = match root.get("platform") {
            Some(node) => self.platform(node),
            None => Some(Platform::default()),
        };
        let nodes = self.items(root, "task");
        let paths = paths_of("task", nodes);
        let server_nodes = self.items(root, "server");
        let server_paths = paths_of("server", server_nodes);
        let scheduler_nodes = self.items(root, "scheduler");
        let scheduler_paths = paths_of("scheduler", scheduler_nodes);
        let cluster_nodes = self.items(root, "cluster");
        let cluster_paths = paths_of("cluster", cluster_nodes);
        let reserve_nodes = self.items(root, "reserve");
        let reserve_paths = paths_of("reserve", reserve_nodes);
        let schedulers: Vec<&Node> = scheduler_nodes.iter().chain(reserve_nodes).collect();
        let named = Named::of(nodes, server_nodes, &schedulers, cluster_nodes);
        let tasks: Vec<Option<Task>> = nodes
            .iter()
            .zip(&paths)
            .map(|(node, path)| self.task(node, path, platform.as_ref(), &named))
            .collect();
        let mut below: Vec<(usize, Option<Scheduler>, String)> = Vec::new();
        let mut unread = BTreeSet::new();
        for (node, path) in server_nodes.iter().zip(server_paths) {
            let server = self.server(node, &path, platform.as_ref());
            below.push((node.place.range.start, server.map(Scheduler::Server), path));
        }
        for (node, path) in scheduler_nodes.iter().zip(scheduler_paths) {
            let scheduler = self.scheduler(node, &path, platform.as_ref(), &named);
            below.push((node.place.range.start, scheduler, path));
        }
        let mut unranked = Vec::new();
        for (node, path) in reserve_nodes.iter().zip(reserve_paths.clone()) {
            let reserve = self.reserve(node, &path, platform.as_ref(), &named);
            if let Some((reserve, false)) = &reserve {
                unranked.push(reserve.name.clone());
            }
            below.push((node.place.range.start, reserve.map(|(it, _)| Scheduler::Server(it)), path));
        }
        for (node, path) in cluster_nodes.iter().zip(cluster_paths) {
            below.push((node.place.range.start, self.cluster(node, &path), path));
        }
        unread.extend(below.iter().filter(|(_, item, _)| item.is_none()).map(|(.., path)| path.clone()));
        let Schedulers { mut servers, server_paths, clusters, cluster_paths, is_complete: all_schedulers } =
            Schedulers::of(below);
        let mode_nodes = self.items(root, "mode");
        let mode_paths = paths_of("mode", mode_nodes);
        let implicit = mode::without_deadline(nodes, &named);
        let modes: Vec<Option<Mode>> =
            mode_nodes.iter().zip(&mode_paths).map(|(node, path)| self.mode(node, path, &implicit)).collect();
        let switch = self.switch(root);
        let interrupt_nodes = self.items(root, "interrupt");
        let interrupt_paths = paths_of("interrupt", interrupt_nodes);
        let interrupts: Vec<Option<Interrupt>> = interrupt_nodes
            .iter()
            .zip(&interrupt_paths)
            .map(|(node, path)| self.interrupt(node, path, platform.as_ref()))
            .collect();
        let device_nodes = self.items(root, "device");
        let device_paths = paths_of("device", device_nodes);
        let devices: Vec<Option<Device>> = device_nodes
            .iter()
            .zip(&device_paths)
            .map(|(node, path)| self.device(node, path, platform.as_ref()))
            .collect();
        let request_nodes = self.items(root, "request");
        let request_paths = paths_of("request", request_nodes);
        let requests: Vec<Option<Request>> =
            request_nodes.iter().zip(&request_paths).map(|(node, path)| self.request(node, path)).collect();
        let resource_nodes = self.items(root, "resource");
        let resource_paths = paths_of("resource", resource_nodes);
        let resources: Vec<Option<Resource>> = resource_nodes
            .iter()
            .zip(&resource_paths)
            .map(|(node, path)| self.resource(node, path))
            .collect();
        let spin_nodes = self.items(root, "spin_priority");
        let cpus: Vec<String> = spin_nodes.iter().map(|node| cpu_of(node).unwrap_or_default()).collect();
        let cpus: Vec<&str> = cpus.iter().map(String::as_str).collect();
        let spin_paths = check::item_paths("spin_priority", &cpus);
        let spin_priorities: Vec<Option<SpinPriority>> = spin_nodes
            .iter()
            .zip(&spin_paths)
            .map(|(node, path)| self.spin_priority(node, path, platform.as_ref()))
            .collect();
        let link_nodes = self.items(root, "link");
        let link_paths = paths_of("link", link_nodes);
        let links: Vec<Option<Link>> =
            link_nodes.iter().zip(&link_paths).map(|(node, path)| self.link_section(node, path)).collect();
        let loads = self.items(root, "interference");
        let load_paths = paths_of("interference", loads);
        let interferences: Vec<Option<Interference>> = loads
            .iter()
            .zip(&load_paths)
            .map(|(node, path)| self.interference(node, path, platform.as_ref()))
            .collect();
        unread.extend(references::unread(&requests, &request_paths));
        unread.extend(references::unread(&links, &link_paths));
        if !unranked.is_empty() {
            let known: Vec<&Task> = tasks.iter().flatten().collect();
            let unplaced = reserve::rank(&mut servers, &unranked, &known);
            for (node, path) in reserve_nodes.iter().zip(&reserve_paths) {
                if unplaced.iter().any(|name| name == name_of(node)) {
                    let reason = "no priority is left above those that are given beside this reserve";
                    let remedy = "lower the highest `priority` beside it, or give it one";
                    self.found.push(Diagnostic::new(reason, remedy).at(path).place(&node.place));
                }
            }
        }
        self.of_values = self.found.len();
        self.references_of_unread(root, &unread);
        // What could be read is checked, so that all messages come in one go.
        let platform = platform?;
        let is_complete = system.is_complete
            && tasks.iter().all(Option::is_some)
            && devices.iter().all(Option::is_some)
            && resources.iter().all(Option::is_some)
            && root.get("task").is_none_or(|node| matches!(node.value, Value::List(_)));
        let (tasks, task_paths) = keep(tasks, paths);
        let all_modes = modes.iter().all(Option::is_some);
        let (modes, mode_paths) = keep(modes, mode_paths);
        let (interrupts, interrupt_paths) = keep(interrupts, interrupt_paths);
        let (devices, device_paths) = keep(devices, device_paths);
        let (requests, request_paths) = keep(requests, request_paths);
        let (resources, resource_paths) = keep(resources, resource_paths);
        let (spin_priorities, spin_paths) = keep(spin_priorities, spin_paths);
        let (links, link_paths) = keep(links, link_paths);
        let (interferences, interference_paths) = keep(interferences, load_paths);
        let mut draft = Draft {
            name: system.name,
            unmodelled: system.unmodelled,
            policy: Policy::default(),
            priorities: PriorityAssignment::default(),
            platform,
            tasks,
            servers,
            clusters,
            modes,
            resources,
            spin_priorities,
            links,
            interrupts,
            devices,
            requests,
            interferences,
        };
        let mut paths = Paths {
            tasks: task_paths,
            servers: server_paths,
            clusters: cluster_paths,
            modes: mode_paths,
            interrupts: interrupt_paths,
            devices: device_paths,
            requests: request_paths,
            resources: resource_paths,
            spin_priorities: spin_paths,
            links: link_paths,
            interferences: interference_paths,
            named: named.into_tasks(),
            all_schedulers,
            all_modes,
        };
        if let Some(switch) = &switch {
            self.expand(switch, &mut draft, &mut paths, nodes);
        } else if root.get("criticality").is_none() {
            self.refuse_degraded();
        }
        let mut common: Option<Vec<Finding>> = None;
        for (policy, priorities) in system.candidates {
            (draft.policy, draft.priorities) = (policy, priorities);
            let mut found = check::check(&draft, &paths, is_complete);
            if let Some(before) = common {
                // Where it is not known which one is meant, only what is wrong under each is told.
                let before: BTreeSet<_> = before.iter().map(|other| key_of(&other.error)).collect();
                found.retain(|one| before.contains(&key_of(&one.error)));
            }
            common = Some(found);
        }
        for finding in common.unwrap_or_default() {
            self.finding(finding);
        }
        is_complete.then_some(draft)
    }

    fn finding(&mut self, finding: Finding) {
        let Finding { error, others } = finding;
        if self.misnamed.contains(&error.at) && !self.places.contains_key(&error.at) {
            return;
        }
        // What is missing altogether is missing from the system.
        let place = source::find(&self.places, &error.at).or_else(|| self.places.get("system").cloned());
        let mut diagnostic =
            Diagnostic::new(error.reason, error.remedy).at(error.at).maybe_place(place.clone());
        for (path, label) in others {
            // A value that is given nowhere has no place of its own to point at.
            if let Some(other) = self.places.get(&path).filter(|other| Some(*other) != place.as_ref()) {
                diagnostic = diagnostic.other(other.clone(), label);
            }
        }
        self.found.push(diagnostic);
    }

    /// Sections under a slightly wrong name are told, and read as what they are meant to be: what is wrong in them is told with it.
    fn sections_meant(&mut self, root: &mut Table) {
        self.unknown_sections(root);
        let known: Vec<&str> = keys::FILE.iter().map(|(key, _)| *key).collect();
        let mut at = 0;
        while at < root.entries.len() {
            let entry = &root.entries[at];
            let is_known =
                known.contains(&entry.key.as_str()) || keys::BELOW.iter().any(|(key, _)| *key == entry.key);
            let meant = if is_known { None } else { section_meant(&entry.key, &known) };
            let Some((key, _)) = meant.filter(|(_, section)| {
                let is_list = matches!(&entry.node.value, Value::List(list) if list.iter().all(is_table));
                if section.header.starts_with("[[") { is_list } else { is_table(&entry.node) }
            }) else {
                at += 1;
                continue;
            };
            let first = root.entries.iter().position(|other| other.key == key);
            match first {
                None => {
                    key.clone_into(&mut root.entries[at].key);
                    at += 1;
                }
                Some(first) => {
                    let Value::List(items) = root.entries.remove(at).node.value else { continue };
                    let first = if first > at { first - 1 } else { first };
                    if let Value::List(list) = &mut root.entries[first].node.value {
                        list.extend(items);
                    }
                }
            }
        }
    }

    fn unknown_sections(&mut self, root: &Table) {
        let known: Vec<&str> = keys::FILE.iter().map(|(key, _)| *key).collect();
        for entry in &root.entries {
            if known.contains(&entry.key.as_str()) {
                continue;
            }
            let homes = keys::homes_of(&entry.key);
            let is_section = match &entry.node.value {
                Value::List(list) => list.first().is_some_and(is_table),
                _ => is_table(&entry.node),
            };
            let header = section_meant(&entry.key, &known).map(|(_, section)| section.header);
            let below = keys::BELOW.iter().find(|(key, _)| *key == entry.key).filter(|_| is_section);
            let remedy = if let Some((_, header)) = below {
                format!("write `{header}` below the item that it belongs to")
            } else if homes.is_empty() || is_section {
                match header {
                    Some(header) => format!("did you mean `{header}`?"),
                    None => did_you_mean(&entry.key, &known),
                }
            } else {
                format!("it belongs below {}", homes.join(" or "))
            };
            self.found.push(
                Diagnostic::new(format!("a system file has no `{}` of its own", entry.key), remedy)
                    .at(&entry.key)
                    .place(&entry.key_place),
            );
        }
    }

    /// The tables of `[[key]]`.
    fn items<'t>(&mut self, root: &'t Table, key: &str) -> &'t [Node] {
        match root.get(key) {
            None => &[],
            Some(Node { value: Value::List(list), .. }) => list,
            Some(node) => {
                let reason = format!("this is {} where a list of tables belongs", node.value.noun());
                self.fail(node, key, reason, format!("write the header with two brackets: `[[{key}]]`"));
                &[]
            }
        }
    }
}

fn is_table(node: &Node) -> bool {
    matches!(node.value, Value::Table(_))
}

/// The section that a name may mean.
fn section_meant(key: &str, known: &[&str]) -> Option<(&'static str, &'static keys::Section)> {
    let meant =
        suggest::meant(key, known).or_else(|| suggest::nearest(key, known).map(|(_, known)| known))?;
    keys::FILE.iter().find(|(key, _)| *key == meant).copied()
}

/// A path an item: by name where that tells which one is meant.
fn paths_of(base: &str, nodes: &[Node]) -> Vec<String> {
    let names: Vec<&str> = nodes.iter().map(name_of).collect();
    check::item_paths(base, &names)
}

fn name_of(node: &Node) -> &str {
    if let Value::Table(table) = &node.value
        && let Some(Node { value: Value::Text(name), .. }) = table.get("name")
    {
        return name;
    }
    ""
}

/// The CPU that an item gives, by which one without a name is called.
fn cpu_of(node: &Node) -> Option<String> {
    let Value::Table(table) = &node.value else { return None };
    match table.get("cpu")?.value {
        Value::Integer(number) => number.map(|number| number.to_string()),
        _ => None,
    }
}

/// Servers and schedulers that could be read, in the order of the file, with their paths.
#[derive(Default)]
struct Schedulers {
    servers: Vec<Server>,
    server_paths: Vec<String>,
    clusters: Vec<Cluster>,
    cluster_paths: Vec<String>,
    /// Whether all of them could be read.
    is_complete: bool,
}

impl Schedulers {
    /// Of items of both sections, each with where it starts.
    fn of(mut items: Vec<(usize, Option<Scheduler>, String)>) -> Schedulers {
        items.sort_by_key(|(start, ..)| *start);
        let mut all = Schedulers { is_complete: true, ..Schedulers::default() };
        for (_, item, path) in items {
            match item {
                Some(Scheduler::Server(server)) => {
                    all.servers.push(server);
                    all.server_paths.push(path);
                }
                Some(Scheduler::Cluster(cluster)) => {
                    all.clusters.push(cluster);
                    all.cluster_paths.push(path);
                }
                None => all.is_complete = false,
            }
        }
        all
    }
}

/// The items that could be read, with their paths.
fn keep<T>(items: Vec<Option<T>>, paths: Vec<String>) -> (Vec<T>, Vec<String>) {
    items.into_iter().zip(paths).filter_map(|(item, path)| Some((item?, path))).unzip()
}

/// All that makes one error differ from another.
fn key_of(error: &crate::ModelError) -> (&str, &str, &str) {
    (&error.at, &error.reason, &error.remedy)
}
