//! The processors on which sections of `dpcp` execute (decision 0026).

use super::forest::Forest;
use super::{At, Checker};
use crate::{CpuId, Draft};

impl Checker {
    /// A resource of `dpcp` names a processor, which belongs to such resources alone; no other resource names one.
    pub(super) fn processors_of_sections(&mut self, forest: &Forest<'_>) {
        let draft = forest.draft;
        for (resource, path) in draft.resources.iter().zip(&forest.paths.resources) {
            let name = &resource.name;
            let Some(cpu) = resource.cpu else {
                if resource.protocol.is_remote() {
                    let reason = format!(
                        "the sections of `{name}` execute on the CPU of the resource, and it names none"
                    );
                    self.fail(At::new(path, "protocol"), reason, "add `cpu = NUMBER`, a CPU without tasks");
                }
                continue;
            };
            if !resource.protocol.is_remote() {
                let reason =
                    format!("sections of `{}` execute on the CPUs of their tasks", resource.protocol.word());
                self.fail(At::new(path, "cpu"), reason, "remove `cpu`, or use `protocol = \"dpcp\"`");
                continue;
            }
            self.cpu(cpu, path, &draft.platform);
            if let Some((what, place)) = first_on(draft, forest, cpu) {
                self.fail_beside(
                    At::new(path, "cpu"),
                    format!(
                        "CPU {} has {what}, and sections of `{name}` beside others' work are not there yet",
                        cpu.0
                    ),
                    "name a CPU without tasks, servers and devices",
                    vec![(place, what)],
                );
            }
        }
    }
}

/// What is on a processor beside sections, and where the file says so.
fn first_on(draft: &Draft, forest: &Forest<'_>, cpu: CpuId) -> Option<(String, String)> {
    let at = |path: &str| At::new(path, "cpu").to_string();
    let paths = forest.paths;
    let mut tasks = draft.tasks.iter().zip(&paths.tasks).filter(|(task, _)| task.cpu == cpu);
    let task = tasks.next().map(|(task, path)| (format!("the task `{}`", task.name), at(path)));
    let server = || {
        let mut servers = draft.servers.iter().zip(&paths.servers).filter(|(server, _)| server.cpu == cpu);
        servers.next().map(|(server, path)| (format!("the server `{}`", server.name), at(path)))
    };
    let cluster = || {
        let has = |cluster: &crate::Cluster| cluster.cpus.contains(&cpu);
        let mut clusters = draft.clusters.iter().zip(&paths.clusters).filter(|(cluster, _)| has(cluster));
        let place = |path: &str| At::new(path, "cpus").to_string();
        clusters.next().map(|(cluster, path)| (format!("the cluster `{}`", cluster.name), place(path)))
    };
    task.or_else(server).or_else(cluster)
}
