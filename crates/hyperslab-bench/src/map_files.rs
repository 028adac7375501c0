//! E3SM's maps, read from files: PIO's text, or the converted form in HDF5.

use anyhow::Context as _;
use hyperslab_comm::Solo;
use hyperslab_core::{
    ByteOrder, Container, Datatype, Dims, Error, MemoryViewMut, OpenMode, Result, Selection, StackElement, TransferMode,
};
use hyperslab_kernels::{Decomposition, Files, Requests};
use std::path::Path;

/// The largest file of text that is read.
const MOST_TEXT: u64 = 4 << 30;
/// The most elements of an array of a converted file.
const MOST_ELEMENTS: u64 = 1 << 28;

/// Files of this machine.
pub struct MapFiles;

impl Files for MapFiles {
    fn e3sm_maps(&self, paths: &[&str]) -> Result<Vec<Decomposition>> {
        if let [path] = paths
            && !path.ends_with(".dat")
        {
            return converted(Path::new(path)).map_err(|error| error.target(path));
        }
        let one = |path: &&str| text(Path::new(path)).map_err(|error| error.target(path));
        paths.iter().map(one).collect()
    }
}

fn text(path: &Path) -> Result<Decomposition> {
    let read = || -> anyhow::Result<String> {
        let size = std::fs::metadata(path)?.len();
        anyhow::ensure!(size <= MOST_TEXT, "it has {size} bytes; at most {MOST_TEXT} are read");
        std::fs::read_to_string(path).context("read it")
    };
    Decomposition::parse_pio(&read().map_err(|error| bad(format!("{error:#}")))?)
}

/// Decompositions D1, D2, ... as far as there are any: numbers of requests of each rank, their offsets and lengths one rank after
/// the other, and where holes begin among them.
fn converted(path: &Path) -> Result<Vec<Decomposition>> {
    if !path.exists() {
        return Err(bad("there is no such file".into()));
    }
    let format = hyperslab_formats::build(&StackElement::plain("hdf5"))?;
    let file = format.open(path, OpenMode::Read, &Solo::shared())?;
    let names = file.arrays()?;
    let mut maps = Vec::new();
    for number in 1.. {
        let name = |what: &str| format!("D{number}.{what}");
        if !names.contains(&name("nreqs")) {
            break;
        }
        let dims = file.attribute("", &name("dims"))?;
        let dims: Dims = numbers(&dims.dtype, &dims.data)?.into_iter().collect();
        let of = |what: &str| array(&*file, &name(what));
        let (counts, offsets, lengths) = (of("nreqs")?, of("offsets")?, of("lengths")?);
        let fills = if names.contains(&name("fill_starts")) { of("fill_starts")? } else { counts.clone() };
        maps.push(decomposition(dims, &counts, &fills, &offsets, &lengths).map_err(|error| error.target(name("*")))?);
    }
    file.close()?;
    if maps.is_empty() {
        return Err(bad("it has no array D1.nreqs".into()).hint("use a map that E3SM-IO's dat2nc has converted"));
    }
    Ok(maps)
}

fn decomposition(dims: Dims, counts: &[u64], fills: &[u64], offsets: &[u64], lengths: &[u64]) -> Result<Decomposition> {
    if fills.len() != counts.len() || lengths.len() != offsets.len() {
        return Err(bad("its arrays differ in length".into()));
    }
    let (mut requests, mut begin) = (Vec::with_capacity(counts.len()), 0usize);
    for (count, fill) in counts.iter().zip(fills) {
        let end =
            usize::try_from(*count).ok().and_then(|count| begin.checked_add(count)).filter(|end| *end <= offsets.len());
        let (Some(end), true) = (end, fill <= count) else {
            return Err(bad("it counts more requests than there are".into()));
        };
        let all: Vec<(u64, u64)> = offsets[begin..end]
            .iter()
            .copied()
            .zip(lengths[begin..end].iter().copied())
            .filter(|run| run.1 > 0)
            .collect();
        let (data, holes) = all.split_at(all.len().min(*fill as usize));
        requests.push(Requests { data: data.to_vec(), holes: holes.to_vec() });
        begin = end;
    }
    let map = Decomposition { dims, requests };
    map.check()?;
    Ok(map)
}

fn array(file: &dyn Container, name: &str) -> Result<Vec<u64>> {
    let array = file.array(name)?;
    let spec = array.spec()?;
    let elements: u64 = spec.shape.iter().try_fold(1u64, |all, extent| all.checked_mul(*extent)).unwrap_or(u64::MAX);
    if elements > MOST_ELEMENTS {
        return Err(bad(format!("{name} has {elements} elements; at most {MOST_ELEMENTS} are read")));
    }
    let mut bytes = vec![0; (elements * spec.dtype.size()) as usize];
    array.read(&Selection::all(&spec.shape)?, MemoryViewMut::packed(&mut bytes), TransferMode::Independent)?;
    array.close()?;
    numbers(&spec.dtype, &bytes).map_err(|error| error.target(name))
}

/// Integers that are not negative.
fn numbers(dtype: &Datatype, bytes: &[u8]) -> Result<Vec<u64>> {
    let Datatype::Integer { size, signed, order } = dtype else {
        return Err(bad(format!("type {dtype} where integers are expected")));
    };
    let size = usize::from(*size);
    let number = |bytes: &[u8]| {
        let mut wide = [0u8; 8];
        wide[..size].copy_from_slice(bytes);
        if *order == ByteOrder::Big {
            wide[..size].reverse();
        }
        let number = u64::from_le_bytes(wide);
        let negative = *signed && number >> (8 * size - 1) & 1 == 1;
        if negative { Err(bad("a number is negative".into())) } else { Ok(number) }
    };
    bytes.chunks_exact(size).map(number).collect()
}

fn bad(message: String) -> Error {
    Error::invalid("read map", message)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn requests_beyond_fill_starts_are_holes() {
        let dims = || Dims::from_slice(&[2, 5]);
        let map = decomposition(dims(), &[3, 1], &[2, 1], &[0, 5, 2, 7], &[2, 1, 3, 3]).unwrap();
        assert_eq!((&map.requests[0].data[..], &map.requests[0].holes[..]), (&[(0, 2), (5, 1)][..], &[(2, 3)][..]));
        assert_eq!(map.elements(), 6);
        for (counts, fills, offsets, lengths, words) in [
            (&[5][..], &[5][..], &[0, 5][..], &[1, 1][..], "more requests"),
            (&[2], &[3], &[0, 5], &[1, 1], "more requests"),
            (&[2], &[2, 1], &[0, 5], &[1, 1], "differ in length"),
            (&[2], &[2], &[0, 5], &[1], "differ in length"),
            (&[2], &[2], &[0, 9], &[1, 2], "do not lie"),
            (&[2], &[2], &[0, 1], &[2, 2], "twice"),
            (&[u64::MAX], &[1], &[0], &[1], "more requests"),
        ] {
            let error = decomposition(dims(), counts, fills, offsets, lengths).unwrap_err().to_string();
            assert!(error.contains(words), "{error}");
        }
    }

    #[test]
    fn integers_of_any_width_and_order_are_read() {
        assert_eq!(numbers(&">i4".parse().unwrap(), &[0, 0, 1, 2]).unwrap(), [258]);
        assert_eq!(numbers(&"<i2".parse().unwrap(), &[2, 1, 3, 0]).unwrap(), [258, 3]);
        assert!(numbers(&"<i4".parse().unwrap(), &[0xFF; 4]).is_err());
        assert!(numbers(&"<f4".parse().unwrap(), &[0; 4]).is_err());
    }
}
