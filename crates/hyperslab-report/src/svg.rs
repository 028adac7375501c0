//! Drawing: a picture with its size and the words for those who do not see it.

use crate::escape::escape;
use crate::words::{rate, seconds};
use std::fmt::Write;

/// A picture being drawn. All text goes through [`escape`].
pub struct Drawing {
    width: f64,
    height: f64,
    label: String,
    body: String,
}

/// A length with one digit behind the point, and none where it is zero. What is no number is 0.
pub fn n(value: f64) -> String {
    let value = if value.is_finite() { value.clamp(-1e6, 1e6) } else { 0.0 };
    let text = format!("{value:.1}");
    text.strip_suffix(".0").map(str::to_owned).unwrap_or(text)
}

impl Drawing {
    /// An empty picture; `label` is what it shows, in words.
    pub fn new(width: f64, height: f64, label: &str) -> Self {
        Self { width, height, label: label.to_owned(), body: String::new() }
    }

    /// Its height.
    pub fn height(&self) -> f64 {
        self.height
    }

    /// Text with its baseline at `y`; `class` says how it is set.
    pub fn text(&mut self, class: &str, x: f64, y: f64, text: &str) {
        let _ = write!(self.body, "<text class=\"{class}\" x=\"{}\" y=\"{}\">{}</text>", n(x), n(y), escape(text));
    }

    /// A filled rectangle.
    pub fn rect(&mut self, class: &str, x: f64, y: f64, width: f64, height: f64) {
        let _ = write!(
            self.body,
            "<rect class=\"{class}\" x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\"/>",
            n(x),
            n(y),
            n(width.max(0.0)),
            n(height)
        );
    }

    /// A path.
    pub fn path(&mut self, class: &str, d: &str) {
        let _ = write!(self.body, "<path class=\"{class}\" d=\"{d}\"/>");
    }

    /// A vertical line from `top` to `bottom` at each round value, with the value below.
    pub fn axis_below(&mut self, scale: &Scale, unit: Unit, top: f64, bottom: f64) {
        for tick in scale.ticks(unit) {
            let (x, words) = (scale.at(tick), unit.tick(tick));
            self.path("g", &format!("M{} {}V{}", n(x), n(top), n(bottom)));
            self.below(x, bottom + 14.0, &words);
        }
    }

    /// A label centred below `x`; what would stick out ends at the border.
    pub fn below(&mut self, x: f64, y: f64, words: &str) {
        let sticks_out = x + 3.5 * words.chars().count() as f64 > self.width;
        let (class, x) = if sticks_out { ("k e", self.width - 1.0) } else { ("k m", x) };
        self.text(class, x, y, words);
    }

    /// The same for a vertical axis: lines from `left` to `right`, values at their left.
    pub fn axis_beside(&mut self, scale: &Scale, unit: Unit, left: f64, right: f64) {
        for tick in scale.ticks(unit) {
            self.path("g", &format!("M{} {}H{}", n(left), n(scale.at(tick)), n(right)));
            self.text("k e", left - 5.0, scale.at(tick) + 4.0, &unit.tick(tick));
        }
    }

    /// Parts that say something when the pointer or the keyboard reaches them.
    pub fn said(&mut self, words: &str, draw: impl FnOnce(&mut Self)) {
        let _ = write!(self.body, "<g class=\"h\" tabindex=\"0\" role=\"img\" aria-label=\"{}\">", escape(words));
        draw(self);
        self.body.push_str("</g>");
    }

    /// The picture for a page.
    pub fn html(&self) -> String {
        format!(
            "<svg viewBox=\"0 0 {} {}\" role=\"group\" aria-label=\"{}\">{}</svg>",
            n(self.width),
            n(self.height),
            escape(&self.label),
            self.body
        )
    }

    /// Its parts, moved down in a larger picture.
    pub fn moved(&self, y: f64) -> String {
        format!("<g transform=\"translate(0 {})\">{}</g>", n(y), self.body)
    }
}

/// A scale from values to places.
pub struct Scale {
    from: f64,
    to: f64,
    low: f64,
    high: f64,
    log: bool,
}

impl Scale {
    /// From 0 to the largest value.
    pub fn linear(high: f64, from: f64, to: f64) -> Self {
        Self { from, to, low: 0.0, high: if high > 0.0 && high.is_finite() { high } else { 1.0 }, log: false }
    }

    /// From the smallest positive to the largest value, in powers.
    pub fn log(values: impl IntoIterator<Item = f64>, from: f64, to: f64) -> Self {
        let good = values.into_iter().filter(|value| *value > 0.0 && value.is_finite());
        let (low, high) = good.fold((f64::INFINITY, 0.0_f64), |(low, high), value| (low.min(value), high.max(value)));
        let (low, high) = if low.is_finite() { (low, high) } else { (1.0, 10.0) };
        let (low, high) = if high / low < 1.5 { (low / 1.3, high * 1.3) } else { (low, high) };
        Self { from, to, low, high, log: true }
    }

    /// The largest value that it shows.
    pub fn value_at_top(&self) -> f64 {
        self.high
    }

    /// Where a value lies.
    pub fn at(&self, value: f64) -> f64 {
        let part = if self.log {
            (value.max(self.low * 1e-3).ln() - self.low.ln()) / (self.high.ln() - self.low.ln())
        } else {
            (value - self.low) / (self.high - self.low)
        };
        self.from + part.clamp(-0.02, 1.02) * (self.to - self.from)
    }

    /// Some two to six round values on the scale: of bytes powers of two, otherwise 1, 2 and 5 times powers of ten; where
    /// a logarithmic scale is too short for three of these, values between them, too.
    pub fn ticks(&self, unit: Unit) -> Vec<f64> {
        let round = |between: &[f64]| -> Vec<f64> {
            let (base, powers) = match unit {
                Unit::Bytes => (2_f64, -10..60),
                Unit::Seconds => (10_f64, -10..10),
            };
            powers.flat_map(|power| between.iter().map(move |k| k * base.powi(power))).collect()
        };
        let choices = unit.between();
        if !self.log {
            let step = round(choices[0]).into_iter().find(|step| self.high / step <= 4.0).unwrap_or(self.high);
            return (1..5).map(|k| f64::from(k) * step).take_while(|tick| *tick <= self.high).collect();
        }
        let mut ticks = Vec::new();
        for between in choices {
            ticks = round(between);
            ticks.retain(|tick| *tick >= self.low * 0.999 && *tick <= self.high * 1.001);
            if ticks.len() > 2 {
                break;
            }
        }
        let thin = ticks.len().div_ceil(5).max(1);
        ticks.into_iter().step_by(thin).collect()
    }
}

/// What a scale measures.
#[derive(Debug, Clone, Copy)]
pub enum Unit {
    /// Bytes, or bytes per second.
    Bytes,
    /// Seconds.
    Seconds,
}

impl Unit {
    /// Factors of round values within a power, from few to many.
    fn between(self) -> &'static [&'static [f64]] {
        match self {
            Self::Bytes => {
                &[&[1.0], &[1.0, 1.5], &[1.0, 1.25, 1.5, 1.75], &[1.0, 1.125, 1.25, 1.375, 1.5, 1.625, 1.75, 1.875]]
            }
            Self::Seconds => &[&[1.0, 2.0, 5.0], &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0]],
        }
    }

    /// A value beside an axis: a round one, without zeros behind the point.
    pub fn tick(self, value: f64) -> String {
        let words = match self {
            Self::Bytes => rate(value),
            Self::Seconds => seconds(value),
        };
        words.replace(".00 ", " ").replace(".0 ", " ")
    }
}
