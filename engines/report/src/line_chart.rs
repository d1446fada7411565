//! A line chart as a self-contained SVG file: for result files of experiments, which open in any browser.

use crate::escape::html;
use std::fmt::Write;

/// One line of a chart.
#[derive(Clone, PartialEq, Debug)]
pub struct Line {
    /// What the legend calls it.
    pub label: String,
    /// Its points (x, y), in the order of x; those that are not finite are left out.
    pub points: Vec<(f64, f64)>,
}

/// Lines over one axis.
///
/// ```
/// use horolog_report::line_chart::{Line, LineChart};
/// let chart = LineChart {
///     title: "response".into(),
///     x_label: "load %".into(),
///     y_label: "ratio".into(),
///     reference: Some(1.0),
///     lines: vec![Line { label: "SS".into(), points: vec![(20.0, 0.4), (40.0, 0.6)] }],
/// };
/// assert!(chart.svg().starts_with("<svg "));
/// ```
#[derive(Clone, PartialEq, Debug, Default)]
pub struct LineChart {
    /// Above it.
    pub title: String,
    /// Below the horizontal axis.
    pub x_label: String,
    /// Beside the vertical axis.
    pub y_label: String,
    /// A dashed horizontal line, and a value that the axis reaches.
    pub reference: Option<f64>,
    /// The lines.
    pub lines: Vec<Line>,
}

const WIDTH: f64 = 720.0;
const HEIGHT: f64 = 420.0;
const LEFT: f64 = 70.0;
const RIGHT: f64 = 160.0;
const TOP: f64 = 40.0;
const BOTTOM: f64 = 55.0;

/// Colours that people tell apart whatever their eyes (Okabe and Ito), and markers, so that colour is not alone.
const COLOURS: [&str; 8] =
    ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000", "#8a6d00"];

/// Where values stand on the page.
struct Frame {
    x: (f64, f64),
    y: (f64, f64),
}

impl Frame {
    fn x(&self, value: f64) -> f64 {
        LEFT + (value - self.x.0) / (self.x.1 - self.x.0) * (WIDTH - LEFT - RIGHT)
    }

    fn y(&self, value: f64) -> f64 {
        HEIGHT - BOTTOM - (value - self.y.0) / (self.y.1 - self.y.0) * (HEIGHT - TOP - BOTTOM)
    }
}

impl LineChart {
    /// The file's text. Zero stands at the foot where no value lies below it.
    #[must_use]
    pub fn svg(&self) -> String {
        let frame = self.frame();
        let mut out = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" \
             font-family=\"sans-serif\" font-size=\"13\">\n<title>{0}</title>\n\
             <rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n\
             <text x=\"{LEFT}\" y=\"24\" font-size=\"15\">{0}</text>\n",
            html(&self.title)
        );
        self.axes(&frame, &mut out);
        for (index, line) in self.lines.iter().enumerate() {
            draw(index, line, &frame, &mut out);
        }
        out.push_str("</svg>\n");
        out
    }

    fn finite(&self) -> impl Iterator<Item = (f64, f64)> + '_ {
        let points = self.lines.iter().flat_map(|line| line.points.iter().copied());
        points.filter(|(x, y)| x.is_finite() && y.is_finite())
    }

    fn frame(&self) -> Frame {
        let bounds = |values: &mut dyn Iterator<Item = f64>| {
            values.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), value| {
                (low.min(value), high.max(value))
            })
        };
        let wide = |(low, high): (f64, f64)| match (low.is_finite(), high > low) {
            (false, _) => (0.0, 1.0),
            (true, true) => (low, high),
            (true, false) => (low - 0.5, high + 0.5),
        };
        let (low, high) = bounds(&mut self.finite().map(|(_, y)| y).chain(self.reference));
        let (low, high) = wide((low.min(0.0), high));
        Frame { x: wide(bounds(&mut self.finite().map(|(x, _)| x))), y: (low, high + 0.05 * (high - low)) }
    }

    fn axes(&self, frame: &Frame, out: &mut String) {
        let (right, foot) = (WIDTH - RIGHT, HEIGHT - BOTTOM);
        for value in ticks(frame.y.0, frame.y.1) {
            let y = frame.y(value);
            let _ = writeln!(
                out,
                "<line x1=\"{LEFT}\" y1=\"{y:.1}\" x2=\"{right}\" y2=\"{y:.1}\" stroke=\"#ddd\"/>\
                 <text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{}</text>",
                LEFT - 8.0,
                y + 4.0,
                number(value)
            );
        }
        let mut places: Vec<f64> = self.finite().map(|(x, _)| x).collect();
        places.sort_by(f64::total_cmp);
        places.dedup();
        // Each value of a parameter has its own mark, unless there are too many.
        let places = if places.len() <= 12 { places } else { ticks(frame.x.0, frame.x.1) };
        for value in places {
            let x = frame.x(value);
            let _ = writeln!(
                out,
                "<line x1=\"{x:.1}\" y1=\"{foot}\" x2=\"{x:.1}\" y2=\"{}\" stroke=\"#444\"/>\
                 <text x=\"{x:.1}\" y=\"{}\" text-anchor=\"middle\">{}</text>",
                foot + 5.0,
                foot + 20.0,
                number(value)
            );
        }
        if let Some(value) = self.reference {
            let y = frame.y(value);
            let _ = writeln!(
                out,
                "<line x1=\"{LEFT}\" y1=\"{y:.1}\" x2=\"{right}\" y2=\"{y:.1}\" stroke=\"#888\" stroke-dasharray=\"5 4\"/>"
            );
        }
        let _ = writeln!(
            out,
            "<path d=\"M{LEFT} {TOP}V{foot}H{right}\" fill=\"none\" stroke=\"#444\"/>\
             <text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{}</text>\
             <text x=\"18\" y=\"{3:.1}\" text-anchor=\"middle\" transform=\"rotate(-90 18 {3:.1})\">{4}</text>",
            (LEFT + right) / 2.0,
            HEIGHT - 14.0,
            html(&self.x_label),
            (TOP + foot) / 2.0,
            html(&self.y_label),
        );
    }
}

fn draw(index: usize, line: &Line, frame: &Frame, out: &mut String) {
    let colour = COLOURS[index % COLOURS.len()];
    let points: Vec<(f64, f64)> = line
        .points
        .iter()
        .filter(|(x, y)| x.is_finite() && y.is_finite())
        .map(|(x, y)| (frame.x(*x), frame.y(*y)))
        .collect();
    let path: Vec<String> = points.iter().map(|(x, y)| format!("{x:.1},{y:.1}")).collect();
    let _ = writeln!(
        out,
        "<polyline points=\"{}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"2\"/>",
        path.join(" ")
    );
    for (x, y) in points {
        marker(index, x, y, colour, out);
    }
    let (x, y) = (WIDTH - RIGHT + 20.0, TOP + 12.0 + 20.0 * index as f64);
    marker(index, x, y - 4.0, colour, out);
    let _ = writeln!(out, "<text x=\"{:.1}\" y=\"{y:.1}\">{}</text>", x + 12.0, html(&line.label));
}

/// A circle, square, triangle or diamond.
fn marker(index: usize, x: f64, y: f64, colour: &str, out: &mut String) {
    let shape = match index % 4 {
        0 => format!("<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"4\""),
        1 => format!("<rect x=\"{:.1}\" y=\"{:.1}\" width=\"7\" height=\"7\"", x - 3.5, y - 3.5),
        2 => format!("<path d=\"M{x:.1} {:.1}l4.5 8h-9z\"", y - 5.0),
        _ => format!("<path d=\"M{x:.1} {:.1}l5 5l-5 5l-5 -5z\"", y - 5.0),
    };
    let _ = writeln!(out, "{shape} fill=\"{colour}\"/>");
}

/// Round values that divide a range into about five.
fn ticks(low: f64, high: f64) -> Vec<f64> {
    let rough = (high - low) / 5.0;
    let power = 10_f64.powf(rough.log10().floor());
    let step = [1.0, 2.0, 5.0, 10.0].into_iter().map(|factor| factor * power).find(|step| *step >= rough);
    let step = step.unwrap_or(rough);
    let first = (low / step).ceil() as i64;
    (first..).map(|count| count as f64 * step).take_while(|value| *value <= high).collect()
}

/// Without more digits than it needs.
fn number(value: f64) -> String {
    let text = format!("{value:.3}");
    let text = text.trim_end_matches('0').trim_end_matches('.');
    if text == "-0" { "0".to_owned() } else { text.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chart(points: Vec<(f64, f64)>) -> LineChart {
        LineChart {
            title: "a < b".into(),
            x_label: "x & y".into(),
            y_label: "ratio".into(),
            reference: Some(1.0),
            lines: vec![Line { label: "\"SS\"".into(), points }],
        }
    }

    #[test]
    fn every_value_lies_on_the_page_and_text_is_escaped() {
        let svg = chart(vec![(20.0, 0.25), (40.0, 3.0), (60.0, f64::NAN)]).svg();
        assert!(svg.contains("a &lt; b") && svg.contains("x &amp; y") && svg.contains("&quot;SS&quot;"));
        let points = svg.split("points=\"").nth(1).and_then(|rest| rest.split('"').next()).expect("a line");
        let places: Vec<f64> = points.split([' ', ',']).map(|n| n.parse().expect("a number")).collect();
        assert_eq!(places.len(), 4, "the value that is none is left out");
        assert!((places[0] - LEFT).abs() < 0.1 && (places[2] - (WIDTH - RIGHT)).abs() < 0.1);
        assert!(places.chunks(2).all(|at| (TOP..=HEIGHT - BOTTOM).contains(&at[1])));
        // The foot is zero: 0.25 stands a twelfth as high as 3.
        let height = |y: f64| HEIGHT - BOTTOM - y;
        assert!((height(places[1]) / height(places[3]) - 1.0 / 12.0).abs() < 0.01);
        for tag in ["svg", "text", "title"] {
            assert_eq!(svg.matches(&format!("<{tag}")).count(), svg.matches(&format!("</{tag}>")).count());
        }
    }

    #[test]
    fn nothing_and_a_single_point_have_a_frame_too() {
        for points in [vec![], vec![(3.0, 3.0)], vec![(3.0, 0.0)], vec![(f64::INFINITY, 1.0)]] {
            let svg = LineChart { reference: None, ..chart(points) }.svg();
            assert!(svg.ends_with("</svg>\n") && !svg.contains("NaN") && !svg.contains("inf"), "{svg}");
        }
    }

    #[test]
    fn ticks_are_round() {
        assert_eq!(ticks(0.0, 1.05).iter().map(|t| number(*t)).collect::<Vec<_>>(), ["0", "0.5", "1"]);
        assert_eq!(ticks(0.0, 9.0), [0.0, 2.0, 4.0, 6.0, 8.0]);
    }
}
