//! Measured against predicted times as a picture.

use hyperslab_core::CacheState;
use hyperslab_model::Class;
use std::fmt::Write;

const SIZE: f64 = 480.0;
const MARGIN: f64 = 60.0;

fn colour(class: Class) -> &'static str {
    match class {
        Class::Posix => "#777777",
        Class::Hdf5 => "#1f77b4",
        Class::Hdf5Plane => "#17becf",
        Class::Zarr => "#d62728",
        Class::ZarrSharded => "#ff7f0e",
    }
}

/// A dot for each run, on axes of powers of ten; filled if warm.
pub fn svg(points: &[(Class, CacheState, (f64, f64))]) -> String {
    let values = || points.iter().flat_map(|(.., (m, p))| [*m, *p]).filter(|v| *v > 0.0);
    let low = values().fold(f64::INFINITY, f64::min).min(1.0).log10().floor();
    let high = values().fold(0.0, f64::max).max(1e-6).log10().ceil().max(low + 1.0);
    let at = |value: f64| (value.max(1e-12).log10() - low) / (high - low) * SIZE;
    let (x, y) = (|value: f64| MARGIN + at(value), |value: f64| MARGIN + SIZE - at(value));
    let mut out = String::new();
    let whole = SIZE + 2.0 * MARGIN;
    let _ = writeln!(
        out,
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {whole} {whole}\" font-family=\"sans-serif\" font-size=\"12\">\n\
         <rect width=\"{whole}\" height=\"{whole}\" fill=\"white\"/>"
    );
    let mut power = low as i32;
    while f64::from(power) <= high {
        let value = 10f64.powi(power);
        let _ = writeln!(
            out,
            "<path d=\"M{0:.1} {MARGIN}V{1:.1}M{MARGIN} {2:.1}H{1:.1}\" stroke=\"#dddddd\"/>\n\
             <text x=\"{0:.1}\" y=\"{3:.1}\" text-anchor=\"middle\">1e{power}</text>\n\
             <text x=\"{4:.1}\" y=\"{2:.1}\" text-anchor=\"end\">1e{power}</text>",
            x(value),
            MARGIN + SIZE,
            y(value),
            MARGIN + SIZE + 18.0,
            MARGIN - 6.0,
        );
        power += 1;
    }
    let _ = writeln!(
        out,
        "<path d=\"M{MARGIN} {:.1}L{:.1} {MARGIN}\" stroke=\"#999999\"/>\n\
         <text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"middle\">measured seconds</text>\n\
         <text x=\"16\" y=\"{2:.1}\" transform=\"rotate(-90 16 {2:.1})\" text-anchor=\"middle\">predicted seconds</text>",
        MARGIN + SIZE,
        MARGIN + SIZE,
        MARGIN + SIZE / 2.0,
        whole - 16.0,
    );
    for (class, warmth, (measured, predicted)) in points {
        let fill = if *warmth == CacheState::Warm { colour(*class) } else { "none" };
        let _ = writeln!(
            out,
            "<circle cx=\"{:.1}\" cy=\"{:.1}\" r=\"3\" stroke=\"{}\" fill=\"{fill}\" fill-opacity=\"0.6\"/>",
            x(*measured),
            y(*predicted),
            colour(*class),
        );
    }
    for (number, class) in Class::ALL.into_iter().enumerate() {
        let line = MARGIN + 16.0 * (number as f64 + 1.0);
        let _ = writeln!(
            out,
            "<circle cx=\"{:.1}\" cy=\"{:.1}\" r=\"4\" fill=\"{}\"/><text x=\"{:.1}\" y=\"{line:.1}\">{}</text>",
            MARGIN + 12.0,
            line - 4.0,
            colour(class),
            MARGIN + 22.0,
            class.name(),
        );
    }
    out.push_str("</svg>\n");
    out
}
