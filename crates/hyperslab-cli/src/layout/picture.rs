//! A file as a picture: lines of stripes, in the colours of its arrays.

use super::drawing;
use super::stripes::{Stripes, short};
use hyperslab_core::units::display_size;
use hyperslab_formats::file_map::FileMap;
use std::fmt::Write;

const CELLS: u64 = 128 * 24;
const COLUMNS: usize = 128;
const CELL: usize = 7;
const LEFT: usize = 90;
const TOP: usize = 40;
/// Arrays in the legend.
const MOST_NAMED: usize = 20;

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

/// The colour of an array: hues as far from each other as their number allows.
fn colour(array: usize) -> String {
    format!("hsl({}, 60%, {}%)", array * 137 % 360, 45 + array / 8 % 3 * 12)
}

/// The picture.
pub fn svg(map: &FileMap, stripes: Stripes, name: &str) -> String {
    let (cells, cell) = drawing::cells(map, CELLS);
    let lines = cells.len().div_ceil(COLUMNS).max(1);
    let named = map.arrays.len().min(MOST_NAMED);
    let (width, legend) = (LEFT + COLUMNS * CELL + 10, TOP + lines * (CELL + 3) + 20);
    let height = legend + (named + 2) * 16 + 10;
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" font-family=\"sans-serif\" \
         font-size=\"11\" role=\"img\">\n<title>{0}</title>\n<rect width=\"{width}\" height=\"{height}\" fill=\"white\"/>\n\
         <text x=\"10\" y=\"20\" font-size=\"14\">{0}: {1}, {2} for each cell, stripes of {3} on {4} targets</text>\n",
        escape(name),
        display_size(map.size),
        display_size(cell),
        display_size(stripes.size),
        stripes.count
    );
    for (number, line) in cells.chunks(COLUMNS).enumerate() {
        let y = TOP + number * (CELL + 3);
        let start = number as u64 * COLUMNS as u64 * cell;
        let _ = writeln!(
            out,
            "<text x=\"{}\" y=\"{}\" text-anchor=\"end\">{}</text>",
            LEFT - 6,
            y + CELL,
            display_size(start)
        );
        // Neighbours of one kind are one rectangle.
        let mut at = 0;
        while at < line.len() {
            let same = line[at..].iter().take_while(|cell| **cell == line[at]).count();
            let fill = match line[at] {
                None => "#eeeeee".to_owned(),
                Some(None) => "#333333".to_owned(),
                Some(Some(array)) => colour(array),
            };
            let (x, long) = (LEFT + at * CELL, same * CELL);
            let _ = writeln!(out, "<rect x=\"{x}\" y=\"{y}\" width=\"{long}\" height=\"{CELL}\" fill=\"{fill}\"/>");
            at += same;
        }
        // Where stripes begin, if they can be told apart.
        if stripes.size >= 2 * cell {
            let end = start + line.len() as u64 * cell;
            let first = start.div_ceil(stripes.size) * stripes.size;
            for stripe in (first..end).step_by(stripes.size as usize) {
                let x = LEFT + ((stripe - start) as f64 / cell as f64 * CELL as f64) as usize;
                let _ = writeln!(out, "<path d=\"M{x} {}v{}\" stroke=\"black\"/>", y - 1, CELL + 2);
            }
        }
    }
    let kinds = [("metadata".to_owned(), "#333333".to_owned()), ("neither".to_owned(), "#eeeeee".to_owned())];
    let arrays = map.arrays.iter().take(named).enumerate();
    let arrays = arrays.map(|(number, array)| (short(&array.name, 100), colour(number)));
    for (number, (words, fill)) in kinds.into_iter().chain(arrays).enumerate() {
        let y = legend + number * 16;
        let _ = writeln!(
            out,
            "<rect x=\"{LEFT}\" y=\"{y}\" width=\"10\" height=\"10\" fill=\"{fill}\"/><text x=\"{}\" y=\"{}\">{}</text>",
            LEFT + 16,
            y + 9,
            escape(&words)
        );
    }
    out.push_str("</svg>\n");
    out
}
