//! The segments (subjobs) of a task with deferred preemption: an acyclic graph with preemption points between.

use horolog_time::Span;

/// The index of a segment within its graph.
pub type SegmentId = usize;

/// One non-preemptive stretch of a job.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Segment {
    /// Its name, unique within the task; sequential segments without names are called "1", "2", ….
    pub name: String,
    /// Best-case execution time.
    pub bcet: Span,
    /// Worst-case execution time, above zero.
    pub wcet: Span,
    /// The segments that may follow; none after a last one.
    pub next: Vec<SegmentId>,
}

/// An acyclic graph of segments. Every job starts at segment 0, which has no predecessor, and ends at a segment
/// without successors; every segment can be reached. The segments stand in a topological order: `next` only
/// points to higher indices.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SegmentGraph {
    /// The segments in topological order, the entry first.
    pub segments: Vec<Segment>,
}

impl SegmentGraph {
    /// Segments one after the other, each taking its wcet at the most and at the least.
    #[must_use]
    pub fn sequence(wcets: &[Span]) -> SegmentGraph {
        let last = wcets.len().saturating_sub(1);
        let segments = wcets
            .iter()
            .enumerate()
            .map(|(index, &wcet)| Segment {
                name: (index + 1).to_string(),
                bcet: wcet,
                wcet,
                next: if index == last { Vec::new() } else { vec![index + 1] },
            })
            .collect();
        SegmentGraph { segments }
    }

    /// Whether the segments form one sequence without branches.
    #[must_use]
    pub fn is_sequence(&self) -> bool {
        let last = self.segments.len().saturating_sub(1);
        self.segments
            .iter()
            .enumerate()
            .all(|(i, s)| if i == last { s.next.is_empty() } else { s.next == [i + 1] })
    }

    /// The longest path's execution time: the task's wcet. `None` on overflow.
    #[must_use]
    pub fn wcet(&self) -> Option<Span> {
        self.fold_paths(|s| s.wcet, true)
    }

    /// The shortest path's execution time: the task's bcet. `None` on overflow.
    #[must_use]
    pub fn bcet(&self) -> Option<Span> {
        self.fold_paths(|s| s.bcet, false)
    }

    /// For each segment, the least execution time of what follows it, the segment itself excluded; 0 after a last
    /// one. `None` on overflow.
    ///
    /// ```
    /// use horolog_model::SegmentGraph;
    /// use horolog_time::Span;
    /// let ns = Span::from_ns;
    /// let graph = SegmentGraph::sequence(&[ns(3), ns(4), ns(2)]);
    /// assert_eq!(graph.best_remainders(), Some(vec![ns(6), ns(2), ns(0)]));
    /// ```
    #[must_use]
    pub fn best_remainders(&self) -> Option<Vec<Span>> {
        self.remainders(|s| s.bcet, false)
    }

    /// For each segment, the greatest execution time of what follows it, the segment itself excluded; 0 after a
    /// last one. `None` on overflow.
    #[must_use]
    pub fn worst_remainders(&self) -> Option<Vec<Span>> {
        self.remainders(|s| s.wcet, true)
    }

    fn remainders(&self, weight: impl Fn(&Segment) -> Span, longest: bool) -> Option<Vec<Span>> {
        let mut after = vec![Span::ZERO; self.segments.len()];
        for (index, segment) in self.segments.iter().enumerate().rev() {
            let mut best: Option<Span> = None;
            for &next in &segment.next {
                let total = weight(&self.segments[next]).checked_add(after[next])?;
                best = Some(match best {
                    None => total,
                    Some(so_far) if longest => so_far.max(total),
                    Some(so_far) => so_far.min(total),
                });
            }
            after[index] = best.unwrap_or(Span::ZERO);
        }
        Some(after)
    }

    fn fold_paths(&self, weight: impl Fn(&Segment) -> Span, longest: bool) -> Option<Span> {
        let mut total = vec![Span::ZERO; self.segments.len()];
        for (index, segment) in self.segments.iter().enumerate().rev() {
            let after = segment.next.iter().map(|&n| total[n]);
            let after = if longest { after.max() } else { after.min() };
            total[index] = weight(segment).checked_add(after.unwrap_or(Span::ZERO))?;
        }
        total.first().copied()
    }
}
