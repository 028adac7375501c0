//! Plain tables for the terminal.

/// How a column is set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Align {
    /// Text.
    Left,
    /// Numbers.
    Right,
}

/// Text as it may stand in a page.
pub fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

/// Rows of text under headings, each column as wide as its widest cell.
#[derive(Debug)]
pub struct Table {
    columns: Vec<(String, Align)>,
    rows: Vec<Vec<String>>,
}

impl Table {
    /// An empty table.
    pub fn new<H: ToString>(columns: &[(H, Align)]) -> Self {
        Self { columns: columns.iter().map(|(head, align)| (head.to_string(), *align)).collect(), rows: Vec::new() }
    }

    /// Adds a row with one cell per column.
    pub fn row(&mut self, cells: Vec<String>) {
        debug_assert_eq!(cells.len(), self.columns.len());
        self.rows.push(cells);
    }

    /// The whole for a page.
    pub fn html(&self) -> String {
        let class = |align: &Align| if *align == Align::Right { " class=\"number\"" } else { "" };
        let heads = self.columns.iter().map(|(head, align)| format!("<th{}>{}</th>", class(align), escaped(head)));
        let mut out = format!("<table><tr>{}</tr>\n", heads.collect::<String>());
        for row in &self.rows {
            let cells = row.iter().zip(&self.columns);
            let cells = cells.map(|(cell, (_, align))| format!("<td{}>{}</td>", class(align), escaped(cell)));
            out.push_str(&format!("<tr>{}</tr>\n", cells.collect::<String>()));
        }
        out + "</table>\n"
    }

    /// The whole as text, a rule under the headings.
    pub fn render(&self) -> String {
        let width = |text: &str| text.chars().count();
        let widths: Vec<usize> = self
            .columns
            .iter()
            .enumerate()
            .map(|(i, (head, _))| self.rows.iter().map(|r| width(&r[i])).fold(width(head), usize::max))
            .collect();
        let line = |cells: &[&str]| {
            let parts: Vec<String> = cells
                .iter()
                .zip(&self.columns)
                .zip(&widths)
                .map(|((cell, (_, align)), &w)| {
                    let space = " ".repeat(w - width(cell));
                    if *align == Align::Left { format!("{cell}{space}") } else { format!("{space}{cell}") }
                })
                .collect();
            parts.join("  ").trim_end().to_owned()
        };
        let mut out = line(&self.columns.iter().map(|(head, _)| head.as_str()).collect::<Vec<_>>());
        out.push('\n');
        out.push_str(&"─".repeat(widths.iter().sum::<usize>() + 2 * widths.len().saturating_sub(1)));
        out.push('\n');
        for row in &self.rows {
            out.push_str(&line(&row.iter().map(String::as_str).collect::<Vec<_>>()));
            out.push('\n');
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_line_up() {
        let mut table = Table::new(&[("name", Align::Left), ("n", Align::Right)]);
        table.row(vec!["a".into(), "10".into()]);
        table.row(vec!["long".into(), "5".into()]);
        assert_eq!(table.render(), "name   n\n────────\na     10\nlong   5\n");
    }
}
