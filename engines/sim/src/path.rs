//! Paths through segment graphs.

use horolog_model::{SegmentGraph, SegmentId};

/// The path with the greatest wcet; of several, the one with the smallest indices.
pub(crate) fn longest_path(graph: &SegmentGraph) -> Vec<u32> {
    // Segments stand in topological order, so a backward pass sees successors first. Whether the whole graph's
    // wcet fits a u64 was checked with the model; u128 is beyond doubt.
    let segments = &graph.segments;
    let mut rest = vec![0_u128; segments.len()];
    for (index, segment) in segments.iter().enumerate().rev() {
        let after = segment.next.iter().map(|&next| rest[next]).max().unwrap_or(0);
        rest[index] = after + u128::from(segment.wcet.as_ns());
    }
    let mut path = Vec::new();
    let mut present = (!segments.is_empty()).then_some(0);
    while let Some(index) = present {
        path.push(index as u32);
        let next = &segments[index].next;
        let longest = next.iter().map(|&n| rest[n]).max();
        present = next.iter().copied().filter(|&n| Some(rest[n]) == longest).min();
    }
    path
}

/// The path as indices, if it leads from the entry to an end along the graph.
pub(crate) fn check_path(graph: &SegmentGraph, path: &[SegmentId]) -> Result<Vec<u32>, String> {
    if path.first() != Some(&0) {
        return Err("a path starts at segment 0".to_owned());
    }
    let segment = |index: SegmentId| graph.segments.get(index).ok_or(format!("there is no segment {index}"));
    for pair in path.windows(2) {
        if !segment(pair[0])?.next.contains(&pair[1]) {
            return Err(format!("segment {} does not follow segment {}", pair[1], pair[0]));
        }
    }
    match path.last() {
        Some(&last) if segment(last)?.next.is_empty() => Ok(path.iter().map(|&index| index as u32).collect()),
        _ => Err("a path ends at a segment without successors".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use horolog_model::Segment;
    use horolog_time::Span;

    fn diamond() -> SegmentGraph {
        let segment = |wcet, next: &[usize]| Segment {
            name: String::new(),
            bcet: Span::from_ns(1),
            wcet: Span::from_ns(wcet),
            next: next.to_vec(),
        };
        SegmentGraph {
            segments: vec![segment(3, &[1, 2]), segment(2, &[3]), segment(6, &[3]), segment(4, &[])],
        }
    }

    #[test]
    fn the_longest_path_goes_through_the_longest_branch() {
        assert_eq!(longest_path(&diamond()), [0, 2, 3]);
    }

    #[test]
    fn paths_follow_the_graph_from_entry_to_end() {
        assert_eq!(check_path(&diamond(), &[0, 1, 3]), Ok(vec![0, 1, 3]));
        for wrong in [&[1, 3][..], &[0, 1][..], &[0, 3], &[0, 1, 2, 3], &[], &[0, 9]] {
            assert!(check_path(&diamond(), wrong).is_err(), "{wrong:?}");
        }
    }
}
