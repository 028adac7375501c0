//! What `zarr` says of itself, also where it is not compiled in: its options, how they have arrays stored, what decides the cost of
//! transfers.

mod option_table;

use crate::python_words::{shapes, tuples, zlib};
use crate::registry::{Advice, Beginning, Build, FormatEntry, ProgramWords, Surroundings};
use hyperslab_core::storage::{StorageRules, StoreRules};
use hyperslab_core::{Error, Filter, Result, StackElement, TransferCost};
pub(crate) use option_table::OPTIONS;

#[cfg(feature = "zarr")]
const BUILD: Option<Build> = Some(crate::zarr::build);
#[cfg(not(feature = "zarr"))]
const BUILD: Option<Build> = None;

/// Registry entry.
pub(crate) const ENTRY: FormatEntry = FormatEntry {
    name: "zarr",
    about: "Zarr version 2 and 3 in a directory, one file per chunk or shard",
    options: OPTIONS,
    build: BUILD,
    how_to_build: "build with --features zarr",
    extensions: &["zarr"],
    recognises: Some(recognises),
    describing: &[
        "version",
        "chunk",
        "shard",
        "codec",
        "level",
        "blosc_codec",
        "shuffle",
        "crc32c",
        "separator",
        "write_empty",
    ],
    interfaces: &["ZARR"],
    storage: Some(|element| Ok(StorageRules::Store(rules(element)?))),
    cost: Some(cost),
    advice: Advice {
        usual: true,
        forms: &[&[]],
        codecs: &[&[("codec", "blosc")], &[("codec", "zstd")], &[("codec", "zstd"), ("shuffle", "yes")]],
        remarks,
        settings,
        ..Advice::NONE
    },
    ..FormatEntry::NONE
};

fn recognises(store: &Beginning) -> bool {
    ["zarr.json", ".zgroup", ".zarray"].iter().any(|name| store.holds(name))
}

/// Reads the options that decide how arrays are stored.
pub(crate) fn rules(element: &StackElement) -> Result<StoreRules> {
    let rules = StoreRules {
        chunk: element.shapes("chunk")?,
        shard: element.shapes("shard")?,
        filters: filters(element)?,
        crc32c: element.flag("crc32c")?.unwrap_or(false),
    };
    if let (Some(chunk), Some(shard)) = (&rules.chunk, &rules.shard) {
        for shard in shard.all() {
            // Where there are several chunks, arrays without one of their number of dimensions choose for themselves.
            let chunk = chunk.single().or(chunk.of_rank(shard.len()));
            chunk.map_or(Ok(()), |chunk| StoreRules::check_shard(chunk, shard)).map_err(|e| e.backend("zarr"))?;
        }
    }
    Ok(rules)
}

/// The filters that `codec` stands for. Blosc shuffles by itself.
fn filters(element: &StackElement) -> Result<Option<Vec<Filter>>> {
    let Some(codec) = codec(element)? else { return Ok(None) };
    let filter = match codec {
        Codec::None => return Ok(Some(Vec::new())),
        Codec::Gzip { level } => Filter::Deflate(level),
        Codec::Zstd { level } => Filter::Zstd(level),
        Codec::Blosc { level } => return Ok(Some(vec![Filter::Blosc(level)])),
    };
    let shuffle = element.flag("shuffle")?.unwrap_or(false).then_some(Filter::Shuffle);
    Ok(Some(shuffle.into_iter().chain([filter]).collect()))
}

/// What `codec` and `level` say.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Codec {
    None,
    Gzip { level: u8 },
    Zstd { level: u8 },
    Blosc { level: u8 },
}

/// Reads `codec` and `level`.
pub(crate) fn codec(element: &StackElement) -> Result<Option<Codec>> {
    let level = |usual: u64, range| Ok::<u8, Error>(element.number("level", range)?.unwrap_or(usual) as u8);
    let names = [("none", "none"), ("gzip", "gzip"), ("zstd", "zstd"), ("blosc", "blosc")];
    Ok(match element.choice("codec", &names)? {
        None => None,
        Some("gzip") => Some(Codec::Gzip { level: level(5, 0..=9)? }),
        Some("zstd") => Some(Codec::Zstd { level: level(3, 1..=22)? }),
        Some("blosc") => Some(Codec::Blosc { level: level(5, 0..=9)? }),
        Some(_) => Some(Codec::None),
    })
}

fn cost(element: &StackElement) -> Result<TransferCost> {
    let slash = element.choice("separator", &[("slash", true), ("dot", false)])?;
    let directories = slash.unwrap_or(element.get("version") != Some("2"));
    Ok(TransferCost::ChunkFiles { directories })
}

fn remarks(element: &StackElement) -> Vec<&'static str> {
    vec![match element.get("shard") {
        None => "every chunk is a file: many small ones burden file systems",
        Some(_) => "shards need readers of Zarr version 3; a part of one is changed by writing it anew",
    }]
}

fn settings(format: &StackElement, around: &Surroundings<'_>) -> ProgramWords {
    let level = format.get("level").map_or(String::new(), |level| format!("level={level}"));
    let compressor = match format.get("codec") {
        Some("gzip") => format!("zarr.codecs.GzipCodec({level})"),
        Some("zstd") => format!("zarr.codecs.ZstdCodec({level})"),
        Some("blosc") => "zarr.codecs.BloscCodec(cname=\"lz4\", shuffle=\"shuffle\")".into(),
        _ => match around.kept.map(zlib) {
            Some(Some((level, _))) => format!("zarr.codecs.GzipCodec(level={level})"),
            _ if around.kept.is_none_or(|filters| !filters.is_empty()) => "(as now)".into(),
            _ => "None".into(),
        },
    };
    let compressor = match (format.get("shuffle"), format.get("codec")) {
        (Some("yes"), Some("gzip" | "zstd")) => {
            format!("[zarr.codecs.numcodecs.Shuffle(elementsize=dtype.itemsize), {compressor}]")
        }
        _ => compressor,
    };
    let (chunks, shards) = (tuples("chunks", &shapes(format, "chunk")), tuples("shards", &shapes(format, "shard")));
    let words = format!(
        "zarr-python:  zarr.create_array(store, name=name, shape=shape, dtype=dtype{chunks}{shards}, compressors={compressor})"
    );
    ProgramWords { libraries: vec![words], ..ProgramWords::default() }
}
