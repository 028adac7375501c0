//! The two time lines as a picture in a file.

use super::play::Side;
use super::terminal::tick;
use super::timeline::{Interval, Timeline};
use anyhow::{Context, Result, bail};
use std::fs::File;
use std::io::{ErrorKind, Read};
use std::path::Path;

/// How every picture begins: what may be replaced without asking.
const BEGIN: &str = "<!-- made by hyperslab demo async -->\n";

const COMPUTING: &str = "#4c9f70";
const WAITING: &str = "#d1495b";
const BACKGROUND: &str = "#30638e";

/// Pixels.
const WIDTH: f64 = 900.0;
const LEFT: f64 = 110.0;
const RIGHT: f64 = 20.0;
const LANE: f64 = 26.0;

/// Refuses a place where something lies that is no picture of this command.
pub fn check_place(path: &Path, overwrite: bool) -> Result<()> {
    if overwrite {
        return Ok(());
    }
    let mut begin = Vec::new();
    match File::open(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
        opened => opened.and_then(|file| file.take(BEGIN.len() as u64).read_to_end(&mut begin)),
    }
    .with_context(|| format!("look at {}", path.display()))?;
    if begin != BEGIN.as_bytes() {
        bail!(
            "{} exists and is no picture of this command\n  try: --svg with another name, or --overwrite",
            path.display()
        );
    }
    Ok(())
}

/// The picture, with `title` above it.
pub fn picture(title: &str, rows: &[(&Side, &Timeline)]) -> String {
    let rows: Vec<_> = rows.iter().map(|(side, line)| (side.name, side.stack.to_string(), *line)).collect();
    draw(title, &rows)
}

fn draw(title: &str, rows: &[(&str, String, &Timeline)]) -> String {
    let longest = rows.iter().map(|(.., line)| line.total).fold(0.0, f64::max).max(1e-9);
    let scale = (WIDTH - LEFT - RIGHT) / longest;
    let mut body = text(LEFT, 24.0, "start", 15, title);
    let mut y = 44.0;
    for (name, stack, line) in rows {
        let heading = format!("{name}: {stack}, {:.2} s in all, {:.2} s blocked", line.total, line.blocked());
        body += &text(LEFT, y + 12.0, "start", 13, &heading);
        y += 20.0;
        body += &lane("program", y, &[(0.0, line.total)], COMPUTING, scale);
        body += &bars(y, &line.waiting, WAITING, scale);
        y += LANE + 4.0;
        if !line.background.is_empty() {
            body += &lane("background", y, &line.background, BACKGROUND, scale);
            y += LANE + 4.0;
        }
        y += 14.0;
    }
    body += &axis(y, longest, scale);
    y += 44.0;
    let legend = [(COMPUTING, "computing"), (WAITING, "waiting for I/O"), (BACKGROUND, "I/O in the background")];
    for (number, (colour, meaning)) in legend.into_iter().enumerate() {
        let x = LEFT + 190.0 * number as f64;
        body += &format!("<rect x=\"{x}\" y=\"{:.1}\" width=\"14\" height=\"14\" fill=\"{colour}\"/>\n", y - 12.0);
        body += &text(x + 20.0, y, "start", 13, meaning);
    }
    let height = y + 16.0;
    format!(
        "{BEGIN}<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height:.0}\" width=\"{WIDTH}\" \
         height=\"{height:.0}\" font-family=\"sans-serif\">\n<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n\
         {body}</svg>\n"
    )
}

fn lane(name: &str, y: f64, intervals: &[Interval], colour: &str, scale: f64) -> String {
    text(LEFT - 8.0, y + LANE * 0.68, "end", 13, name) + &bars(y, intervals, colour, scale)
}

fn bars(y: f64, intervals: &[Interval], colour: &str, scale: f64) -> String {
    let bar = |(from, to): &Interval| {
        let (x, width) = (LEFT + from * scale, (to - from) * scale);
        format!("<rect x=\"{x:.2}\" y=\"{y:.1}\" width=\"{width:.2}\" height=\"{LANE}\" fill=\"{colour}\"/>\n")
    };
    intervals.iter().map(bar).collect()
}

fn axis(y: f64, longest: f64, scale: f64) -> String {
    let step = tick(longest, 10);
    let mark = |number: usize| {
        let (x, at) = (LEFT + number as f64 * step * scale, (number as f64 * step * 1e6).round() / 1e6);
        let line = format!("<path d=\"M{x:.2} {:.1}v6\" stroke=\"black\"/>\n", y - 8.0);
        line + &text(x, y + 12.0, "middle", 12, &format!("{at} s"))
    };
    let marks: String = (0..=(longest / step) as usize).map(mark).collect();
    format!("<path d=\"M{LEFT} {:.1}H{}\" stroke=\"black\"/>\n{marks}", y - 8.0, WIDTH - RIGHT)
}

fn text(x: f64, y: f64, anchor: &str, size: u32, words: &str) -> String {
    let words = words.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
    format!("<text x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\" font-size=\"{size}\">{words}</text>\n")
}

#[cfg(test)]
mod tests {
    use super::super::timeline::tests::example;
    use super::*;

    #[test]
    fn every_interval_is_a_bar_at_its_place() {
        let line = example();
        let text = draw("a < b", &[("two", "x/posix".into(), &line)]);
        assert!(text.starts_with(BEGIN) && text.ends_with("</svg>\n") && text.contains("a &lt; b"));
        let lanes = |colour: &str| text.matches(&format!("height=\"{LANE}\" fill=\"{colour}\"")).count();
        assert_eq!((lanes(COMPUTING), lanes(WAITING), lanes(BACKGROUND)), (1, 4, 2));
        let scale = (WIDTH - LEFT - RIGHT) / 2.8;
        assert!(text.contains(&format!("<rect x=\"{:.2}\"", LEFT + 1.2 * scale)), "{text}");
    }

    #[test]
    fn only_pictures_of_this_command_are_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.svg");
        assert!(check_place(&path, false).is_ok());
        std::fs::write(&path, draw("t", &[])).unwrap();
        assert!(check_place(&path, false).is_ok());
        std::fs::write(&path, "<svg>my own</svg>").unwrap();
        assert!(check_place(&path, false).unwrap_err().to_string().contains("--overwrite"));
        assert!(check_place(&path, true).is_ok());
        assert!(check_place(folder.path(), false).is_err(), "a folder");
    }
}
