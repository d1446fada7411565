//! Segment graphs: the ways that a job can end. What may still follow a segment says
//! [`SegmentGraph::best_remainders`] and its opposite.

use crate::cpu_model::{Ending, Shape};
use horolog_model::SegmentGraph;

impl Shape {
    /// The shape of a segment graph: the switch to the job before its first segment, the switch away after its
    /// last. `None` on overflow.
    pub(crate) fn of_graph(graph: &SegmentGraph, context_switch: u64) -> Option<Shape> {
        let longest_segment = graph.segments.iter().map(|s| s.wcet.as_ns()).max()?;
        let mut endings = endings(graph)?;
        for ending in &mut endings {
            ending.last = ending.last.checked_add(context_switch)?;
            let at_start = if ending.before == 0 { &mut ending.last } else { &mut ending.before };
            *at_start = at_start.checked_add(context_switch)?;
        }
        Some(Shape { preemptive: false, longest_segment, endings })
    }
}

/// Every way that a job can end that no other dominates, by falling work before the last segment.
///
/// For each last segment only the longest path to it counts; of two such pairs the one with less work before the
/// last segment and a last segment no longer is never the worst, so it is left out. `None` on overflow.
#[must_use]
pub fn endings(graph: &SegmentGraph) -> Option<Vec<Ending>> {
    let mut before = vec![0_u64; graph.segments.len()];
    let mut all = Vec::new();
    for (index, segment) in graph.segments.iter().enumerate() {
        let after = before[index].checked_add(segment.wcet.as_ns())?;
        for &next in &segment.next {
            before[next] = before[next].max(after);
        }
        if segment.next.is_empty() {
            all.push(Ending { before: before[index], last: segment.wcet.as_ns() });
        }
    }
    all.sort_by_key(|e| (std::cmp::Reverse(e.before), std::cmp::Reverse(e.last)));
    let mut longest = None;
    all.retain(|e| {
        let keep = longest.is_none_or(|l| e.last > l);
        if keep {
            longest = Some(e.last);
        }
        keep
    });
    Some(all)
}

#[cfg(test)]
mod tests {
    use super::*;
    use horolog_model::Segment;
    use horolog_time::Span;

    fn segment(bcet: u64, wcet: u64, next: &[usize]) -> Segment {
        Segment {
            name: String::new(),
            bcet: Span::from_ns(bcet),
            wcet: Span::from_ns(wcet),
            next: next.to_vec(),
        }
    }

    #[test]
    fn a_diamond_has_one_ending() {
        let graph = SegmentGraph {
            segments: vec![
                segment(2, 3, &[1, 2]),
                segment(4, 6, &[3]),
                segment(1, 2, &[3]),
                segment(3, 4, &[]),
            ],
        };
        assert_eq!(graph.wcet(), Some(Span::from_ns(13)));
        assert_eq!(graph.bcet(), Some(Span::from_ns(6)));
        assert_eq!(endings(&graph), Some(vec![Ending { before: 9, last: 4 }]));
    }

    #[test]
    fn a_shorter_path_with_a_longer_last_segment_stays() {
        let graph = SegmentGraph {
            segments: vec![
                segment(1, 1, &[1, 2, 3]),
                segment(1, 8, &[4]),
                segment(1, 2, &[5]),
                segment(1, 1, &[6]),
                segment(1, 2, &[]),
                segment(1, 8, &[]),
                segment(1, 7, &[]),
            ],
        };
        let expected = vec![Ending { before: 9, last: 2 }, Ending { before: 3, last: 8 }];
        assert_eq!(endings(&graph), Some(expected));
    }

    /// Of 9 and 4, 5 and 2, 3 and 3 the first one dominates both others, though the last two do not dominate each other.
    #[test]
    fn what_any_way_dominates_is_left_out() {
        let graph = SegmentGraph {
            segments: vec![
                segment(1, 1, &[1, 2, 3]),
                segment(1, 8, &[4]),
                segment(1, 4, &[5]),
                segment(1, 2, &[6]),
                segment(1, 4, &[]),
                segment(1, 2, &[]),
                segment(1, 3, &[]),
            ],
        };
        assert_eq!(endings(&graph), Some(vec![Ending { before: 9, last: 4 }]));
    }
}
