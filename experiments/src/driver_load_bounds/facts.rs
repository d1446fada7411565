//! The trends, each judged by a stated criterion on what was measured.

use super::interference::{Configuration, Receiver};
use super::points::Points;
use super::predict::longest_e2;
use super::table::{Cell, Server};
use super::{E2_US, RATE, tasks};
use crate::{Agreement, Fact};
use horolog_measure::interference::Statistic;

const INTERFERENCE: &str =
    "interference in windows near 10 ms: a driver thread above the probe > idle; below it = idle";
const ORDER: &str = "interference of a driver thread above the probe >= that of softirqs";
const SHAPES: &str = "Traditional's misses grow over three values of e2 or more, Foreground's jump within one, Background's \
                      come last";
const HEARTBEATS: &str = "Background's heartbeats collapse at large e2; Traditional's stay nearly constant";
const FIRST: &str =
    "first misses: Foreground < Sporadic Server < Background; Sporadic Server at 7 ms at the latest";
const PREDICTED: &str = "no server misses at an e2 that the analysis proves with the measured bound";

const STATEMENTS: [(u32, &str, &str); 6] = [
    (10, INTERFERENCE, "figures 4 to 6"),
    (11, ORDER, "figure 5: the thread's worst case is higher"),
    (12, SHAPES, "figure 7"),
    (13, HEARTBEATS, "figure 8"),
    (14, FIRST, "predicted 1.2 ms for Foreground, ideal 7 for the server, about 7 for Background"),
    (15, PREDICTED, "figure 10: predicted none up to 1.2 ms, consistent"),
];

/// All trends where this machine does not allow the experiment.
pub(super) fn not_measurable(reason: &str) -> Vec<Fact> {
    STATEMENTS
        .iter()
        .map(|(number, statement, published)| {
            let agreement = Agreement::NotPermitted(reason.to_owned());
            Fact { agreement, ..Fact::not_measurable(*number, statement, published, reason.to_owned()) }
        })
        .collect()
}

/// All trends.
pub(super) fn all(points: &Points) -> Vec<Fact> {
    let judged = [
        interference(points),
        order(points),
        shapes(points),
        heartbeats(points),
        first_misses(points),
        predictions(points),
    ];
    STATEMENTS
        .iter()
        .zip(judged)
        .map(|((number, statement, published), judged)| match judged {
            Ok((ours, agrees, note)) => Fact::trend(*number, statement, published, ours, agrees, &note),
            Err(reason) => Fact::not_measurable(*number, statement, published, reason),
        })
        .collect()
}

/// (ours, whether it agrees, the criterion), or why it could not be judged.
type Judged = Result<(String, bool, String), String>;

/// The mean share near 10 ms, percent.
fn mean(points: &Points, receiver: Receiver, replies: bool) -> Result<f64, String> {
    let configuration = Configuration { receiver, replies };
    let load = points.load(&configuration).ok_or_else(|| format!("{} is missing", configuration.name()))?;
    Ok(load.mean_ppb as f64 / 1e7)
}

fn interference(points: &Points) -> Judged {
    let idle = mean(points, Receiver::Idle, false)?;
    let (above, below) = (mean(points, Receiver::Above, false)?, mean(points, Receiver::Below, false)?);
    let ours = format!("above {above:.1} %, below {below:.1} %, idle {idle:.1} %");
    let agrees = above > idle && (below - idle).abs() <= 2.0;
    Ok((ours, agrees, "criterion: means, without replies; equal within two points".to_owned()))
}

fn order(points: &Points) -> Judged {
    let pair = |replies| {
        let (above, softirq) =
            (mean(points, Receiver::Above, replies)?, mean(points, Receiver::Softirq, replies)?);
        Ok::<_, String>((format!("{above:.1} % against {softirq:.1} %"), above >= softirq))
    };
    let ((off, off_agrees), (on, on_agrees)) = (pair(false)?, pair(true)?);
    let loads = points.loads().iter().filter(|load| load.configuration.receiver != Receiver::Idle);
    is_flooded(&loads.map(super::points::Load::rate_hz).collect::<Vec<f64>>())
        .map_err(|reason| format!("{reason}; measured: replies off {off}, on {on}"))?;
    let ours = format!("replies off {off}, on {on}");
    Ok((ours, off_agrees && on_agrees, "criterion: means near 10 ms, with and without replies".to_owned()))
}

/// τ2's misses, percent, by e2 in us; nothing is missed where nothing is executed.
fn misses(points: &Points, server: Server) -> Result<Vec<(u64, f64)>, String> {
    let point = |e2_us| {
        let cell = Cell { server, e2_us };
        let outcome =
            points.cell(&cell).ok_or_else(|| format!("{}, {e2_us} us is missing", server.name()))?;
        Ok((e2_us, outcome.misses_percent()))
    };
    std::iter::once(Ok((0, 0.0))).chain(E2_US.into_iter().map(point)).collect()
}

/// What this machine misses anyway: the least of all servers at the smallest e2.
fn floor(points: &Points) -> Result<f64, String> {
    let mut least = f64::INFINITY;
    for server in Server::ALL {
        least = least.min(misses(points, server)?[1].1);
    }
    Ok(least)
}

/// Points above the floor from which on misses are the server's.
const MARGIN: f64 = 10.0;
/// From here on nearly all jobs miss.
const NEARLY_ALL: f64 = 90.0;

/// The first e2 at which misses are the server's own, us; `None`: at none of them.
pub(super) fn onset(points: &Points, server: Server) -> Result<Option<u64>, String> {
    let limit = floor(points)? + MARGIN;
    let curve = misses(points, server)?;
    Ok(curve.iter().find(|(_, misses)| *misses > limit).map(|(e2, _)| *e2))
}

/// How the misses rise from the floor to nearly all.
#[derive(Clone, Copy, PartialEq, Debug)]
struct Rise {
    /// Over how many values of e2: from the first with misses of the server's own to the first with nearly all.
    values: usize,
    /// From where the curve (straight between its points, zero at e2 = 0) passes the one limit to where it passes the other,
    /// us.
    width_us: f64,
}

fn rise(curve: &[(u64, f64)], low: f64) -> Option<Rise> {
    let first = curve.iter().position(|(_, misses)| *misses > low)?;
    let all = curve.iter().position(|(_, misses)| *misses >= NEARLY_ALL)?;
    let passes = |at: usize, limit: f64| {
        let ((x0, y0), (x1, y1)) = (curve[at.saturating_sub(1)], curve[at]);
        let share = if y1 > y0 { ((limit - y0) / (y1 - y0)).clamp(0.0, 1.0) } else { 1.0 };
        x0 as f64 + share * (x1 as f64 - x0 as f64)
    };
    Some(Rise {
        values: all.saturating_sub(first) + 1,
        width_us: passes(all, NEARLY_ALL) - passes(first, low),
    })
}

/// Whether the flood came near to what was asked: else the servers were hardly put to the test.
fn is_flooded(rates_hz: &[f64]) -> Result<(), String> {
    let mean = rates_hz.iter().sum::<f64>() / rates_hz.len().max(1) as f64;
    if mean >= f64::from(RATE) / 2.0 {
        return Ok(());
    }
    Err(format!(
        "the flood reached {:.0} of {} thousand packets a second, since its CPU had other work: run on a quiet machine",
        mean / 1e3,
        RATE / 1_000
    ))
}

fn cell_rates(points: &Points) -> Vec<f64> {
    points.cells().iter().map(super::points::Outcome::rate_hz).collect()
}

/// "Within one": a step of the paper's axis, as far as its text tells.
const JUMP_US: f64 = 1_000.0;

fn shapes(points: &Points) -> Judged {
    is_flooded(&cell_rates(points))?;
    let low = floor(points)? + MARGIN;
    let rise = |server: Server| {
        let none = || format!("{} never misses nearly all: e2 ends too early", server.name());
        rise(&misses(points, server)?, low).ok_or_else(none)
    };
    let (traditional, foreground) = (rise(Server::Traditional)?, rise(Server::Foreground)?);
    let last = |server| onset(points, server).map(|onset| onset.unwrap_or(u64::MAX));
    let background = last(Server::Background)?;
    let mut is_last = true;
    for server in [Server::Traditional, Server::Foreground, Server::Sporadic] {
        is_last &= last(server)? <= background;
    }
    let text = |rise: Rise| format!("over {} values ({:.2} ms)", rise.values, rise.width_us / 1e3);
    let ours = format!(
        "Traditional rises {}, Foreground {}; first misses {}",
        text(traditional),
        text(foreground),
        onsets_text(points)?
    );
    let note = format!(
        "criterion: from {MARGIN} points above the floor of {:.1} % to {NEARLY_ALL} %; a jump within one is one of {:.0} ms at \
         most (the paper's values of e2 are not legible); SCHED_DEADLINE is not in the paper",
        low - MARGIN,
        JUMP_US / 1e3
    );
    let gradual = traditional.values >= 3 && traditional.width_us > foreground.width_us;
    Ok((ours, gradual && foreground.width_us <= JUMP_US && is_last, note))
}

/// Each server's onset; where there is none it reads "none".
fn onsets_text(points: &Points) -> Result<String, String> {
    let texts: Result<Vec<String>, String> = Server::ALL
        .into_iter()
        .map(|server| Ok(format!("{} {}", server.name(), ms(onset(points, server)?))))
        .collect();
    Ok(texts?.join(", "))
}

fn ms(e2_us: Option<u64>) -> String {
    e2_us.map_or_else(|| "none".to_owned(), |us| format!("{} ms", us as f64 / 1e3))
}

fn heartbeats(points: &Points) -> Judged {
    is_flooded(&cell_rates(points))?;
    let curve = |server| -> Result<Vec<f64>, String> {
        let percent = |e2_us| {
            let outcome = points.cell(&Cell { server, e2_us }).ok_or("a point is missing")?;
            Ok(outcome.heartbeats_percent())
        };
        E2_US.into_iter().map(percent).collect()
    };
    let (background, traditional) = (curve(Server::Background)?, curve(Server::Traditional)?);
    let most = |curve: &[f64]| curve.iter().copied().fold(0.0, f64::max);
    let least = |curve: &[f64]| curve.iter().copied().fold(100.0, f64::min);
    let last = background.last().copied().unwrap_or(0.0);
    let spread = most(&traditional) - least(&traditional);
    let ours = format!(
        "Background from {:.0} % to {last:.0} %, Traditional between {:.0} % and {:.0} %",
        most(&background),
        least(&traditional),
        most(&traditional)
    );
    let agrees = last <= 0.75 * most(&background) && spread <= 10.0;
    Ok((ours, agrees, "criterion: to three quarters or less; within ten points".to_owned()))
}

fn first_misses(points: &Points) -> Judged {
    is_flooded(&cell_rates(points))?;
    let onset = |server| onset(points, server).map(|onset| onset.unwrap_or(u64::MAX));
    let (foreground, server, background) =
        (onset(Server::Foreground)?, onset(Server::Sporadic)?, onset(Server::Background)?);
    // First misses at 8 ms, of which 7 are safe, would be ideal.
    let agrees = foreground < server && server < background && server <= 7_000;
    let note = format!(
        "criterion: the first e2 at which tau2 (FIFO {}) misses more than {MARGIN} points above the floor, less what tau1 \
         (FIFO {}) misses",
        tasks::LOW,
        tasks::HIGH
    );
    Ok((onsets_text(points)?, agrees, note))
}

fn predictions(points: &Points) -> Judged {
    let mut texts = Vec::new();
    let mut agrees = true;
    for server in Server::ALL {
        let onset = undisturbed_onset(points, server)?;
        let proven = longest_e2(points, server, Statistic::Max);
        if let Ok(proven) = &proven {
            agrees &= onset.is_none_or(|e2_us| e2_us * 1_000 > proven.as_ns());
        }
        let words = |proven: Result<horolog_time::Span, String>| {
            proven
                .map_or_else(|_| "no bound".to_owned(), |span| format!("{:.2} ms", span.as_ns() as f64 / 1e6))
        };
        texts.push(format!(
            "{} proven to {} (p95 {}, median {}), misses from {}",
            server.name(),
            words(proven),
            words(longest_e2(points, server, Statistic::P95)),
            words(longest_e2(points, server, Statistic::Median)),
            ms(onset)
        ));
    }
    let held =
        points.cells().iter().filter(|outcome| outcome.held_back.is_some_and(|count| count > 0)).count();
    let note = format!(
        "criterion: the first misses above the floor come after what the bound of the maxima proves; \
         {held} points in which the fair server or RT throttling held a real-time thread back are not judged; no bound: a \
         window of the maxima was filled, or nothing was taken"
    );
    Ok((texts.join("; "), agrees, note))
}

/// The same without the points in which the kernel held a real-time thread back: that is no interference of the network.
fn undisturbed_onset(points: &Points, server: Server) -> Result<Option<u64>, String> {
    let limit = floor(points)? + MARGIN;
    let counts = |e2_us: u64| {
        points.cell(&Cell { server, e2_us }).is_some_and(|outcome| outcome.held_back.unwrap_or(0) == 0)
    };
    let curve = misses(points, server)?;
    Ok(curve.iter().find(|(e2, misses)| *misses > limit && counts(*e2)).map(|(e2, _)| *e2))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rise_is_measured_between_its_points() {
        let curve = [(0, 0.0), (1_000, 4.0), (2_000, 48.0), (3_000, 100.0)];
        let rise = |curve: &[(u64, f64)]| rise(curve, 10.0);
        let found = rise(&curve).unwrap();
        assert_eq!(found.values, 2);
        let (from, until) = (1_000.0 + 6.0 / 44.0 * 1e3, 2_000.0 + 42.0 / 52.0 * 1e3);
        assert!((found.width_us - (until - from)).abs() < 1e-6, "{found:?}");
        // A jump below the first value reaches down to nothing executed, nothing missed.
        let jump = rise(&[(0, 0.0), (250, 100.0), (500, 100.0)]).unwrap();
        assert_eq!((jump.values, jump.width_us), (1, 200.0));
        assert_eq!(rise(&[(0, 0.0), (1_000, 50.0)]), None);
        assert_eq!(rise(&[(0, 0.0), (1_000, 5.0)]), None);
    }
}
