//! Text on its way to a terminal.

use std::io::IsTerminal;

/// Words that mean trouble, at the end of a line.
const BAD: [&str; 4] = ["FAILED", "NO", "slower", "stopped"];

/// How wide lines may be: `COLUMNS`, or the width of the terminal that the output goes to. `None` for files and pipes, which get
/// everything.
pub fn width() -> Option<usize> {
    let said = std::env::var("COLUMNS").ok().and_then(|columns| columns.parse().ok());
    said.filter(|columns| *columns >= 20).or_else(|| {
        let terminal = std::io::stdout().is_terminal().then(terminal_size::terminal_size).flatten();
        terminal.map(|(columns, _)| usize::from(columns.0).max(20))
    })
}

/// The lines with their last word in red if it means trouble: on a terminal, unless NO_COLOR says no.
pub fn paint(text: &str) -> String {
    let plain = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty()) || !std::io::stdout().is_terminal();
    if plain { text.to_owned() } else { painted(text) }
}

fn painted(text: &str) -> String {
    let line = |line: &str| match BAD.iter().find(|word| line.ends_with(*word)) {
        Some(word) => format!("{}\u{1b}[31m{word}\u{1b}[0m", line.strip_suffix(word).unwrap_or_default()),
        None => line.to_owned(),
    };
    text.split('\n').map(line).collect::<Vec<_>>().join("\n")
}

/// The text as one harmless line: it may come from anywhere, and a terminal obeys control characters.
pub fn plain(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn trouble_is_red() {
        assert_eq!(painted("a slower\nb same"), "a \u{1b}[31mslower\u{1b}[0m\nb same");
    }

    #[test]
    fn control_characters_are_spaces() {
        assert_eq!(plain("a\u{1b}[31mb\r\n\u{9b}c\u{e4}"), "a [31mb   c\u{e4}");
    }
}
