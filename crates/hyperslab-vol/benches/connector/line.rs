//! One line of the table.

use std::fmt;

pub const HEAD: &str =
    "what                                                            plain  connector   ratio     aim";

/// What is wanted.
#[derive(Clone, Copy)]
pub enum Aim {
    /// The plain program's time by the connector's is at least this.
    Faster(f64),
    /// The connector's amount by the plain one's is at most this.
    AtMost(f64),
    /// A call takes at most so many seconds more.
    More(f64),
}

/// Something that was measured on both sides.
pub struct Line {
    pub what: String,
    /// Of the plain program.
    pub plain: f64,
    /// Under the connector.
    pub connector: f64,
    pub aim: Aim,
}

impl Line {
    pub fn new(what: impl Into<String>, [plain, connector]: [f64; 2], aim: Aim) -> Self {
        Self { what: what.into(), plain, connector, aim }
    }

    pub fn missed(&self) -> bool {
        match self.aim {
            Aim::Faster(least) => self.plain / self.connector < least,
            Aim::AtMost(most) => self.connector / self.plain > most,
            Aim::More(seconds) => self.connector - self.plain > seconds,
        }
    }
}

impl fmt::Display for Line {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let time = |seconds: f64| match seconds {
            s if s < 1e-3 => format!("{:.2} us", s * 1e6),
            s => format!("{:.1} ms", s * 1e3),
        };
        let size = |bytes: f64| format!("{:.2} MiB", bytes / f64::from(1 << 20));
        let (plain, connector, ratio, aim) = match self.aim {
            Aim::Faster(least) => (
                time(self.plain),
                time(self.connector),
                format!("{:.2}", self.plain / self.connector),
                format!(">={least:.2}"),
            ),
            Aim::AtMost(most) => (
                size(self.plain),
                size(self.connector),
                format!("{:.3}", self.connector / self.plain),
                format!("<={most:.2}"),
            ),
            Aim::More(seconds) => (
                time(self.plain),
                time(self.connector),
                format!("+{:.2}us", (self.connector - self.plain) * 1e6),
                format!("+{:.0}us", seconds * 1e6),
            ),
        };
        let mark = if self.missed() { "<" } else { "" };
        write!(f, "{:57} {plain:>11} {connector:>10} {ratio:>7} {aim:>7}{mark}", self.what)
    }
}
