//! Stripes of a file on storage targets, and what does not begin where a stripe does.

use crate::terminal::plain;
use anyhow::Result;
use hyperslab_core::units::display_size;
use hyperslab_formats::file_map::{FileMap, FilePiece};
use std::io::Write;

/// Arrays that are listed.
const MOST_LISTED: usize = 40;
/// Pieces that formats align, at least.
const WORTH_ALIGNING: u64 = 64 << 10;
/// Columns of a name.
const NAME: usize = 24;

/// How a file is cut, and how many targets take its stripes in turn. The first lies on target 0.
#[derive(Debug, Clone, Copy)]
pub struct Stripes {
    pub size: u64,
    pub count: u64,
}

impl Stripes {
    /// The targets of the bytes from `start`, each once.
    pub fn targets(&self, start: u64, len: u64) -> impl Iterator<Item = u64> + use<> {
        let first = start / self.size;
        let end = if len == 0 { first } else { (start + len - 1) / self.size + 1 };
        let count = self.count;
        (first..end.min(first.saturating_add(count))).map(move |stripe| stripe % count)
    }
}

/// What is counted of an array.
#[derive(Debug, Default, Clone)]
struct Counted {
    pieces: u64,
    bytes: u64,
    unaligned: u64,
    /// Pieces that lie on more targets than their size needs.
    split: u64,
    most: usize,
}

/// Prints a table of the arrays.
pub fn print(out: &mut dyn Write, map: &FileMap, stripes: Stripes) -> Result<()> {
    let mut counted = vec![Counted::default(); map.arrays.len()];
    for piece in &map.pieces {
        let Some(counted) = piece.array.and_then(|array| counted.get_mut(array)) else { continue };
        let targets = stripes.targets(piece.start, piece.len).count();
        let needed = piece.len.div_ceil(stripes.size).min(stripes.count) as usize;
        counted.pieces += 1;
        counted.bytes += piece.len;
        counted.unaligned += u64::from(!piece.start.is_multiple_of(stripes.size));
        counted.split += u64::from(targets > needed);
        counted.most = counted.most.max(targets);
    }
    let of = |value: fn(&Counted) -> u64| counted.iter().map(value).sum::<u64>();
    let (pieces, unaligned, split) = (of(|c| c.pieces), of(|c| c.unaligned), of(|c| c.split));
    writeln!(out, "stripes of {} on {} target{}", display_size(stripes.size), stripes.count, plural(stripes.count))?;
    if pieces == 0 {
        writeln!(out, "  no elements are stored outside the metadata")?;
        return Ok(());
    }
    let share = 100.0 * unaligned as f64 / pieces as f64;
    writeln!(out, "  {unaligned} of {pieces} pieces ({share:.1} %) begin inside a stripe; {split} touch more targets")?;
    writeln!(out, "  than their size needs")?;
    writeln!(out, "  {:<NAME$} {:>8} {:>12} {:>10} {:>7}", "array", "pieces", "bytes", "unaligned", "targets")?;
    let mut order: Vec<usize> = (0..counted.len()).collect();
    order.sort_by_key(|array| std::cmp::Reverse(counted[*array].bytes));
    for array in order.iter().take(MOST_LISTED) {
        let Counted { pieces, bytes, unaligned, most, .. } = &counted[*array];
        let (letter, name) = (super::drawing::letter(*array), short(&plain(&map.arrays[*array].name), NAME - 2));
        writeln!(out, "  {letter} {name:<22} {pieces:>8} {:>12} {unaligned:>10} {most:>7}", display_size(*bytes))?;
    }
    if order.len() > MOST_LISTED {
        writeln!(out, "  and {} smaller arrays", order.len() - MOST_LISTED)?;
    }
    let large = |piece: &FilePiece| piece.array.is_some() && piece.len >= stripes.size.min(WORTH_ALIGNING);
    if unaligned * 2 > pieces && map.pieces.iter().any(large) {
        writeln!(out, "try: hyperslab convert IN OUT --align {}", exact(stripes.size))?;
    }
    Ok(())
}

/// A size as options take it.
fn exact(bytes: u64) -> String {
    match [("GiB", 30), ("MiB", 20), ("KiB", 10)].into_iter().find(|(_, bits)| bytes.is_multiple_of(1 << bits)) {
        Some((unit, bits)) => format!("{}{unit}", bytes >> bits),
        None => bytes.to_string(),
    }
}

fn plural(count: u64) -> &'static str {
    if count == 1 { "" } else { "s" }
}

/// The end of a name that is too long: it tells more than the groups above.
pub fn short(name: &str, columns: usize) -> String {
    let count = name.chars().count();
    if count <= columns {
        return name.to_owned();
    }
    name.chars().skip(count - columns + 1).fold("~".to_owned(), |mut text, c| {
        text.push(c);
        text
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn targets_are_those_of_the_stripes() {
        let stripes = Stripes { size: 10, count: 4 };
        let of = |start, len| stripes.targets(start, len).collect::<Vec<_>>();
        assert_eq!(of(0, 10), [0]);
        assert_eq!(of(5, 10), [0, 1]);
        assert_eq!(of(35, 10), [3, 0]);
        assert_eq!(of(20, 1000).len(), 4);
        assert!(of(7, 0).is_empty());
        assert_eq!([exact(1 << 20), exact(3 << 30), exact(1000)], ["1MiB", "3GiB", "1000"]);
        assert_eq!(short("group/temperature", 8), "~erature");
    }
}
