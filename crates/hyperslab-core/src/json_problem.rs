//! What is wrong with JSON text, in words that need no knowledge of the reader.

/// The problem and its place. Nothing of the text is quoted: it may hold what a terminal would obey.
pub fn json_problem(error: &serde_json::Error) -> String {
    use serde_json::error::Category;
    let place = format!("line {}, column {}", error.line(), error.column());
    match error.classify() {
        Category::Eof => format!("it ends in the middle ({place}); was it cut short?"),
        Category::Syntax => format!("it is not JSON ({place})"),
        Category::Data => format!("it is JSON, but a value is missing or is not what it must be ({place})"),
        Category::Io => "it cannot be read to its end".into(),
    }
}
