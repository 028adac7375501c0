//! Maps in the text form of PIO (`piodecomp*.dat`).

use super::decomposition::{Decomposition, MOST_RANKS, MOST_REQUESTS, Requests, Run};
use hyperslab_core::{Dims, Error, Result};

/// The form that is read.
const VERSION: u64 = 2001;

impl Decomposition {
    /// Reads the text: a line with the version and the numbers of ranks and dimensions, the extents (fastest first), then for
    /// each rank its number with a count, and so many offsets, which begin at 1; 0 is no element. What follows the last rank is
    /// left alone. Offsets that follow each other become one request, broken at the ends of rows; elements of no rank are none
    /// of the map's holes.
    pub fn parse_pio(text: &str) -> Result<Self> {
        let mut words = text.split_ascii_whitespace();
        let mut number_after = |name: &str| -> Result<u64> {
            match words.next() {
                Some(word) if word == name => number(words.next(), name),
                other => Err(bad(format!("{:?} instead of {name:?}", other.unwrap_or_default()))),
            }
        };
        let version = number_after("version")?;
        if version != VERSION {
            return Err(bad(format!("version {version}; only {VERSION} is known")));
        }
        let (ranks, dimensions) = (number_after("npes")?, number_after("ndims")?);
        if ranks == 0 || ranks > MOST_RANKS as u64 || dimensions == 0 || dimensions > 8 {
            return Err(bad(format!("{ranks} ranks and {dimensions} dimensions are not possible")));
        }
        let mut dims = (0..dimensions).map(|_| number(words.next(), "extent")).collect::<Result<Dims>>()?;
        dims.reverse();
        let row = dims.last().copied().unwrap_or(1).max(1);
        let mut requests: Vec<Requests> = Vec::new();
        let mut total = 0;
        for expected in 0..ranks {
            let rank = number(words.next(), "rank")?;
            if rank != expected {
                return Err(bad(format!("rank {rank} where {expected} is expected")));
            }
            let count = number(words.next(), "count")?;
            let mut data: Vec<Run> = Vec::new();
            for _ in 0..count {
                let Some(offset) = number(words.next(), "offset")?.checked_sub(1) else { continue };
                match data.last_mut() {
                    Some((start, len)) if *start + *len == offset && !offset.is_multiple_of(row) => *len += 1,
                    _ => data.push((offset, 1)),
                }
            }
            total += data.len();
            if total > MOST_REQUESTS {
                return Err(bad(format!("more than {MOST_REQUESTS} requests")));
            }
            requests.push(Requests { data, holes: Vec::new() });
        }
        let decomposition = Self { dims, requests };
        decomposition.check()?;
        Ok(decomposition)
    }
}

fn number(word: Option<&str>, what: &str) -> Result<u64> {
    let word = word.ok_or_else(|| bad(format!("it ends where a number ({what}) is expected; was it cut off?")))?;
    word.parse().map_err(|_| bad(format!("{word:?} where a number ({what}) is expected")))
}

fn bad(message: String) -> Error {
    Error::invalid("read PIO map", message)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    const TEXT: &str =
        "version 2001 npes 2 ndims 2 \n4 3 \n0 7\n1 2 3 4 5 0 9 \n1 4\n6 8 7 12 \nObtained 9 stack frames.\n";

    #[test]
    fn offsets_become_requests() {
        let map = Decomposition::parse_pio(TEXT).unwrap();
        assert_eq!(map.dims.as_slice(), [3, 4]);
        assert_eq!(map.requests[0].data, [(0, 4), (4, 1), (8, 1)], "broken at the end of the row of 4");
        assert_eq!(map.requests[1].data, [(5, 1), (7, 1), (6, 1), (11, 1)]);
        assert_eq!(map.elements(), 10);
    }

    #[test]
    fn malformed_text_is_refused() {
        for (from, to, words) in [
            ("2001", "2002", "only 2001"),
            ("npes 2", "npes 3", "where a number"),
            ("npes 2", "npes 0", "not possible"),
            ("ndims 2", "ndims 99", "not possible"),
            ("4 3 \n", "4 2 \n", "do not lie"),
            ("\n1 4\n", "\n2 4\n", "rank 2"),
            ("6 8", "5 8", "twice"),
            ("6 8", "-6 8", "\"-6\""),
            ("version", "verzion", "instead of"),
        ] {
            let error = Decomposition::parse_pio(&TEXT.replace(from, to)).unwrap_err().to_string();
            assert!(error.contains(words), "{to}: {error}");
        }
        for end in 0..TEXT.find("12 ").unwrap() {
            assert!(Decomposition::parse_pio(&TEXT[..end]).is_err(), "{end}");
        }
    }
}
