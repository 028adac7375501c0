//! Text from files on its way to a terminal.

/// The text as one harmless line: it may come from anywhere, and a terminal obeys control characters.
pub fn plain(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_characters_are_spaces() {
        assert_eq!(plain("a\u{1b}[31mb\r\n\u{9b}c\u{e4}"), "a [31mb   c\u{e4}");
    }
}
