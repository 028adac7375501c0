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
    /// Columns that may be left out, the first one first.
    dropped_first: &'static [&'static str],
}

/// From this width on, rows that do not fit are left to the terminal; below, they are stacked.
const STACKED_BELOW: usize = 100;

impl Table {
    /// An empty table.
    pub fn new<H: ToString>(columns: &[(H, Align)]) -> Self {
        Self {
            columns: columns.iter().map(|(head, align)| (head.to_string(), *align)).collect(),
            rows: Vec::new(),
            dropped_first: &[],
        }
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

    /// The same, with columns that may be left out where there is no room, the first of them first.
    pub fn dropping(mut self, first: &'static [&'static str]) -> Self {
        self.dropped_first = first;
        self
    }

    /// The whole as text, as wide as the terminal; all of it where none tells its width.
    pub fn render(&self) -> String {
        self.render_in(crate::terminal::width())
    }

    /// The whole as text, a rule under the headings. What does not fit into `width` loses columns in their order, with a word about
    /// it, and if that is not enough below 100 columns, each row becomes a block of lines.
    pub fn render_in(&self, width: Option<usize>) -> String {
        let mut kept: Vec<usize> = (0..self.columns.len()).collect();
        let mut gone: Vec<&str> = Vec::new();
        let fits = |kept: &[usize]| width.is_none_or(|width| self.width(kept) <= width);
        for name in self.dropped_first {
            if fits(&kept) {
                break;
            }
            let before = kept.len();
            kept.retain(|column| self.columns[*column].0 != *name);
            if kept.len() < before && !name.is_empty() {
                gone.push(name);
            }
        }
        if !fits(&kept) && width.is_some_and(|width| width < STACKED_BELOW) {
            return self.blocks(width.unwrap_or(STACKED_BELOW));
        }
        let mut out = self.lines(&kept);
        if !gone.is_empty() {
            let words = format!("(left out for want of room: {})", gone.join(", "));
            out.push_str(&wrapped(&words, width.unwrap_or(STACKED_BELOW), 0));
        }
        out
    }

    fn widths(&self, kept: &[usize]) -> Vec<usize> {
        let width = |text: &str| text.chars().count();
        let of = |column: &usize| {
            self.rows.iter().map(|row| width(&row[*column])).fold(width(&self.columns[*column].0), usize::max)
        };
        kept.iter().map(of).collect()
    }

    fn width(&self, kept: &[usize]) -> usize {
        self.widths(kept).iter().sum::<usize>() + 2 * kept.len().saturating_sub(1)
    }

    fn lines(&self, kept: &[usize]) -> String {
        let widths = self.widths(kept);
        let line = |cells: &[&str]| {
            let part = |(column, width): (&usize, &usize)| {
                let text = cells[*column];
                let space = " ".repeat(width - text.chars().count());
                if self.columns[*column].1 == Align::Left { format!("{text}{space}") } else { format!("{space}{text}") }
            };
            kept.iter().zip(&widths).map(part).collect::<Vec<_>>().join("  ").trim_end().to_owned()
        };
        let mut out = line(&self.columns.iter().map(|(head, _)| head.as_str()).collect::<Vec<_>>()) + "\n";
        out.push_str(&"─".repeat(self.width(kept)));
        out.push('\n');
        for row in &self.rows {
            out.push_str(&line(&row.iter().map(String::as_str).collect::<Vec<_>>()));
            out.push('\n');
        }
        out
    }

    /// A block of lines for each row.
    fn blocks(&self, width: usize) -> String {
        let heads = self.columns.iter().map(|(head, _)| head.chars().count()).max().unwrap_or(0);
        let mut out = String::new();
        for row in &self.rows {
            for ((head, _), cell) in self.columns.iter().zip(row) {
                if !cell.is_empty() && !head.is_empty() {
                    let line = format!("{head}{}  {cell}", " ".repeat(heads - head.chars().count()));
                    out.push_str(&wrapped(&line, width, heads + 2));
                }
            }
            out.push('\n');
        }
        out
    }
}

/// Text in lines of at most `width`, where words allow it, those after the first moved in.
pub fn wrapped(text: &str, width: usize, indent: usize) -> String {
    let mut out = String::new();
    let mut column = 0;
    for (place, word) in text.split(' ').enumerate() {
        let length = word.chars().count();
        if place > 0 && column + 1 + length > width && column > indent {
            out.truncate(out.trim_end_matches(' ').len());
            out.push('\n');
            out.push_str(&" ".repeat(indent));
            column = indent;
        } else if place > 0 {
            out.push(' ');
            column += 1;
        }
        out.push_str(word);
        column += length;
    }
    out.truncate(out.trim_end_matches(' ').len());
    out + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_line_up() {
        let mut table = Table::new(&[("name", Align::Left), ("n", Align::Right)]);
        table.row(vec!["a".into(), "10".into()]);
        table.row(vec!["long".into(), "5".into()]);
        assert_eq!(table.render_in(None), "name   n\n────────\na     10\nlong   5\n");
    }

    #[test]
    fn narrow_terminals_get_fewer_columns_and_then_blocks() {
        let table = || {
            let mut table = Table::new(&[("name", Align::Left), ("n", Align::Right), ("more", Align::Left)]);
            table.row(vec!["long name".into(), "10".into(), "1234567890".into()]);
            table
        };
        let dropped = table().dropping(&["more"]).render_in(Some(45));
        assert_eq!(dropped, "name        n  more\n─────────────────────────\nlong name  10  1234567890\n");
        let dropped = table().dropping(&["more"]).render_in(Some(20));
        assert_eq!(dropped, "name        n\n─────────────\nlong name  10\n(left out for want\nof room: more)\n");
        assert_eq!(table().render_in(Some(12)), "name  long\n      name\nn     10\nmore  1234567890\n\n");
    }
}
