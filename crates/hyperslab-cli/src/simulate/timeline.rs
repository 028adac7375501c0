//! What happens when, as a picture.

use super::SimulatedOutcome;
use super::outcome::seconds;
use hyperslab_sim::SpanKind;
use std::fmt::Write;

const WIDTH: f64 = 900.0;
const LEFT: f64 = 10.0;
const ROW: f64 = 64.0;

/// A row for each case, all on one scale.
pub fn draw(outcomes: &[SimulatedOutcome]) -> String {
    let ends = outcomes.iter().map(|one| one.simulated.seconds + one.simulated.compute);
    let longest = ends.fold(f64::MIN_POSITIVE, f64::max);
    let height = 40.0 + ROW * outcomes.len() as f64;
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{WIDTH}\" height=\"{height}\" viewBox=\"0 0 {WIDTH} {height}\" \
         role=\"img\" aria-label=\"Simulated timelines\" font-family=\"sans-serif\" font-size=\"12\">\n\
         <rect width=\"{WIDTH}\" height=\"{height}\" fill=\"#ffffff\"/>\n"
    );
    let at = |time: f64| LEFT + (time / longest).clamp(0.0, 1.0) * (WIDTH - 2.0 * LEFT);
    for (number, one) in outcomes.iter().enumerate() {
        let top = 10.0 + ROW * number as f64;
        let label = format!("{} on {}: {}", one.label, one.stack, seconds(one.simulated.seconds));
        let _ = writeln!(svg, "<text x=\"{LEFT}\" y=\"{:.1}\">{}</text>", top + 12.0, escaped(&label));
        for span in &one.simulated.timeline {
            let (from, to) = (at(span.start), at(span.start + span.seconds));
            let (name, colour) = look(span.kind);
            let _ = writeln!(
                svg,
                "<rect x=\"{from:.2}\" y=\"{:.1}\" width=\"{:.2}\" height=\"18\" fill=\"{colour}\"><title>{name} {}</title></rect>",
                top + 18.0,
                (to - from).max(0.2),
                seconds(span.seconds)
            );
            if span.behind > 0.0 {
                let end = at(span.start + span.behind);
                let _ = writeln!(
                    svg,
                    "<rect x=\"{from:.2}\" y=\"{:.1}\" width=\"{:.2}\" height=\"6\" fill=\"#9aa5b1\"><title>behind {}</title></rect>",
                    top + 38.0,
                    (end - from).max(0.2),
                    seconds(span.behind)
                );
            }
        }
    }
    let mut x = LEFT;
    for kind in [SpanKind::Open, SpanKind::Compute, SpanKind::Write, SpanKind::Read, SpanKind::Flush] {
        let (name, colour) = look(kind);
        let y = height - 14.0;
        let _ = writeln!(svg, "<rect x=\"{x:.1}\" y=\"{:.1}\" width=\"10\" height=\"10\" fill=\"{colour}\"/>", y - 9.0);
        let _ = writeln!(svg, "<text x=\"{:.1}\" y=\"{y:.1}\">{name}</text>", x + 14.0);
        x += 90.0;
    }
    let _ =
        writeln!(svg, "<text x=\"{:.1}\" y=\"{:.1}\">0 to {}</text>", WIDTH - 160.0, height - 14.0, seconds(longest));
    svg + "</svg>\n"
}

fn look(kind: SpanKind) -> (&'static str, &'static str) {
    match kind {
        SpanKind::Open => ("open", "#7b8794"),
        SpanKind::Compute => ("compute", "#d9e2ec"),
        SpanKind::Write => ("write", "#d64545"),
        SpanKind::Read => ("read", "#2186eb"),
        SpanKind::Flush => ("flush", "#f0b429"),
    }
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}
