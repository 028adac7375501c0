//! Text from results on its way into a page: nothing in it is markup.

/// The text as it may stand between tags and in attributes with double quotes. Characters that steer terminals or text
/// direction are spaces.
pub fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            '`' => out.push_str("&#96;"),
            '\n' => out.push('\n'),
            '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => out.push(' '),
            c if c.is_control() => out.push(' '),
            c => out.push(c),
        }
    }
    out
}

/// The text as one line of a cell in Markdown.
pub fn markdown(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '|' | '\\' | '`' | '*' | '_' | '[' | ']' | '#' | '~' | '!' => out.extend(['\\', c]),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '&' => out.push_str("&amp;"),
            c if c.is_control() => out.push(' '),
            c => out.push(c),
        }
    }
    out
}

/// The text as a field of CSV. What a spreadsheet would take for a formula begins with an apostrophe.
pub fn csv(text: &str) -> String {
    let text: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    let text = if text.starts_with(['=', '+', '-', '@']) { format!("'{text}") } else { text };
    if text.contains([',', '"']) { format!("\"{}\"", text.replace('"', "\"\"")) } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_stays_markup() {
        assert_eq!(escape("<a b=\"c\" d='e'>&\u{1b}\u{202e}"), "&lt;a b=&quot;c&quot; d=&#39;e&#39;&gt;&amp;  ");
        assert_eq!(markdown("a|b<script>"), "a\\|b&lt;script&gt;");
        assert_eq!(csv("=1+1"), "'=1+1");
        assert_eq!(csv("a,\"b\"\n"), "\"a,\"\"b\"\" \"");
    }
}
