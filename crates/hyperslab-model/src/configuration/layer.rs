//! Layers of a stack, as far as they decide what a transfer costs.

use hyperslab_core::{Error, Result, StackElement, units};
use std::time::Duration;

/// A layer.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Layer {
    pub(crate) name: String,
    pub(crate) way: LayerEffect,
}

/// What becomes of transfers.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum LayerEffect {
    /// They are handed on.
    Through,
    /// They go on behind the program's back.
    Overlap,
    /// The same if that is faster.
    Chosen,
    /// The same, and what was read stays in memory, up to so many bytes.
    ReadCache { memory: u64 },
    /// Writes are gathered and go to the format later, in pieces of `buffer` bytes: behind the program's back if there are
    /// `drain` bytes of a rank or some that are older than `age`, otherwise while it waits.
    Logged { buffer: u64, drain: u64, age: Duration },
    /// Some ranks make the collective transfers of all, in pieces of `buffer` bytes.
    Together { aggregators: Option<u64>, buffer: u64 },
    /// A device of this rate, and time of a call, is emulated.
    Emulated { rate: f64, latency: f64 },
}

impl Layer {
    pub(crate) fn parse(element: &StackElement) -> Result<Self> {
        let way = match element.name.as_str() {
            "async" => LayerEffect::Overlap,
            "auto" => LayerEffect::Chosen,
            "cache" => LayerEffect::ReadCache { memory: element.size("memory")?.unwrap_or(u64::MAX) },
            "log" => logged(element)?,
            "twophase" => LayerEffect::Together {
                aggregators: element.number("aggregators", 1..=1 << 20)?,
                buffer: element.size("buffer")?.unwrap_or(1 << 20),
            },
            "slow" => emulated(element)?,
            _ => LayerEffect::Through,
        };
        Ok(Self { name: element.name.clone(), way })
    }
}

/// Mirrors the layer's own rules.
fn logged(element: &StackElement) -> Result<LayerEffect> {
    const USUAL_DRAIN: u64 = 256 << 20;
    let drain = match element.get("drain") {
        Some("off") => u64::MAX,
        Some(_) => element.size("drain")?.unwrap_or(USUAL_DRAIN),
        None => element.size("limit")?.map_or(USUAL_DRAIN, |limit| USUAL_DRAIN.min(limit / 8)),
    };
    let age = element.get("age").map_or(Ok(Duration::from_secs(2)), units::parse_duration)?;
    let age = if drain == u64::MAX { Duration::MAX } else { age };
    Ok(LayerEffect::Logged { buffer: element.size("buffer")?.unwrap_or(8 << 20), drain, age })
}

/// Its options may stand without names: `slow(200MB/s,2ms)`.
fn emulated(element: &StackElement) -> Result<LayerEffect> {
    let mut bare = element.options.iter().filter(|(_, value)| value == "yes").map(|(key, _)| key.as_str());
    let rate = element.get("rate").or_else(|| bare.next()).map_or(Ok(200 << 20), units::parse_rate)?;
    let latency = element.get("latency").or_else(|| bare.next());
    let latency = latency.map_or(Ok(Duration::from_millis(2)), units::parse_duration)?;
    if rate == 0 {
        return Err(Error::invalid("model stack", "a device that transfers nothing"));
    }
    Ok(LayerEffect::Emulated { rate: rate as f64, latency: latency.as_secs_f64() })
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use hyperslab_core::Stack;

    fn way(text: &str) -> LayerEffect {
        Layer::parse(&format!("{text}/posix").parse::<Stack>().unwrap().layers[0]).unwrap().way
    }

    #[test]
    fn options_of_layers_are_understood() {
        assert_eq!(way("slow(1MB/s,3ms)"), LayerEffect::Emulated { rate: 1_048_576.0, latency: 0.003 });
        assert_eq!(way("slow(latency=1ms)"), LayerEffect::Emulated { rate: f64::from(200 << 20), latency: 0.001 });
        assert_eq!(way("twophase(aggregators=3)"), LayerEffect::Together { aggregators: Some(3), buffer: 1 << 20 });
        let LayerEffect::Logged { drain, .. } = way("log(limit=8MiB)") else { panic!("no log") };
        assert_eq!(drain, 1 << 20);
        assert_eq!(way("trace"), LayerEffect::Through);
    }
}
