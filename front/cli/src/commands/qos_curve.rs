//! The drawing of `horolog qos allocate --curve`.

use horolog_qos::{CurvePoint, UTILITY};
use std::fmt::Write;

/// The drawing's margins and the plot's size.
const LEFT: f64 = 70.0;
const TOP: f64 = 40.0;
const WIDTH: f64 = 560.0;
const HEIGHT: f64 = 300.0;

/// Utility against the share of every capacity, as SVG: what was found, and the upper bound above it.
pub(super) fn svg(name: &str, points: &[CurvePoint]) -> String {
    let values = points.iter().flat_map(|point| [point.utility, point.bound]).flatten();
    let most = values.max().unwrap_or(0).max(1) as f64;
    let widest = points.iter().map(|point| point.percent).max().unwrap_or(1).max(1) as f64;
    let x = |percent: u64| LEFT + WIDTH * percent as f64 / widest;
    let y = |utility: u64| TOP + HEIGHT * (1.0 - utility as f64 / most);
    let line = |of: &dyn Fn(&CurvePoint) -> Option<u64>| -> String {
        let place = |point: &CurvePoint| Some(format!("{:.1},{:.1}", x(point.percent), y(of(point)?)));
        points.iter().filter_map(place).collect::<Vec<_>>().join(" ")
    };
    let mut text = String::from(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"680\" height=\"420\" font-family=\"sans-serif\" font-size=\"13\">\n\
         <rect width=\"680\" height=\"420\" fill=\"white\"/>\n",
    );
    let mut say = |words: std::fmt::Arguments<'_>| {
        // Writing to memory does not fail.
        let _ = writeln!(text, "{words}");
    };
    say(format_args!("<text x=\"{LEFT}\" y=\"24\">{}: utility against resources</text>", escaped(name)));
    let (bottom, right) = (TOP + HEIGHT, LEFT + WIDTH);
    say(format_args!("<path d=\"M{LEFT} {TOP} V{bottom} H{right}\" fill=\"none\" stroke=\"black\"/>"));
    for point in points.iter().filter(|point| point.percent % 20 == 0) {
        let at = x(point.percent);
        say(format_args!(
            "<text x=\"{at:.1}\" y=\"{}\" text-anchor=\"middle\">{} %</text>",
            bottom + 18.0,
            point.percent
        ));
    }
    for part in 0..=4 {
        let (value, at) =
            (most * f64::from(part) / 4.0 / UTILITY as f64, bottom - HEIGHT * f64::from(part) / 4.0);
        say(format_args!(
            "<text x=\"{}\" y=\"{:.1}\" text-anchor=\"end\">{value:.3}</text>",
            LEFT - 6.0,
            at + 4.0
        ));
    }
    say(format_args!(
        "<polyline points=\"{}\" fill=\"none\" stroke=\"gray\" stroke-dasharray=\"5 4\"/>",
        line(&|point| point.bound)
    ));
    say(format_args!(
        "<polyline points=\"{}\" fill=\"none\" stroke=\"navy\" stroke-width=\"2\"/>",
        line(&|point| point.utility)
    ));
    say(format_args!(
        "<text x=\"{LEFT}\" y=\"{}\">share of every capacity; line: allocated, dashes: no allocation is worth more</text>",
        bottom + 44.0
    ));
    text.push_str("</svg>\n");
    text
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn points_without_an_allocation_are_left_out_and_the_greatest_stands_at_the_top() {
        let point = |percent, utility| CurvePoint { percent, utility, bound: utility };
        let text = svg("a < b", &[point(50, None), point(100, Some(UTILITY)), point(200, Some(2 * UTILITY))]);
        assert!(text.contains("a &lt; b: utility"));
        assert!(text.contains("points=\"350.0,190.0 630.0,40.0\""), "{text}");
        assert!(text.contains(">2.000</text>") && text.contains(">50 %</text>") == (50 % 20 == 0));
    }
}
