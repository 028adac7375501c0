//! The options of the layer.

use hyperslab_core::{Error, LayerEffect, OptionSpec, Result, StackElement};
use std::time::Duration;

/// Validated options.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Options {
    /// Bytes per second; at least 1.
    pub rate: u64,
    /// Time from the end of the device's work, or the begin of a call without data, to the completion.
    pub latency: Duration,
    /// Relative variation of times, from 0 to 1.
    pub jitter: f64,
}

const LONGEST: Duration = Duration::from_secs(3600);

const RATE: OptionSpec = OptionSpec {
    name: "rate",
    value: "SIZE/s",
    default: "200MB/s",
    about: "what all thread ranks together can transfer (units are powers of 1024)",
};

const LATENCY: OptionSpec =
    OptionSpec { name: "latency", value: "TIME", default: "2ms", about: "time of a request apart from its data" };

pub(super) const SPECS: &[OptionSpec] = &[
    RATE,
    LATENCY,
    OptionSpec {
        name: "jitter",
        value: "PERCENT",
        default: "0%",
        about: "times are longer or shorter by up to this share, the same in every run",
    },
];

impl Options {
    pub fn parse(element: &StackElement) -> Result<Self> {
        let rate = element.rate_or_default(&RATE)?;
        if rate == 0 {
            return Err(refuse("rate", element.get("rate").unwrap_or_default(), "a rate such as 200MB/s"));
        }
        let latency = element.time_or_default(&LATENCY)?;
        if latency > LONGEST {
            let given = element.get("latency").unwrap_or_default();
            return Err(refuse("latency", given, "a time such as 2ms or 50us, of at most an hour"));
        }
        let jitter = element.get("jitter").map_or(Ok(0.0), |text| {
            let percent = text.strip_suffix('%').and_then(|number| number.trim().parse::<f64>().ok());
            let share = percent.map(|percent| percent / 100.0).filter(|share| (0.0..=1.0).contains(share));
            share.ok_or_else(|| refuse("jitter", text, "a share from 0% to 100%"))
        })?;
        Ok(Self { rate, latency, jitter })
    }
}

/// A device of this rate is emulated.
pub(super) fn effect(element: &StackElement) -> Result<LayerEffect> {
    let options = Options::parse(element)?;
    Ok(LayerEffect::Emulated { rate: options.rate as f64, latency: options.latency.as_secs_f64() })
}

fn refuse(key: &str, value: &str, wanted: &str) -> Error {
    Error::invalid("parse stack", format!("slow: {key}={value} should be {wanted}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use hyperslab_core::Stack;

    fn parse(text: &str) -> Result<Options> {
        let stack: Stack = format!("{text}/posix").parse()?;
        let element = stack.layers[0].with_names(super::super::ENTRY.bare, SPECS)?;
        element.check_options(SPECS)?;
        Options::parse(&element)
    }

    #[test]
    fn options_are_read_and_refused() {
        let (rate, latency) = (200 << 20, Duration::from_millis(2));
        assert_eq!(parse("slow").unwrap(), Options { rate, latency, jitter: 0.0 });
        assert_eq!(parse("slow(200MB/s,2ms)").unwrap(), parse("slow(jitter=0%,latency=2ms,rate=200MiB/s)").unwrap());
        let fast = parse("slow(1GiB/s,50us,jitter=12.5%)").unwrap();
        assert_eq!(fast, Options { rate: 1 << 30, latency: Duration::from_micros(50), jitter: 0.125 });
        assert!(parse("slow(1GiB/s,0)").unwrap().latency.is_zero());
        for bad in ["200MB", "0MB/s", "1MB/s,2", "1MB/s,2h", "1MB/s,61min", "jitter=10", "jitter=101%", "jitter=NaN%"] {
            assert!(parse(&format!("slow({bad})")).is_err(), "{bad}");
        }
        assert!(parse("slow(1MB/s,2ms,3ms)").unwrap_err().to_string().contains("no option"), "a third bare word");
    }
}
