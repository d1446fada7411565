//! The bounds of suspended waits as verdicts, explanations and words.

use super::{Gap, Part, Waits};
use crate::cpu_model::{CpuModel, CpuTask};
use crate::explanation::{Explanation, Term, TermKind};
use crate::result::{TaskVerdict, TestResult, Verdict};
use crate::utilisation;
use horolog_model::{CpuId, Protocol, TaskId};
use horolog_time::Span;

const OVERLOADED: &str = "tasks of this importance and above that share nothing across processors ask for more than the whole processor";

impl Gap {
    fn words(self, waits: &Waits<'_>) -> String {
        let (mut root, mut gap) = (None, self);
        // Each step names another task, until one that has no bound by itself.
        for _ in 0..waits.members.len() {
            let Gap::RestsOn(other) = gap else { break };
            let Err(next) = waits.members[other].bound else { break };
            (root, gap) = (Some(other), next);
        }
        let why = match gap {
            Self::BeyondPeriod => {
                "no bound within its period is known, and a second job may be there after that"
            }
            Self::RestsOn(_) => "no bound of other tasks is known that it could rest on",
            Self::Section => {
                "a section that it waits for has no bound: what interrupts its processor takes all of it"
            }
            Self::Effort => "the effort allowed by the options ran out before a bound was found",
        };
        root.map_or_else(
            || why.to_owned(),
            |root| format!("rests on the response time of `{}`: {why}", waits.name(root)),
        )
    }
}

impl Waits<'_> {
    fn task(&self, number: usize) -> &CpuTask {
        let member = &self.members[number];
        &self.cpus[member.cpu].tasks[member.place]
    }

    fn name(&self, number: usize) -> &str {
        &self.task(number).name
    }

    /// The name of the test.
    fn test(&self) -> (&'static str, &'static str) {
        match self.rule {
            Protocol::Dpcp => ("fp-dpcp", "raj88"),
            Protocol::FmlpPlus => ("fp-fmlp-plus", "brandenburg11"),
            Protocol::Omlp => ("fp-omlp", "brandenburg11"),
            _ => ("fp-mpcp", "raj90"),
        }
    }

    /// The model of a processor.
    pub(crate) fn model(&self, cpu: CpuId) -> Option<&CpuModel> {
        self.cpus.iter().find(|model| model.cpu == cpu)
    }

    /// What a reader should know of the bounds.
    pub(crate) fn note(&self) -> String {
        let cpus: Vec<String> = self.cpus.iter().map(|model| model.cpu.0.to_string()).collect();
        let locking = self.system.platform().locking.of_section().unwrap_or(Span::MAX);
        let costs = match locking.is_zero() {
            true => "what locking itself costs counts as nothing".to_owned(),
            false => format!("locking itself makes each section longer by {locking}"),
        };
        format!(
            "cpu {}: suspended waits, bounded together: every bound rests on those of the others, and none is above its period; \
             {costs}; sensitivity is not explored",
            cpus.join(", ")
        )
    }

    /// What is found of the tasks of a processor, each with its id.
    pub(crate) fn verdicts(&self, cpu: CpuId) -> Vec<(TaskId, TaskVerdict)> {
        let here = (0..self.members.len()).filter(|&number| self.cpus[self.members[number].cpu].cpu == cpu);
        here.map(|number| (self.task(number).id, self.verdict(number))).collect()
    }

    fn verdict(&self, number: usize) -> TaskVerdict {
        let (member, task) = (&self.members[number], self.task(number));
        let ((test, source), mut blocking) = (self.test(), 0_u64);
        let (verdict, note) = match member.bound {
            Ok(response) if task.deadline.is_none_or(|deadline| response <= deadline) => {
                (Verdict::Meets, None)
            }
            Ok(_) => {
                let why = "the bound is above the deadline and not known to be the least";
                (Verdict::Unknown, Some(why.to_owned()))
            }
            Err(_) if self.is_overloaded(number) => (Verdict::Misses, Some(OVERLOADED.to_owned())),
            Err(gap) => (Verdict::Unknown, Some(gap.words(self))),
        };
        let x = member.bound.map_or(0, |response| response - member.jitter);
        let counted = self.parts(number, x, &mut { u64::MAX }, &mut |part| {
            let is_less_important = matches!(
                part.kind,
                TermKind::BlockingBoosted | TermKind::BlockingSection | TermKind::BlockingElsewhere
            );
            blocking = blocking.saturating_add(if is_less_important { part.time } else { 0 });
        });
        let is_known = counted.is_ok() && member.bound.is_ok();
        TaskVerdict {
            name: task.name.clone(),
            cpu: self.cpus[member.cpu].cpu,
            served_by: None,
            verdict,
            response: member.bound.ok().map(Span::from_ns),
            low_mode: None,
            deadline: task.deadline.map(Span::from_ns),
            test,
            exact: verdict == Verdict::Misses,
            source,
            blocking: is_known.then(|| Span::from_ns(blocking)),
            allowed_segment: None,
            tests: vec![TestResult {
                test,
                verdict,
                response: member.bound.ok().map(Span::from_ns),
                exact: verdict == Verdict::Misses,
                source,
                note,
            }],
            witness: None,
            slack: None,
            remedies: Vec::new(),
        }
    }

    /// Whether the tasks of this importance and above that never wait for other processors, without costs, ask for more than theirs. One that waits
    /// may be held back for ever, and takes nothing then; one that is boosted may go before others instead of missing.
    fn is_overloaded(&self, number: usize) -> bool {
        let (cpu, own) = (self.members[number].cpu, self.members[number].priority.number());
        if !self.members[number].requests.is_empty() {
            return false;
        }
        let above = self.local[cpu].iter().map(|&other| &self.members[other]);
        let above = above.filter(|member| member.priority.number() >= own && member.requests.is_empty());
        let shares = above.map(|member| (self.cpus[cpu].tasks[member.place].bare_wcet, member.separation));
        self.task(number).deadline.is_some() && utilisation::compare_with_one(shares).is_gt()
    }

    /// Where the bound of a task comes from.
    pub(crate) fn explain(&self, id: TaskId) -> Option<Explanation> {
        let number = (0..self.members.len()).find(|&number| self.task(number).id == id)?;
        let (member, task) = (&self.members[number], self.task(number));
        let mut explanation = Explanation::unresolved(&task.name, self.test().0);
        let response = match member.bound {
            Ok(response) => response,
            Err(gap) => {
                let is_overloaded = self.is_overloaded(number);
                explanation.reason =
                    Some(if is_overloaded { OVERLOADED.to_owned() } else { gap.words(self) });
                return Some(explanation);
            }
        };
        let mut terms: Vec<Term> = Vec::new();
        let mut tell = |part: Part| {
            let who = match part.kind {
                TermKind::OwnWork => None,
                TermKind::Outside => Some(self.cpus[member.cpu].names_of_interferences(self.system)),
                _ => part.who.map(|who| self.name(who).to_owned()),
            };
            let resource = part.resource.map(|resource| self.system.resources()[resource].name.clone());
            let is_same = |term: &&mut Term| {
                matches!(part.kind, TermKind::ContextSwitches | TermKind::TimerInterrupts)
                    && term.kind == part.kind
            };
            let count = Some(part.count).filter(|_| part.kind != TermKind::Outside);
            let time = Span::from_ns(part.time);
            match terms.iter_mut().find(is_same) {
                Some(term) => {
                    term.time = Span::from_ns(term.time.as_ns().saturating_add(part.time));
                    term.count = term.count.zip(count).map(|(one, other)| one.saturating_add(other));
                }
                None => terms.push(Term { kind: part.kind, who, resource, count, time }),
            }
        };
        self.parts(number, response - member.jitter, &mut { u64::MAX }, &mut tell).ok()?;
        let jitter = self.system.task(id).jitter.as_ns();
        tell(Part { kind: TermKind::Jitter, who: None, resource: None, count: 1, time: jitter });
        let late = member.jitter - jitter;
        tell(Part { kind: TermKind::ReleaseDelay, who: None, resource: None, count: 1, time: late });
        terms.retain(|term| !term.time.is_zero());
        (explanation.response, explanation.terms) = (Some(Span::from_ns(response)), terms);
        Some(explanation)
    }
}
