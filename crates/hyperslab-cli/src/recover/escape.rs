//! Text of others, made safe to print.

use std::fmt::Display;

/// The text with everything escaped that a terminal could take for a command or that could pass for another line.
pub fn escaped(text: impl Display) -> String {
    escape(&text.to_string(), false)
}

/// The words of an error, whose lines stay: those behind the first are indented, so that none can pass for another message.
pub fn lines(text: impl Display) -> String {
    escape(&text.to_string(), true)
}

fn escape(text: &str, keep_lines: bool) -> String {
    let mut out = String::with_capacity(text.len());
    for (at, c) in text.char_indices() {
        match c {
            '\n' if keep_lines && text[at + 1..].starts_with("  ") => out.push(c),
            c if c.is_control() || is_invisible(c) => out.extend(c.escape_unicode()),
            c => out.push(c),
        }
    }
    out
}

/// Characters that change how others are shown.
fn is_invisible(c: char) -> bool {
    matches!(c, '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escape_sequences_and_lines_are_shown_as_text() {
        assert_eq!(escaped("a\u{1b}[31mb\nc\u{9b}d\u{202e}"), "a\\u{1b}[31mb\\u{a}c\\u{9b}d\\u{202e}");
        assert_eq!(lines("a\n  try: \u{7}b"), "a\n  try: \\u{7}b");
        assert_eq!(lines("a\nb: recovered"), "a\\u{a}b: recovered");
        assert_eq!(escaped("Größe/x.h5"), "Größe/x.h5");
    }
}
