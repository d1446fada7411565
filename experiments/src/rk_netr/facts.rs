//! Figure 7's statements beside the curves.

use super::point::Point;
use crate::Fact;
use crate::fact::Agreement;

/// A receiver is overloaded from so much more sent than it ever receives.
const OVERLOAD: f64 = 1.2;
/// A tenth less is less.
const LESS: f64 = 0.9;

const BELOW: &str = "packets lost at the socket, protocol thread below the receiver";
const ABOVE: &str =
    "received at the highest rate of the most that is received, protocol thread above the receiver";
const SOFTIRQ_HOLDS: &str = "softirq: received = sent at first, then flat";
const BELOW_HOLDS: &str = "below the receiver: received at the highest rate of the most that is received";
const AS_SOFTIRQ: &str = "above the receiver: received at the highest rate, beside softirq and below, kpps";

/// What is not there without the right.
pub(super) fn not_permitted(reason: &str) -> Vec<Fact> {
    [
        (9, BELOW, "0"),
        (9, ABOVE, "falls as the load rises"),
        (19, SOFTIRQ_HOLDS, "to 9 Mbps, then flat to 26"),
        (20, BELOW_HOLDS, "received = sent to 26 Mbps"),
        (21, AS_SOFTIRQ, "as (i)"),
    ]
    .into_iter()
    .map(|(number, statement, published)| {
        Fact::new(number, statement, published, "-".to_owned(), Agreement::NotPermitted(reason.to_owned()))
    })
    .collect()
}

fn most(curve: &[Point]) -> f64 {
    curve.iter().map(Point::received_kpps).fold(0.0, f64::max)
}

fn last(curve: &[Point]) -> f64 {
    curve.last().map_or(0.0, Point::received_kpps)
}

/// `agrees` where the sender has overloaded the receiver; else nothing is said.
fn where_overloaded(curve: &[Point], agrees: bool) -> Agreement {
    let sent = curve.last().map_or(0.0, Point::sent_kpps);
    if sent < OVERLOAD * most(curve) {
        let reason = format!("the sender reached {sent:.0} kpps, too little to overload the receiver");
        return Agreement::Undecided(reason);
    }
    if agrees { Agreement::Agrees } else { Agreement::Disagrees }
}

/// Of the three curves: softirq, below, above.
pub(super) fn of_curves(softirq: &[Point], below: &[Point], above: &[Point]) -> Vec<Fact> {
    let drops = |curve: &[Point]| curve.iter().map(|point| point.socket_drops).sum::<u64>();
    let share = |curve: &[Point]| last(curve) / most(curve).max(f64::MIN_POSITIVE);
    let percent = |share: f64| format!("{:.0} %", 100.0 * share);
    let noted = |fact: Fact, note: &str| Fact { note: note.to_owned(), ..fact };
    let none = drops(below) == 0;
    let queued: u64 = below.iter().filter_map(|point| point.queue_drops).sum();
    let first =
        softirq.first().map_or(0.0, |point| point.received_kpps() / point.sent_kpps().max(f64::MIN_POSITIVE));
    let (of_softirq, of_below, of_above) = (last(softirq), last(below), last(above));
    vec![
        Fact::trend(
            9,
            BELOW,
            "0",
            format!(
                "{} and {queued} in its queue (above: {}, softirq: {})",
                drops(below),
                drops(above),
                drops(softirq)
            ),
            none,
            "what the receiver has no time for is lost in its queue, before the protocols",
        ),
        noted(
            Fact::new(
                9,
                ABOVE,
                "falls as the load rises",
                percent(share(above)),
                where_overloaded(above, share(above) < LESS),
            ),
            "agrees below 90 %",
        ),
        noted(
            Fact::new(
                19,
                SOFTIRQ_HOLDS,
                "to 9 Mbps, then flat to 26",
                format!(
                    "{} at the lowest rate; {} of the most at the highest",
                    percent(first),
                    percent(share(softirq))
                ),
                where_overloaded(softirq, first > 0.99 && share(softirq) > 0.75),
            ),
            "agrees from 99 % at the lowest rate and 75 % of the most at the highest; absolute rates are of another machine",
        ),
        noted(
            Fact::new(
                20,
                BELOW_HOLDS,
                "received = sent to 26 Mbps",
                format!("{} ({of_below:.0} kpps; softirq {of_softirq:.0})", percent(share(below))),
                where_overloaded(below, share(below) > LESS && of_below > of_softirq),
            ),
            "agrees above 90 %, and above softirq: the published range ends before the receiver is overloaded",
        ),
        noted(
            Fact::new(
                21,
                AS_SOFTIRQ,
                "as (i)",
                format!("{of_above:.0}, {of_softirq:.0}, {of_below:.0}"),
                where_overloaded(above, of_above < LESS * of_below),
            ),
            "agrees a tenth below (ii) and more; a thread costs switches that softirqs do not, so it may be below (i), too",
        ),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn curve(points: &[(u64, u64, u64)]) -> Vec<Point> {
        let point = |&(sent, received, socket_drops): &(u64, u64, u64)| Point {
            sent,
            received,
            socket_drops,
            elapsed_ns: 1_000_000,
            queue_drops: None,
        };
        points.iter().map(point).collect()
    }

    fn word(fact: &Fact) -> &'static str {
        match fact.agreement {
            Agreement::Agrees => "agrees",
            Agreement::Disagrees => "disagrees",
            _ => "undecided",
        }
    }

    #[test]
    fn the_published_shapes_agree_and_one_packet_decides() {
        let softirq = curve(&[(100, 100, 0), (500, 300, 200), (1_000, 280, 720)]);
        let below = curve(&[(100, 100, 0), (500, 400, 0), (1_000, 400, 0)]);
        let above = curve(&[(100, 100, 0), (500, 300, 200), (1_000, 200, 800)]);
        let words = |below: &[Point], above: &[Point]| -> Vec<&str> {
            of_curves(&softirq, below, above).iter().map(word).collect()
        };
        assert_eq!(words(&below, &above), ["agrees"; 5]);
        let one_dropped = curve(&[(100, 100, 0), (500, 400, 0), (1_000, 400, 1)]);
        assert_eq!(words(&one_dropped, &above)[0], "disagrees");
        let flat = curve(&[(100, 100, 0), (500, 300, 200), (1_000, 271, 729)]);
        assert_eq!(words(&below, &flat)[1], "disagrees", "271 of 300 is above 90 %");
        let enough = curve(&[(100, 100, 0), (480, 400, 0)]);
        assert_eq!(words(&enough, &above)[3], "agrees", "480 is 1.2 times 400");
        let too_slow = curve(&[(100, 100, 0), (479, 400, 0)]);
        assert_eq!(words(&too_slow, &above)[3], "undecided");
    }
}
