//! The options of the format, read. `zarr_entry` has their table, and what decides how arrays are stored.

use super::codecs::Compressor;
use super::layout::Version;
use crate::zarr_entry::{self as entry, Codec};
use hyperslab_core::storage::StoreRules;
use hyperslab_core::{Error, Result, StackElement};

/// The options of one format in a stack.
#[derive(Debug, Clone)]
pub struct Options {
    /// Asked for; `None` takes 3 for new stores and the store's own otherwise.
    pub version: Option<Version>,
    /// How new arrays are stored.
    pub rules: StoreRules,
    /// Compression of new arrays; `None` follows the array's filters.
    pub codec: Option<CodecChoice>,
    /// Between the numbers of chunk keys.
    pub separator: Option<char>,
    /// Keep chunks that hold only the fill value.
    pub write_empty: bool,
    /// Threads for the chunks of one call.
    pub threads: usize,
}

/// Compression asked for by option.
#[derive(Debug, Clone, Copy)]
pub struct CodecChoice {
    /// The compressor, or none.
    pub compressor: Option<Compressor>,
    /// Byte shuffle as a step of its own (blosc brings its own).
    pub shuffle: bool,
}

const MOST_THREADS: u64 = 1024;

impl Options {
    /// Reads and checks the options of a stack element.
    pub fn parse(element: &StackElement) -> Result<Self> {
        let version = element.choice("version", &[("2", Version::V2), ("3", Version::V3)])?;
        let options = Self {
            version,
            rules: entry::rules(element)?,
            codec: codec(element)?,
            separator: element.choice("separator", &[("slash", '/'), ("dot", '.')])?,
            write_empty: element.flag("write_empty")?.unwrap_or(false),
            threads: element.number("threads", 1..=MOST_THREADS)?.unwrap_or(1) as usize,
        };
        if version == Some(Version::V2) && options.rules.shard.is_some() {
            return Err(refuse("shard needs version 3", "leave out version=2 or shard"));
        }
        if version == Some(Version::V2) && options.rules.crc32c {
            return Err(refuse("crc32c needs version 3", "leave out version=2 or crc32c"));
        }
        Ok(options)
    }
}

fn refuse(message: &str, hint: &str) -> Error {
    Error::invalid("choose zarr options", message).hint(hint).backend("zarr")
}

fn codec(element: &StackElement) -> Result<Option<CodecChoice>> {
    let inside = [("lz4", "lz4"), ("lz4hc", "lz4hc"), ("blosclz", "blosclz"), ("zstd", "zstd"), ("zlib", "zlib")];
    let shuffle = element.flag("shuffle")?;
    let blosc_codec = element.choice("blosc_codec", &inside)?;
    let chosen = entry::codec(element)?;
    if blosc_codec.is_some() && !matches!(chosen, Some(Codec::Blosc { .. })) {
        return Err(refuse("blosc_codec says nothing without codec=blosc", "add codec=blosc"));
    }
    let (compressor, shuffle) = match chosen {
        None | Some(Codec::None) => {
            for (given, name) in [(element.get("level").is_some(), "level"), (shuffle == Some(true), "shuffle")] {
                if given {
                    return Err(refuse(
                        &format!("{name} says nothing without a codec"),
                        "add codec=gzip, zstd or blosc",
                    ));
                }
            }
            return Ok(chosen.map(|_| CodecChoice { compressor: None, shuffle: false }));
        }
        Some(Codec::Gzip { level }) => (Compressor::Gzip { level }, shuffle.unwrap_or(false)),
        Some(Codec::Zstd { level }) => {
            (Compressor::Zstd { level: level.into(), checksum: false }, shuffle.unwrap_or(false))
        }
        Some(Codec::Blosc { level }) => {
            (Compressor::blosc(blosc_codec.unwrap_or("lz4"), level, shuffle.unwrap_or(true)), false)
        }
    };
    Ok(Some(CodecChoice { compressor: Some(compressor), shuffle }))
}
