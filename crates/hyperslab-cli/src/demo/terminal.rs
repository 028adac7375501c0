//! The two time lines as text.

use super::play::Side;
use super::timeline::{Timeline, overlap};
use crate::table::{Align, Table};
use std::io::IsTerminal;

/// The labels' column.
const LABEL: usize = 14;
/// Where no terminal says how wide it is.
const USUAL: usize = 80;

/// What a cell of the picture shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Computing,
    Waiting,
    Background,
    Nothing,
}

impl Kind {
    fn block(self) -> char {
        match self {
            Self::Computing => '█',
            Self::Waiting => '░',
            Self::Background => '▄',
            Self::Nothing => ' ',
        }
    }

    /// Green, red, blue.
    fn colour(self) -> u8 {
        match self {
            Self::Computing => 32,
            Self::Waiting => 31,
            Self::Background => 34,
            Self::Nothing => 0,
        }
    }
}

/// The columns of the terminal.
pub fn width() -> usize {
    terminal_size::terminal_size().map_or(USUAL, |(width, _)| usize::from(width.0))
}

/// Whether standard output is a terminal whose user has nothing against colours.
pub fn colours() -> bool {
    std::io::stdout().is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
}

/// All runs on one scale, and what the blocks mean.
pub fn picture(rows: &[(&Side, &Timeline)], width: usize, colours: bool) -> String {
    let lines: Vec<_> = rows.iter().map(|(side, line)| (side.name, side.stack.to_string(), *line)).collect();
    draw(&lines, width, colours)
}

fn draw(rows: &[(&str, String, &Timeline)], width: usize, colours: bool) -> String {
    let cells = width.saturating_sub(LABEL + 1).clamp(20, 400);
    let longest = rows.iter().map(|(.., line)| line.total).fold(0.0, f64::max).max(1e-9);
    let cell = longest / cells as f64;
    let mut out = String::new();
    for (name, stack, line) in rows {
        out.push_str(&format!("{name:<LABEL$}{stack}\n"));
        let program = (0..cells).map(|n| program(line, n as f64 * cell, cell));
        out.push_str(&format!("{:<LABEL$}{}\n", "  program", paint(program, colours)));
        if !line.background.is_empty() {
            let background = (0..cells).map(|n| background(line, n as f64 * cell, cell));
            out.push_str(&format!("{:<LABEL$}{}\n", "  background", paint(background, colours)));
        }
        out.push('\n');
    }
    out.push_str(&format!("{:<LABEL$}{}\n\n", "", axis(longest, cells)));
    for (kind, meaning) in [
        (Kind::Computing, "computing"),
        (Kind::Waiting, "waiting for I/O"),
        (Kind::Background, "I/O in the background"),
    ] {
        out.push_str(&format!("{} {meaning}   ", paint(std::iter::repeat_n(kind, 2), colours)));
    }
    out.truncate(out.trim_end().len());
    out.push('\n');
    out
}

/// What filled most of the time from `from` on.
fn program(line: &Timeline, from: f64, cell: f64) -> Kind {
    let to = (from + cell).min(line.total);
    if to - from < cell / 2.0 {
        return Kind::Nothing;
    }
    let waited = overlap(&line.waiting, (from, to));
    if waited * 2.0 > to - from { Kind::Waiting } else { Kind::Computing }
}

fn background(line: &Timeline, from: f64, cell: f64) -> Kind {
    let busy = overlap(&line.background, (from, from + cell));
    if busy * 2.0 > cell { Kind::Background } else { Kind::Nothing }
}

/// Blocks, with one escape sequence for each stretch of one colour.
fn paint(kinds: impl Iterator<Item = Kind>, colours: bool) -> String {
    let (mut out, mut last) = (String::new(), Kind::Nothing);
    for kind in kinds {
        if colours && kind != last {
            out.push_str(&format!("\u{1b}[{}m", kind.colour()));
            last = kind;
        }
        out.push(kind.block());
    }
    if last != Kind::Nothing {
        out.push_str("\u{1b}[0m");
    }
    out.trim_end().to_owned()
}

/// Seconds below the blocks.
fn axis(longest: f64, cells: usize) -> String {
    let step = tick(longest, cells / 12);
    let mut out = String::new();
    for number in 0.. {
        let at = number as f64 * step;
        let column = (at / longest * cells as f64) as usize;
        let text = format!("|{} s", (at * 1e6).round() / 1e6);
        if column + text.len() > cells + 1 {
            break;
        }
        out.push_str(&" ".repeat(column.saturating_sub(out.len())));
        out.push_str(&text);
    }
    out
}

/// A round distance of marks, so that there are at most `most` of them, but at least one.
pub fn tick(longest: f64, most: usize) -> f64 {
    let least = longest / most.max(1) as f64;
    let power = 10_f64.powf(least.log10().floor());
    [1.0, 2.0, 5.0, 10.0].into_iter().map(|factor| factor * power).find(|step| *step >= least).unwrap_or(least)
}

/// What the pictures say, in figures.
pub fn words(rows: &[(&Side, &Timeline)]) -> String {
    let lines: Vec<_> = rows.iter().map(|(side, line)| (side.name, *line)).collect();
    tell(&lines)
}

fn tell(rows: &[(&str, &Timeline)]) -> String {
    let columns = [
        ("", Align::Left),
        ("total", Align::Right),
        ("computing", Align::Right),
        ("blocked in I/O calls", Align::Right),
    ];
    let mut table = Table::new(&columns);
    let seconds = |time: f64| format!("{time:.2} s");
    for (name, line) in rows {
        let computing = line.total - line.blocked();
        table.row(vec![(*name).into(), seconds(line.total), seconds(computing), seconds(line.blocked())]);
    }
    let mut out = table.render();
    out.push('\n');
    for (name, line) in rows.iter().filter(|(_, line)| !line.background.is_empty()) {
        out.push_str(&format!(
            "{name}: {} of I/O in the background; {} of it ({:.0} %) were hidden behind computing.\n",
            seconds(line.in_background()),
            seconds(line.hidden()),
            100.0 * line.hidden() / line.in_background().max(f64::MIN_POSITIVE)
        ));
    }
    if let [(first, before), (second, after)] = rows {
        let ratio = before.total / after.total.max(f64::MIN_POSITIVE);
        out.push_str(&format!("{second} took {:.2} of the time of {first}: {ratio:.2} x as fast.\n", 1.0 / ratio));
    }
    out.push_str("Computing includes making the data to write. All data were read back and compared.");
    out
}

#[cfg(test)]
mod tests {
    use super::super::timeline::tests::example;
    use super::*;

    fn waiting() -> Timeline {
        Timeline { total: 4.0, waiting: vec![(1.0, 2.0), (3.0, 4.0)], background: Vec::new() }
    }

    #[test]
    fn blocks_follow_the_time_lines_on_one_scale() {
        let (before, after) = (waiting(), example());
        let text = draw(&[("one", "posix".into(), &before), ("two", "x/posix".into(), &after)], LABEL + 1 + 40, false);
        let lines: Vec<&str> = text.lines().collect();
        let blocks = |line: &str| line.chars().skip(LABEL).collect::<String>();
        let [c, w] = ["█".repeat(10), "░".repeat(10)];
        assert_eq!(lines[0], format!("{:<LABEL$}posix", "one"));
        assert_eq!(blocks(lines[1]), format!("{c}{w}{c}{w}"));
        // Ten cells a second: the second run ends after 28, and its last six wait.
        let program = blocks(lines[4]);
        assert_eq!((program.chars().count(), program.matches('█').count()), (28, 21), "{program}");
        assert!(program.ends_with("░░░░░░"), "{program}");
        assert_eq!(blocks(lines[5]), format!("{}{}{}{}", " ".repeat(12), "▄▄▄▄▄", " ".repeat(6), "▄▄▄▄▄"));
        assert!(lines[7].trim_start().starts_with("|0 s") && lines[7].contains("|2 s"), "{text}");
        assert!(text.contains("waiting for I/O") && !text.contains('\u{1b}'));
        assert!(draw(&[("one", "posix".into(), &before)], 80, true).contains("\u{1b}[31m░"));
    }

    #[test]
    fn any_width_and_length_can_be_drawn() {
        for total in [0.0, 1e-9, 1e9] {
            let line = Timeline { total, waiting: vec![(0.0, total)], background: Vec::new() };
            for width in [0, 1, 80, 100_000] {
                assert!(draw(&[("one", "posix".into(), &line)], width, false).lines().count() > 3);
            }
        }
    }

    #[test]
    fn words_give_times_what_was_hidden_and_the_ratio() {
        let text = tell(&[("one", &waiting()), ("two", &example())]);
        for part in
            ["4.00 s", "2.80 s", "0.70 s", "1.00 s of I/O in the background; 0.50 s of it (50 %)", "1.43 x as fast"]
        {
            assert!(text.contains(part), "{part} is missing in\n{text}");
        }
    }
}
