//! The rules of a segment graph, and the sort that brings one into topological order.

use crate::{Segment, SegmentGraph, SegmentId};
use std::collections::BTreeMap;

/// A rule that a segment graph breaks; the indices are those of the segments as given.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum GraphError {
    /// No segment at all.
    #[error("there are no segments")]
    Empty,
    /// Two segments of one name.
    #[error("segments {first} and {second} have the same name")]
    DuplicateName {
        /// The earlier one.
        first: SegmentId,
        /// The later one.
        second: SegmentId,
    },
    /// `next` points at no segment.
    #[error("segment {from} is followed by a segment that does not exist")]
    UnknownNext {
        /// Whose `next`.
        from: SegmentId,
        /// Which entry of it.
        entry: usize,
    },
    /// `next` names one segment twice.
    #[error("segment {from} names the same next segment twice")]
    RepeatedNext {
        /// Whose `next`.
        from: SegmentId,
        /// Which entry of it repeats an earlier one.
        entry: usize,
    },
    /// The segments follow each other in a circle.
    #[error("the segments {0:?} follow each other in a circle")]
    Cycle(Vec<SegmentId>),
    /// More than one segment has no predecessor.
    #[error("the segments {0:?} have no predecessor: a job has to start at exactly one")]
    SeveralEntries(Vec<SegmentId>),
}

impl SegmentGraph {
    /// Checks the segments and sorts them into topological order: the entry first, and among those that may
    /// stand next always the one given first, so that a graph already in order keeps it.
    ///
    /// The list tells where each segment of the graph stood in `segments`.
    ///
    /// # Errors
    /// Every rule that the segments break; never an empty list. In an acyclic graph with one entry every segment
    /// can be reached, so that there is no rule of its own for it.
    ///
    /// ```
    /// use horolog_model::{Segment, SegmentGraph};
    /// use horolog_time::Span;
    /// let ms = |n| Span::from_ms(n).unwrap();
    /// let segment = |name: &str, next| Segment { name: name.into(), bcet: ms(1), wcet: ms(2), next };
    /// let (graph, order) = SegmentGraph::sorted(&[segment("last", vec![]), segment("first", vec![0])]).unwrap();
    /// assert_eq!(order, [1, 0]);
    /// assert_eq!(graph.wcet(), Some(ms(4)));
    /// ```
    pub fn sorted(segments: &[Segment]) -> Result<(SegmentGraph, Vec<SegmentId>), Vec<GraphError>> {
        let mut errors = local_errors(segments);
        if errors.is_empty() {
            match order(segments) {
                Ok(order) => return Ok((permuted(segments, &order), order)),
                Err(error) => errors.push(error),
            }
        }
        Err(errors)
    }

    /// Every rule that the graph breaks, its order included; empty in a checked system.
    pub(crate) fn errors(&self) -> Vec<GraphError> {
        let mut errors = local_errors(&self.segments);
        if errors.is_empty() {
            errors.extend(order(&self.segments).err());
        }
        errors
    }

    /// Whether `next` only points to higher indices.
    pub(crate) fn is_in_order(&self) -> bool {
        self.segments.iter().enumerate().all(|(index, segment)| segment.next.iter().all(|&next| next > index))
    }
}

/// Errors that one segment or a pair of them shows.
fn local_errors(segments: &[Segment]) -> Vec<GraphError> {
    let mut errors = Vec::new();
    if segments.is_empty() {
        errors.push(GraphError::Empty);
    }
    let mut names: BTreeMap<&str, SegmentId> = BTreeMap::new();
    for (index, segment) in segments.iter().enumerate() {
        match names.get(segment.name.as_str()) {
            Some(&first) => errors.push(GraphError::DuplicateName { first, second: index }),
            None => {
                names.insert(&segment.name, index);
            }
        }
        let mut seen = std::collections::BTreeSet::new();
        for (entry, &next) in segment.next.iter().enumerate() {
            if next >= segments.len() {
                errors.push(GraphError::UnknownNext { from: index, entry });
            } else if !seen.insert(next) {
                errors.push(GraphError::RepeatedNext { from: index, entry });
            }
        }
    }
    errors
}

/// A topological order: the segments' indices, the entry first.
fn order(segments: &[Segment]) -> Result<Vec<SegmentId>, GraphError> {
    let mut predecessors = vec![0_usize; segments.len()];
    for next in segments.iter().flat_map(|segment| &segment.next) {
        predecessors[*next] += 1;
    }
    let entries: Vec<SegmentId> = (0..segments.len()).filter(|&index| predecessors[index] == 0).collect();
    let mut ready: std::collections::BTreeSet<SegmentId> = entries.iter().copied().collect();
    let mut order = Vec::with_capacity(segments.len());
    while let Some(index) = ready.pop_first() {
        order.push(index);
        for &next in &segments[index].next {
            predecessors[next] -= 1;
            if predecessors[next] == 0 {
                ready.insert(next);
            }
        }
    }
    if order.len() < segments.len() {
        return Err(GraphError::Cycle(cycle(segments, &predecessors)));
    }
    if entries.len() > 1 {
        return Err(GraphError::SeveralEntries(entries));
    }
    Ok(order)
}

/// One circle among the segments that still wait for a predecessor, in the order in which they follow each other.
fn cycle(segments: &[Segment], waiting: &[usize]) -> Vec<SegmentId> {
    // Every waiting segment has a waiting predecessor, so walking backwards must come round.
    let mut predecessor = vec![None; segments.len()];
    for (index, segment) in segments.iter().enumerate().filter(|(index, _)| waiting[*index] > 0) {
        for &next in &segment.next {
            predecessor[next].get_or_insert(index);
        }
    }
    let mut steps = vec![None; segments.len()];
    let mut path: Vec<SegmentId> = Vec::new();
    let mut at = waiting.iter().position(|&count| count > 0);
    while let Some(index) = at {
        if let Some(start) = steps[index] {
            let mut circle = path.split_off(start);
            circle.reverse();
            // Start the circle at the segment given first.
            let first =
                circle.iter().enumerate().min_by_key(|(_, segment)| **segment).map_or(0, |(at, _)| at);
            circle.rotate_left(first);
            return circle;
        }
        steps[index] = Some(path.len());
        path.push(index);
        at = predecessor[index];
    }
    path
}

fn permuted(segments: &[Segment], order: &[SegmentId]) -> SegmentGraph {
    let mut place = vec![0; segments.len()];
    for (new, &old) in order.iter().enumerate() {
        place[old] = new;
    }
    let segments = order
        .iter()
        .map(|&old| {
            let segment = &segments[old];
            Segment { next: segment.next.iter().map(|&next| place[next]).collect(), ..segment.clone() }
        })
        .collect();
    SegmentGraph { segments }
}

#[cfg(test)]
mod tests {
    use super::*;
    use horolog_time::Span;

    fn segments(nexts: &[&[SegmentId]]) -> Vec<Segment> {
        let span = Span::from_ns(5);
        nexts
            .iter()
            .enumerate()
            .map(|(i, next)| Segment { name: format!("s{i}"), bcet: span, wcet: span, next: next.to_vec() })
            .collect()
    }

    fn error(nexts: &[&[SegmentId]]) -> Vec<GraphError> {
        SegmentGraph::sorted(&segments(nexts)).unwrap_err()
    }

    #[test]
    fn a_sorted_graph_keeps_its_order() {
        let given = segments(&[&[1, 2], &[3], &[3], &[]]);
        let (graph, order) = SegmentGraph::sorted(&given).unwrap();
        assert_eq!(order, [0, 1, 2, 3]);
        assert_eq!(graph.segments, given);
        assert!(graph.is_in_order() && graph.errors().is_empty());
    }

    #[test]
    fn an_unsorted_graph_is_sorted_and_its_next_follow() {
        let (graph, order) = SegmentGraph::sorted(&segments(&[&[], &[0], &[1, 0]])).unwrap();
        assert_eq!(order, [2, 1, 0]);
        assert_eq!(graph.segments[0].next, [1, 2]);
        assert_eq!(graph.segments[1].next, [2]);
        assert!(graph.is_in_order());
    }

    #[test]
    fn every_rule_is_told() {
        assert_eq!(error(&[]), [GraphError::Empty]);
        assert_eq!(error(&[&[1], &[2], &[1]]), [GraphError::Cycle(vec![1, 2])]);
        assert_eq!(error(&[&[0]]), [GraphError::Cycle(vec![0])]);
        assert_eq!(error(&[&[2], &[2], &[]]), [GraphError::SeveralEntries(vec![0, 1])]);
        assert_eq!(error(&[&[7]]), [GraphError::UnknownNext { from: 0, entry: 0 }]);
        assert_eq!(error(&[&[1, 1], &[]]), [GraphError::RepeatedNext { from: 0, entry: 1 }]);
        let mut twins = segments(&[&[1], &[]]);
        twins[1].name = "s0".into();
        assert_eq!(
            SegmentGraph::sorted(&twins),
            Err(vec![GraphError::DuplicateName { first: 0, second: 1 }])
        );
    }

    #[test]
    fn a_cycle_is_told_in_the_order_of_its_steps() {
        assert_eq!(error(&[&[3], &[2], &[4], &[1], &[3]]), [GraphError::Cycle(vec![1, 2, 4, 3])]);
    }
}
