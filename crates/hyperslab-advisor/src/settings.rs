//! A stack in the words of other programs.

use hyperslab_core::{Filter, Stack};
use hyperslab_formats::{ProgramWords, Surroundings};
use hyperslab_layers::layers;

/// How to ask other programs for what a stack stores and does. `kept`: filters that all arrays have by themselves, `None` if
/// they differ.
pub fn settings(stack: &Stack, kept: Option<&[Filter]>) -> ProgramWords {
    let entries = || stack.layers.iter().filter_map(|layer| layers().iter().find(|entry| entry.name == layer.name));
    let around = Surroundings {
        collective: stack.has_layer("twophase"),
        connector_mode: entries().find_map(|entry| entry.connector_mode),
        h5bench_mode: entries().find_map(|entry| entry.h5bench_mode),
        kept,
    };
    let format = hyperslab_formats::format(&stack.format.name);
    format.map_or_else(|_| ProgramWords::default(), |entry| (entry.advice.settings)(&stack.format, &around))
}

/// How to ask Hyperslab itself.
pub fn own(stack: &Stack) -> String {
    let transfers = if stack.has_layer("twophase") { " --transfers collective" } else { "" };
    format!("hyperslab:    --stack '{stack}'{transfers}")
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn of(text: &str) -> String {
        let stack: Stack = text.parse().unwrap();
        let words = settings(&stack, Some(&[]));
        let lines = words.libraries.into_iter().chain(words.connector).chain(words.benchmarks).chain([own(&stack)]);
        lines.collect::<Vec<_>>().join("\n")
    }

    #[test]
    fn compression_is_kept() {
        let stack: Stack = "hdf5(chunk=8x8)".parse().unwrap();
        let lines = |kept: Option<&[Filter]>| settings(&stack, kept).libraries.join("\n");
        let both = lines(Some(&[Filter::Shuffle, Filter::Deflate(4)]));
        assert!(both.contains("chunks=(8, 8), compression=\"gzip\", compression_opts=4, shuffle=True"), "{both}");
        assert!(both.contains("compression=\"zlib\", complevel=4, shuffle=True"), "{both}");
        for other in [lines(Some(&[Filter::Lzf])), lines(None)] {
            assert_eq!(other.matches("and its filters as now").count(), 2, "{other}");
        }
        assert!(!lines(Some(&[])).contains("filters"));
        let zarr = settings(&"zarr(chunk=8x8)".parse().unwrap(), Some(&[Filter::Deflate(3)])).libraries.join("\n");
        assert!(zarr.contains("compressors=zarr.codecs.GzipCodec(level=3)"), "{zarr}");
    }

    #[test]
    fn stacks_are_told_in_other_words() {
        let hdf5 = of("async/hdf5(chunk=64x32,deflate=4,shuffle,cache=16MiB,align=1MiB)");
        for words in [
            "chunks=(64, 32), compression=\"gzip\", compression_opts=4, shuffle=True",
            "rdcc_nbytes=16777216, alignment_interval=1048576, alignment_threshold=65536",
            "chunksizes=(64, 32), compression=\"zlib\", complevel=4, shuffle=True",
            "set_var_chunk_cache(size=16777216)",
            "\"COMPRESS\": \"YES\", \"COMPRESS_FILTER\": \"GZIP\", \"CHUNK_DIM_1\": \"64\", \"CHUNK_DIM_2\": \"32\"",
            "\"ALIGN_LEN\": \"1048576\"",
            "\"MODE\": \"ASYNC\"",
            "hyperslab run --mode async",
        ] {
            assert!(hdf5.contains(words), "{words}: {hdf5}");
        }
        let zarr = of("zarr(chunk=8x8,shard=64x64,codec=zstd)");
        assert!(zarr.contains("chunks=(8, 8), shards=(64, 64), compressors=zarr.codecs.ZstdCodec()"), "{zarr}");
        assert!(!zarr.contains("h5bench") && zarr.contains("--stack"), "{zarr}");
    }

    #[test]
    fn what_is_in_one_piece_is_said_to_be() {
        let plain = of("twophase/hdf5");
        assert!(plain.contains("contiguous=True") && plain.contains("\"COLLECTIVE_DATA\": \"YES\""), "{plain}");
        assert!(plain.contains("with dataset.collective:") && plain.contains("set_collective(True)"), "{plain}");
        assert!(plain.contains("--transfers collective") && !plain.contains("hyperslab run"), "{plain}");
        assert!(of("hdf5(plane=on)").contains("hyperslab run --mode codec"));
    }

    #[test]
    fn several_shapes_are_chosen_by_the_number_of_dimensions() {
        let text = of("hdf5(chunk=1024;64x64)");
        assert!(text.contains("chunks={1: (1024,), 2: (64, 64)}[len(shape)]"), "{text}");
        assert!(!text.contains("CHUNK_DIM"), "{text}");
    }
}
