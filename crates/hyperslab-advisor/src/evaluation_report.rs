//! The evaluation as text and as a page.

use hyperslab_report::table::{Align, Table, escaped};

/// Tables and words in the order they are added.
#[derive(Debug, Default)]
pub struct Page {
    tables: Vec<(String, Table)>,
    words: String,
    wrong: Vec<(String, Table)>,
}

impl Page {
    /// An empty one.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a table under a heading.
    pub fn table(&mut self, heading: &str, table: Table) {
        self.tables.push((heading.into(), table));
    }

    /// Adds an explanation below the tables.
    pub fn words(&mut self, words: &str) {
        self.words.push_str(words);
    }

    /// Adds choices that went wrong; on the page only.
    pub fn wrong(&mut self, cache: &str, rows: &[Vec<String>]) {
        let heads = ["array and chunks", "access", "fastest", "predicted to be the fastest"];
        let mut table = Table::new(&heads.map(|head| (head, Align::Left)));
        rows.iter().for_each(|row| table.row(row.clone()));
        self.wrong.push((format!("{cache}: wrong choices with one configuration left out"), table));
    }

    /// For the terminal.
    pub fn text(&self) -> String {
        let tables: String =
            self.tables.iter().map(|(heading, table)| format!("{heading}\n\n{}\n", table.render())).collect();
        format!("{tables}{}\n", self.words)
    }

    /// For a browser.
    pub fn html(&self, plot: &str) -> String {
        let part = |(heading, table): &(String, Table)| format!("<h2>{}</h2>\n{}", escaped(heading), table.html());
        let tables: String = self.tables.iter().map(part).collect();
        let wrong: String = self.wrong.iter().map(part).collect();
        format!(
            "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>How good predictions are</title>\n\
             <style>body{{font-family:sans-serif;max-width:70em;margin:2em auto;padding:0 1em}}\
             table{{border-collapse:collapse}}td,th{{padding:.2em .8em;border-bottom:1px solid #ddd;text-align:left}}\
             .number{{text-align:right}}svg{{max-width:36em}}</style></head>\n<body><h1>How good predictions are</h1>\n\
             <p>Every run was predicted by a model that did not know it.</p>\n{plot}\n{tables}\n<p>{}</p>\n{wrong}\n\
             </body></html>\n",
            escaped(&self.words)
        )
    }
}
