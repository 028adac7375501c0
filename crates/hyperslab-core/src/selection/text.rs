//! Selections as text, in numpy's notation.

use crate::{Dims, Error, Result, Selection};

impl Selection {
    /// Parses `0:100,::4,7`: for each dimension an index or start:stop:step; negative indices count from the end, omitted
    /// dimensions are whole. Stops beyond an extent are cut off, indices beyond it are errors.
    pub fn parse(text: &str, shape: &[u64]) -> Result<Self> {
        let parts: Vec<&str> =
            if text.trim().is_empty() { Vec::new() } else { text.split(',').map(str::trim).collect() };
        if parts.len() > shape.len() {
            return Err(bad(text, format!("it has {} dimensions, the array {}", parts.len(), shape.len())));
        }
        let (mut start, mut stride, mut count) = (Dims::new(), Dims::new(), Dims::new());
        for (dimension, &extent) in shape.iter().enumerate() {
            let part = parts.get(dimension).copied().unwrap_or(":");
            let (first, stop, step) =
                parse_range(part, extent).map_err(|message| bad(text, format!("{part:?}: {message}")))?;
            start.push(first);
            stride.push(step);
            count.push(stop.saturating_sub(first).div_ceil(step));
        }
        if count.contains(&0) {
            return Ok(Self::empty(shape.len()));
        }
        Self::strided(&start, &stride, &count, &Dims::from_elem(1, shape.len()))
    }
}

fn bad(text: &str, message: String) -> Error {
    Error::invalid("parse selection", message).target(format!("{text:?}")).hint("write it as in numpy: 0:100,::4,7")
}

/// Start, stop and step of one dimension.
fn parse_range(part: &str, extent: u64) -> Result<(u64, u64, u64), String> {
    let number = |text: &str, default: u64| {
        let text = text.trim();
        let parse = |digits: &str| digits.parse::<u64>().map_err(|_| format!("{text:?} is not a number"));
        match text.strip_prefix('-') {
            _ if text.is_empty() => Ok(default),
            Some(back) => Ok(extent.saturating_sub(parse(back)?)),
            None => parse(text),
        }
    };
    let words: Vec<&str> = part.split(':').collect();
    match words.as_slice() {
        [index] => {
            let index = number(index, 0)?;
            match index < extent {
                true => Ok((index, index + 1, 1)),
                false => Err(format!("the index {index} is outside 0 to {}", extent.saturating_sub(1))),
            }
        }
        [start, stop, rest @ ..] if rest.len() <= 1 => {
            let step = match rest.first() {
                Some(step) if step.trim().starts_with('-') => return Err("steps go forward only".into()),
                Some(step) => number(step, 1)?,
                None => 1,
            };
            match step {
                0 => Err("a step of 0 goes nowhere".into()),
                _ => Ok((number(start, 0)?.min(extent), number(stop, extent)?.min(extent), step)),
            }
        }
        _ => Err("write an index or start:stop:step".into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numpy_selections_are_understood() {
        let runs = |text: &str| {
            let selection = Selection::parse(text, &[4, 6]).unwrap();
            selection.runs(&[4, 6], 1).unwrap().flat_map(|run| run.offset..run.end()).collect::<Vec<_>>()
        };
        assert_eq!(runs(""), (0..24).collect::<Vec<_>>());
        assert_eq!(runs("1"), (6..12).collect::<Vec<_>>());
        assert_eq!(runs("1:3, 2"), [8, 14]);
        assert_eq!(runs("::2,::3"), [0, 3, 12, 15]);
        assert_eq!(runs("-1,-2:"), [22, 23]);
        assert_eq!(runs("3:100,1:2"), [19]);
        assert!(runs("2:2").is_empty());
        for wrong in ["4", "1,2,3", "a", "1:2:3:4", "::0", "::-1", "-"] {
            assert!(Selection::parse(wrong, &[4, 6]).is_err(), "{wrong}");
        }
    }
}
