//! Lists and ranges of values: `1,2,4,8`, `64KiB..16MiB*2`, `1..8`, `10..50+10`, `80..10/2`.

use anyhow::{Result, bail};
use hyperslab_core::units::{exact_size, parse_size};

/// The most values of one axis.
const MOST: usize = 1000;

/// Whether the text stands for several values.
pub fn are_several(text: &str) -> bool {
    text.contains(',') || text.contains("..")
}

/// All values, in the order given. Commas inside brackets and quotes do not separate.
pub fn parse(text: &str) -> Result<Vec<String>> {
    let mut values = Vec::new();
    for part in text.split(',').map(str::trim) {
        match part.split_once("..") {
            _ if part.is_empty() => bail!("{text:?} has an empty value; write 1,2,4 or 1..8*2"),
            Some((from, rest)) => values.extend(range(part, from.trim(), rest.trim())?),
            None => values.push(part.to_owned()),
        }
        if values.len() > MOST {
            bail!("{text:?} has more than {MOST} values");
        }
    }
    if let Some(twice) = values.iter().enumerate().find(|(place, value)| values[..*place].contains(value)) {
        bail!("{text:?} has {} twice", twice.1);
    }
    Ok(values)
}

/// How a range goes on.
#[derive(Clone, Copy)]
enum Progression {
    Add(u64),
    Times(u64),
    Over(u64),
}

impl Progression {
    fn after(self, value: u64) -> Option<u64> {
        match self {
            Self::Add(n) => value.checked_add(n),
            Self::Times(n) => value.checked_mul(n),
            Self::Over(n) => Some(value / n).filter(|next| next * n == value),
        }
    }
}

fn range(text: &str, from: &str, rest: &str) -> Result<Vec<String>> {
    let wrong = || anyhow::anyhow!("{text:?} is not a range; write 1..8, 64KiB..16MiB*2, 10..50+10 or 80..10/2");
    let place = rest.find(['*', '+', '/']).unwrap_or(rest.len());
    let (to, step) = (rest[..place].trim(), rest[place..].trim());
    let (first, last) = (parse_size(from).map_err(|_| wrong())?, parse_size(to).map_err(|_| wrong())?);
    let number = || parse_size(&step[1..]).ok().filter(|n| *n > 0).ok_or_else(wrong);
    let step = match step.as_bytes().first() {
        None => Progression::Add(1),
        Some(b'+') => Progression::Add(number()?),
        Some(b'*') => Progression::Times(number()?),
        Some(_) => Progression::Over(number()?),
    };
    let falls = matches!(step, Progression::Over(_));
    if matches!(step, Progression::Times(1) | Progression::Over(1))
        || first == 0 && !matches!(step, Progression::Add(_))
    {
        bail!("{text:?} never ends");
    }
    if (first < last && falls) || (first > last && !falls) {
        bail!("{text:?} has no values: {from} goes away from {to}");
    }
    let has_units = [from, to].iter().any(|end| end.ends_with(|c: char| c.is_ascii_alphabetic()));
    let mut values = Vec::new();
    let mut next = Some(first);
    while let Some(value) = next.filter(|value| if falls { *value >= last } else { *value <= last }) {
        if values.len() > MOST {
            bail!("{text:?} has more than {MOST} values");
        }
        values.push(if has_units { exact_size(value) } else { value.to_string() });
        next = step.after(value);
    }
    Ok(values)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn lists_and_ranges_have_their_values_in_order() {
        let all = |text: &str| parse(text).unwrap().join(" ");
        assert_eq!(all("1,2, 4,8"), "1 2 4 8");
        assert_eq!(all("64KiB..1MiB*4"), "64KiB 256KiB 1MiB");
        assert_eq!(all("1..4"), "1 2 3 4");
        assert_eq!(all("10..50+20"), "10 30 50");
        assert_eq!(all("80..10/2"), "80 40 20 10");
        assert_eq!(all("81..10/2"), "81");
        assert_eq!(all("1..8*2,16"), "1 2 4 8 16");
        assert_eq!(all("MIF,SIF"), "MIF SIF");
        assert_eq!(all("64x64,128x128"), "64x64 128x128");
        assert_eq!(all("5..5"), "5");
    }

    #[test]
    fn what_has_no_end_or_no_values_is_refused() {
        for text in [
            "1,,2",
            "",
            "1..",
            "..4",
            "8..1",
            "1..8/2",
            "1..8*1",
            "0..8*2",
            "1..8*0",
            "1..8+0",
            "1..1000000",
            "1,1",
            "a..b",
            "1..2..3",
            "1..8*2*2",
        ] {
            assert!(parse(text).is_err(), "{text}");
        }
    }
}
