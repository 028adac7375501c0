//! Filters as people write them.

use anyhow::{Result, bail};
use hyperslab_core::{Filter, suggest};

const NAMES: [&str; 9] = ["deflate", "zstd", "blosc", "blosc2", "lz4", "lzf", "bitshuffle", "shuffle", "fletcher32"];

/// A filter with its level: `shuffle`, `deflate=4`. Errors begin with `place`.
pub fn parse_filter(text: &str, place: &str) -> Result<Filter> {
    let (name, level) = match text.split_once('=') {
        Some((name, level)) => (name.trim(), Some(level.trim())),
        None => (text, None),
    };
    let level_in = |usual: u8, most: u8| match level {
        None => Ok(usual),
        Some(level) => match level.parse::<u8>() {
            Ok(level) if level <= most => Ok(level),
            _ => bail!("{place}: the level of {name} is {level:?}; it should be 0 to {most}"),
        },
    };
    let plain = |filter| match level {
        None => Ok(filter),
        Some(_) => bail!("{place}: {name} has no level"),
    };
    match name.to_ascii_lowercase().as_str() {
        "deflate" | "gzip" => Ok(Filter::Deflate(level_in(6, 9)?)),
        "zstd" => Ok(Filter::Zstd(level_in(3, 22)?.max(1))),
        "blosc" => Ok(Filter::Blosc(level_in(5, 9)?)),
        "blosc2" => Ok(Filter::Blosc2(level_in(5, 9)?)),
        "lz4" => plain(Filter::Lz4),
        "lzf" => plain(Filter::Lzf),
        "bitshuffle" => plain(Filter::Bitshuffle),
        "shuffle" => plain(Filter::Shuffle),
        "fletcher32" => plain(Filter::Fletcher32),
        _ => bail!("{place}: unknown filter {name:?}; {}", suggest::hint(name, NAMES)),
    }
}
