//! Audsley's assignment by the tests of mixed criticality.

use super::bounds::LevelTask;

/// The tasks' places, the most important first, such that `holds` says yes of each beside all that stand before it and `loads`, which are above
/// every task; `None` where there is no such order.
///
/// From the least important level up, the last task that holds there takes it (`audsley91`). That finds an order where one exists if
/// `holds` asks for *which* tasks are above and not for their order, says nothing about those below, and goes on to hold where one above is
/// taken away. Static mixed criticality, AMC-rtb and AMC-max do, with tasks that go on with less and without: they are sums over the
/// tasks above, and each sum, and each window that one is taken over, is smaller without one of them. That AMC-max rests on
/// the deadlines of the high tasks above is no more than that these hold where they stand, which is what is looked for.
#[must_use]
pub fn audsley(
    tasks: &[LevelTask],
    loads: &[LevelTask],
    holds: impl Fn(&LevelTask, &[LevelTask]) -> bool,
) -> Option<Vec<usize>> {
    let mut left: Vec<usize> = (0..tasks.len()).collect();
    let mut order = Vec::with_capacity(tasks.len());
    let mut above = Vec::with_capacity(tasks.len() + loads.len());
    while !left.is_empty() {
        let place = (0..left.len()).rev().find(|&place| {
            above.clear();
            above.extend_from_slice(loads);
            above.extend(
                left.iter().enumerate().filter(|(other, _)| *other != place).map(|(_, &index)| tasks[index]),
            );
            holds(&tasks[left[place]], &above)
        })?;
        order.push(left.remove(place));
    }
    order.reverse();
    Some(order)
}
