//! Selections as people write them.

use anyhow::{Context, Result, bail};
use hyperslab_core::{Dims, Selection};

/// Reads `0:100,::4,7`: for each dimension an index or start:stop:step; dimensions left out are whole.
pub fn parse(text: &str, shape: &[u64]) -> Result<Selection> {
    let parts: Vec<&str> = if text.trim().is_empty() { Vec::new() } else { text.split(',').map(str::trim).collect() };
    if parts.len() > shape.len() {
        bail!("{text:?} has {} dimensions, the array {}", parts.len(), shape.len());
    }
    let (mut start, mut stride, mut count) = (Dims::new(), Dims::new(), Dims::new());
    for (dimension, &extent) in shape.iter().enumerate() {
        let part = parts.get(dimension).copied().unwrap_or(":");
        let (first, stop, step) = range(part, extent).with_context(|| format!("{part:?} in {text:?}"))?;
        start.push(first);
        stride.push(step);
        count.push(stop.saturating_sub(first).div_ceil(step));
    }
    if count.contains(&0) {
        return Ok(Selection::empty(shape.len()));
    }
    Ok(Selection::strided(&start, &stride, &count, &Dims::from_elem(1, shape.len()))?)
}

/// Start, stop and step of one dimension.
fn range(part: &str, extent: u64) -> Result<(u64, u64, u64)> {
    let number = |text: &str, usual: u64| match text.trim() {
        "" => Ok(usual),
        text => match text.strip_prefix('-') {
            Some(back) => Ok(extent.saturating_sub(back.parse()?)),
            None => text.parse::<u64>().with_context(|| format!("{text:?} is not a number")),
        },
    };
    let words: Vec<&str> = part.split(':').collect();
    match words.as_slice() {
        [index] => {
            let index = number(index, 0)?;
            if index >= extent {
                bail!("the index {index} is outside 0 to {}", extent.saturating_sub(1));
            }
            Ok((index, index + 1, 1))
        }
        [start, stop, rest @ ..] if rest.len() <= 1 => {
            let step = rest.first().map_or(Ok(1), |step| number(step, 1))?;
            if step == 0 {
                bail!("a step of 0 goes nowhere");
            }
            Ok((number(start, 0)?.min(extent), number(stop, extent)?.min(extent), step))
        }
        _ => bail!("write an index or start:stop:step"),
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn numpy_selections_are_understood() {
        let runs = |text: &str| {
            let selection = parse(text, &[4, 6]).unwrap();
            selection.runs(&[4, 6], 1).unwrap().flat_map(|run| run.offset..run.end()).collect::<Vec<_>>()
        };
        assert_eq!(runs(""), (0..24).collect::<Vec<_>>());
        assert_eq!(runs("1"), (6..12).collect::<Vec<_>>());
        assert_eq!(runs("1:3, 2"), [8, 14]);
        assert_eq!(runs("::2,::3"), [0, 3, 12, 15]);
        assert_eq!(runs("-1,-2:"), [22, 23]);
        assert_eq!(runs("3:100,1:2"), [19]);
        assert!(runs("2:2").is_empty());
        for wrong in ["4", "1,2,3", "a", "1:2:3:4", "::0", "-"] {
            assert!(parse(wrong, &[4, 6]).is_err(), "{wrong}");
        }
    }
}
