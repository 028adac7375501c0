//! What codecs leave of a workload's data: stated by the user, or found by coding a sample of its values.

use super::candidates::filled;
use hyperslab_core::workload::{ArrayDeclaration, Workload};
use hyperslab_core::{DataRules, Dims, Filter, Result, Selection, Stack};
use hyperslab_filters::{BitshuffleCodec, BloscCodec, BloscShuffle, FilterSpec, Pipeline, Workspace};
use std::collections::HashMap;

/// Bytes of a sample.
const SAMPLE: u64 = 128 << 10;

/// What is known of the data.
#[derive(Debug, Default)]
pub struct Compressibility {
    /// Bytes in memory for each byte stored, as the user says.
    stated: Option<f64>,
    /// Parts that samples left, by array and filters.
    found: HashMap<String, f64>,
}

impl Compressibility {
    /// With what the user says, or nothing.
    pub fn new(stated: Option<f64>) -> Self {
        Self { stated, found: HashMap::new() }
    }

    /// By number of the declared array: the part of its bytes that is left on this stack.
    pub fn shares(&mut self, workload: &Workload, stack: &Stack) -> Vec<f64> {
        let arrays = workload.header.arrays.iter();
        arrays.map(|array| self.share(array, workload.header.seed, stack).unwrap_or(1.0)).collect()
    }

    fn share(&mut self, array: &ArrayDeclaration, seed: u64, stack: &Stack) -> Result<f64> {
        let filters = filters(array, stack)?;
        if filters.is_empty() {
            return Ok(1.0);
        }
        if let Some(ratio) = self.stated {
            return Ok(1.0 / ratio);
        }
        let key = format!(
            "{} {:?} {} {filters:?}",
            array.spec.dtype,
            array.fill,
            hyperslab_core::dims::display(&array.spec.shape)
        );
        if let Some(share) = self.found.get(&key) {
            return Ok(*share);
        }
        let share = sampled(array, seed, &filters)?;
        self.found.insert(key, share);
        Ok(share)
    }

    /// What was assumed, in words.
    pub fn words(&self, recorded: bool) -> String {
        match self.stated {
            Some(ratio) => format!("codecs are taken to make data {ratio} times smaller, as --ratio says"),
            None if recorded => "what codecs save was found by coding made-up random values, since a recording has no data; \
                                 --ratio 3 says that yours become three times smaller"
                .into(),
            None => "what codecs save was found by coding a sample of the values that the workload makes; --ratio 3 says that \
                     yours become three times smaller"
                .into(),
        }
    }
}

/// The filters that change the size of an array's chunks, with those before them.
fn filters(array: &ArrayDeclaration, stack: &Stack) -> Result<Vec<Filter>> {
    let Some(storage) = hyperslab_formats::format(&stack.format.name)?.storage else { return Ok(Vec::new()) };
    let mut filters = storage(&stack.format)?.decide(&array.spec)?.filters;
    filters.retain(|filter| *filter != Filter::Fletcher32);
    let shrinks = filters.iter().any(|filter| *filter != Filter::Shuffle);
    Ok(if shrinks { filters } else { Vec::new() })
}

/// The part of a sample's bytes that is left.
fn sampled(array: &ArrayDeclaration, seed: u64, filters: &[Filter]) -> Result<f64> {
    let (spec, element) = (&array.spec, array.spec.dtype.size());
    // An array that grows from nothing gets its values by the same rule.
    let shape: Dims = spec.shape.iter().map(|extent| (*extent).max(1)).collect();
    let room = (SAMPLE / element).max(1);
    let extents = filled(&shape, room, (0..shape.len()).rev());
    let selection = Selection::dense(&Dims::from_elem(0, shape.len()), &extents)?;
    let mut sample = vec![0; (selection.len() * element) as usize];
    DataRules::new(&spec.dtype, &array.fill, "sample", seed)?.stream(&shape, &selection)?.next_into(&mut sample);
    let stated: Vec<FilterSpec> =
        filters.iter().map(|filter| stated(*filter, element as u32, sample.len() as u32)).collect();
    let pipeline = Pipeline::new(&stated, sample.len())?;
    let mut workspace = Workspace::default();
    let coded = pipeline.encode(&sample, &mut workspace)?.bytes.len();
    Ok(coded as f64 / sample.len().max(1) as f64)
}

fn stated(filter: Filter, element: u32, chunk: u32) -> FilterSpec {
    match filter {
        Filter::Deflate(level) => FilterSpec::deflate(u32::from(level)),
        Filter::Shuffle => FilterSpec::shuffle(element),
        Filter::Fletcher32 => FilterSpec::fletcher32(),
        Filter::Zstd(level) => FilterSpec::zstd(i32::from(level)),
        Filter::Blosc(level) | Filter::Blosc2(level) => {
            FilterSpec::blosc(element, chunk, u32::from(level), BloscShuffle::Bytes, BloscCodec::Lz4)
        }
        Filter::Lz4 => FilterSpec::lz4(0),
        Filter::Lzf => FilterSpec::lzf(chunk),
        Filter::Bitshuffle => FilterSpec::bitshuffle(element, BitshuffleCodec::Lz4),
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use hyperslab_core::{ArraySpec, Datatype, Fill};

    fn share(fill: Fill, shape: &[u64], stack: &str, stated: Option<f64>) -> f64 {
        let array = ArrayDeclaration { spec: ArraySpec::new(Datatype::I32, shape), fill };
        Compressibility::new(stated).share(&array, 1, &stack.parse().unwrap()).unwrap()
    }

    #[test]
    fn values_that_follow_each_other_shrink_and_random_ones_do_not() {
        for stack in ["hdf5(shuffle,deflate=1)", "zarr(codec=zstd,shuffle)", "zarr(codec=blosc)", "zarr(codec=gzip)"] {
            let (index, random) =
                (share(Fill::Index, &[500, 900], stack, None), share(Fill::Random, &[500, 900], stack, None));
            assert!(index < 0.5 && random > 0.95 && random < 1.1, "{stack}: {index} {random}");
        }
    }

    #[test]
    fn nothing_is_saved_without_a_codec_and_as_much_as_is_stated_with_one() {
        for stack in ["hdf5", "hdf5(shuffle,fletcher32)", "zarr(codec=none)", "posix"] {
            assert_eq!(share(Fill::Index, &[1000], stack, Some(4.0)), 1.0, "{stack}");
        }
        assert_eq!(share(Fill::Random, &[1000], "zarr(codec=zstd)", Some(4.0)), 0.25);
    }

    #[test]
    fn arrays_of_one_element_and_of_none_can_be_sampled() {
        for shape in [&[1][..], &[0], &[0, 7]] {
            assert!(share(Fill::Random, shape, "hdf5(deflate=1)", None) > 0.0, "{shape:?}");
        }
        assert!(share(Fill::Random, &[], "zarr(codec=zstd)", None) > 0.0);
    }
}
