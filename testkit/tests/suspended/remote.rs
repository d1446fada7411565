//! The equations of sections that execute on the processor of their resource, written out plainly; without costs.

use horolog_model::System;

struct Row {
    cpu: u32,
    priority: i64,
    period: u64,
    jitter: u64,
    wcet: u64,
    /// Whether nothing is left behind its last section elsewhere.
    ends_elsewhere: bool,
    /// The processor of each section, its resource and length.
    remote: Vec<(u32, usize, u64)>,
    /// Resource and length.
    local: Vec<(usize, u64)>,
}

/// The bound of each task; `None`: no bound.
pub fn bounds(system: &System) -> Vec<Option<u64>> {
    let row = |task: &horolog_model::Task| {
        let (mut remote, mut local, mut ends_elsewhere) = (Vec::new(), Vec::new(), false);
        for section in &task.sections {
            let place = system.find_resource(&section.resource).unwrap();
            match system.resources()[place].cpu {
                Some(cpu) => {
                    remote.push((cpu.0, place, section.length.as_ns()));
                    ends_elsewhere |= section.from.as_ns() + section.length.as_ns() == task.wcet.as_ns();
                }
                None => local.push((place, section.length.as_ns())),
            }
        }
        Row {
            cpu: task.cpu.0,
            priority: task.priority.unwrap().number(),
            period: task.separation().unwrap().as_ns(),
            jitter: task.jitter.as_ns(),
            wcet: task.wcet.as_ns(),
            ends_elsewhere,
            remote,
            local,
        }
    };
    let rows: Vec<Row> = system.tasks().iter().map(row).collect();
    let mut found: Vec<Option<u64>> = rows.iter().map(|row| Some(row.jitter + row.wcet)).collect();
    loop {
        let next: Vec<Option<u64>> = (0..rows.len()).map(|i| response(&rows, &found, i)).collect();
        if next == found {
            return found;
        }
        found = next;
    }
}

/// N.
fn jobs(rows: &[Row], found: &[Option<u64>], k: usize, x: u64) -> Option<u64> {
    Some((x + found[k]?) / rows[k].period + 1)
}

/// S.
fn sum(row: &Row, cpu: u32) -> u64 {
    row.remote.iter().filter(|section| section.0 == cpu).map(|section| section.2).sum()
}

/// W on one processor.
fn waits(rows: &[Row], found: &[Option<u64>], i: usize, cpu: u32, x: u64) -> Option<u64> {
    let own = rows[i].priority;
    let mine: Vec<u64> = rows[i].remote.iter().filter(|it| it.0 == cpu).map(|it| it.2).collect();
    let ceiling = |resource: usize| {
        let users = rows.iter().filter(|row| row.remote.iter().any(|section| section.1 == resource));
        users.map(|row| row.priority).max().unwrap()
    };
    let (mut below, mut count) = (0, 0_u64);
    for (k, row) in rows.iter().enumerate().filter(|(_, row)| row.priority < own) {
        let those: Vec<u64> =
            row.remote.iter().filter(|it| it.0 == cpu && ceiling(it.1) >= own).map(|it| it.2).collect();
        below = below.max(those.iter().copied().max().unwrap_or(0));
        let most = jobs(rows, found, k, x).map_or(1_000_000, |jobs| jobs * those.len() as u64);
        count += if those.is_empty() { 0 } else { most };
    }
    let above: Vec<usize> =
        (0..rows.len()).filter(|&k| k != i && rows[k].priority >= own && sum(&rows[k], cpu) > 0).collect();
    let fixed = mine.iter().max().unwrap() + below;
    let mut window = fixed;
    loop {
        let mut next = fixed;
        for &k in &above {
            next += jobs(rows, found, k, window)? * sum(&rows[k], cpu);
        }
        if next == window {
            break;
        }
        window = next;
        if window > rows[i].period {
            return None;
        }
    }
    let mut all = below * count.min(mine.len() as u64);
    for &k in &above {
        let most = mine.len() as u64 * jobs(rows, found, k, window)?;
        all += most.min(jobs(rows, found, k, x)?) * sum(&rows[k], cpu);
    }
    Some(all)
}

fn response(rows: &[Row], found: &[Option<u64>], i: usize) -> Option<u64> {
    let row = &rows[i];
    let here = |k: &usize| *k != i && rows[*k].cpu == row.cpu;
    let reaches = |resource: usize| {
        let at_or_above = rows.iter().filter(|it| it.cpu == row.cpu && it.priority >= row.priority);
        at_or_above.flat_map(|it| &it.local).any(|section| section.0 == resource)
    };
    let lower = (0..rows.len()).filter(here).filter(|&l| rows[l].priority < row.priority);
    let local = lower.flat_map(|l| &rows[l].local).filter(|it| reaches(it.0)).map(|it| it.1).max();
    let local = local.unwrap_or(0) * (row.remote.len() as u64 + 1);
    let mut cpus: Vec<u32> = row.remote.iter().map(|section| section.0).collect();
    cpus.sort_unstable();
    cpus.dedup();
    let mut x = row.wcet;
    loop {
        let mut next = row.wcet + local;
        // It comes home with nothing left: what is released in that instant goes first.
        let until = x + u64::from(row.ends_elsewhere);
        for &cpu in &cpus {
            next += waits(rows, found, i, cpu, until)?;
        }
        for h in (0..rows.len()).filter(here).filter(|&h| rows[h].priority >= row.priority) {
            let of = &rows[h];
            let at_home = of.wcet - of.remote.iter().map(|section| section.2).sum::<u64>();
            next += (until + of.jitter.max(found[h]? - at_home)).div_ceil(of.period) * at_home;
        }
        if next + row.jitter > row.period {
            return None;
        }
        if next == x {
            return Some(x + row.jitter);
        }
        x = next;
    }
}
