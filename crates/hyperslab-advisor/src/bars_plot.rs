//! Predicted times as a picture: what each is made of, how sure it is, and what was measured.

use hyperslab_model::Part;
use hyperslab_report::table::escaped;
use std::collections::BTreeMap;
use std::fmt::Write;

const LABELS: f64 = 330.0;
const BARS: f64 = 520.0;
const ROW: f64 = 26.0;
const TOP: f64 = 54.0;

/// One bar.
pub struct Bar {
    /// What it is of.
    pub label: String,
    /// What the time is made of.
    pub parts: BTreeMap<Part, f64>,
    /// The time; parts may add up to more, if some are hidden.
    pub seconds: f64,
    /// The ends of the 90 % interval.
    pub interval: [f64; 2],
    /// What was measured.
    pub measured: Option<f64>,
}

fn colour(part: Part) -> &'static str {
    match part {
        Part::Copy => "#4c78a8",
        Part::Cache => "#9ecae9",
        Part::StorageRead => "#f58518",
        Part::StorageWrite => "#e45756",
        Part::Metadata => "#b279a2",
        Part::Codec => "#54a24b",
        Part::Layer => "#9d9da0",
    }
}

/// The picture, as SVG. Intervals that are longer than the picture are cut off.
pub fn svg(bars: &[Bar]) -> String {
    let most = bars.iter().flat_map(|bar| [bar.seconds * 1.6, bar.measured.unwrap_or(0.0)]).fold(1e-9, f64::max);
    let x = |seconds: f64| LABELS + (seconds / most).clamp(0.0, 1.0) * BARS;
    let (width, height) = (LABELS + BARS + 110.0, TOP + ROW * bars.len() as f64 + 16.0);
    let mut out = String::new();
    let _ = writeln!(
        out,
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" font-family=\"sans-serif\" \
         font-size=\"12\">\n<rect width=\"{width}\" height=\"{height}\" fill=\"white\"/>"
    );
    for (number, part) in Part::ALL.into_iter().enumerate() {
        let left = 12.0 + 128.0 * number as f64;
        let _ = writeln!(
            out,
            "<rect x=\"{left}\" y=\"10\" width=\"12\" height=\"12\" fill=\"{}\"/><text x=\"{}\" y=\"21\">{}</text>",
            colour(part),
            left + 17.0,
            part.name()
        );
    }
    let _ = writeln!(
        out,
        "<text x=\"12\" y=\"42\" fill=\"#555555\">bar: predicted; line: nine of ten runs; diamond: measured</text>"
    );
    for (number, bar) in bars.iter().enumerate() {
        let y = TOP + ROW * number as f64;
        let middle = y + ROW / 2.0 - 3.0;
        let _ = writeln!(
            out,
            "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{}</text>",
            LABELS - 8.0,
            middle + 4.0,
            escaped(&bar.label)
        );
        // Hidden parts are not seen: the bar is as long as the time.
        let sum: f64 = bar.parts.values().sum();
        let scale = if sum > 0.0 { bar.seconds / sum } else { 0.0 };
        let mut from = 0.0;
        for (part, seconds) in &bar.parts {
            let to = from + seconds * scale;
            let _ = writeln!(
                out,
                "<rect x=\"{:.1}\" y=\"{:.1}\" width=\"{:.1}\" height=\"{}\" fill=\"{}\"/>",
                x(from),
                y,
                x(to) - x(from),
                ROW - 8.0,
                colour(*part)
            );
            from = to;
        }
        let [low, high] = bar.interval;
        let _ = writeln!(
            out,
            "<path d=\"M{:.1} {middle:.1}H{:.1}\" stroke=\"black\"/><text x=\"{:.1}\" y=\"{:.1}\">{}</text>",
            x(low),
            x(high),
            LABELS + BARS + 8.0,
            middle + 4.0,
            super::predicted::seconds(bar.seconds)
        );
        if let Some(measured) = bar.measured {
            let _ = writeln!(
                out,
                "<path d=\"M{0:.1} {1:.1}l5 5l-5 5l-5 -5z\" fill=\"white\" stroke=\"black\"/>",
                x(measured),
                middle - 5.0
            );
        }
    }
    out.push_str("</svg>\n");
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_bar_has_its_parts_its_interval_and_what_was_measured() {
        let bar = |label: &str, measured| Bar {
            label: label.into(),
            parts: [(Part::Copy, 1.0), (Part::Codec, 2.0)].into(),
            seconds: 3.0,
            interval: [2.0, f64::INFINITY],
            measured,
        };
        let svg = svg(&[bar("a<b", Some(2.5)), bar("c", None)]);
        assert!(
            svg.contains("a&lt;b") && svg.contains("3.00 s") && !svg.contains("inf") && !svg.contains("NaN"),
            "{svg}"
        );
        assert_eq!(svg.matches("<rect").count(), 1 + Part::ALL.len() + 4);
        assert_eq!(svg.matches("l5 5l-5 5").count(), 1);
    }
}
