//! Memory that is occupied during a test, so that the page cache has less.

use crate::plan::Plan;
use crate::size;
use hyperslab_core::{Error, PageBuffer, Result};
use hyperslab_run::memory_available;

/// Memory of one rank, given back when it is dropped.
#[derive(Debug)]
pub struct MemoryHog(#[allow(dead_code)] PageBuffer);

impl MemoryHog {
    /// As much as the settings ask for. Refuses more than there is.
    pub fn of(plan: &Plan) -> Result<Option<Self>> {
        let settings = &plan.settings;
        let available = memory_available();
        let bytes = match &settings.memory_per_node {
            Some(text) => share(text, available)? / plan.per_node.max(1) as u64,
            None => settings.memory_per_task,
        };
        if bytes == 0 {
            return Ok(None);
        }
        let all = bytes.saturating_mul(plan.per_node as u64);
        if available.is_some_and(|available| all > available / 20 * 19) {
            return Err(Error::invalid("occupy memory", format!("{all} bytes are more than there are"))
                .hint("ask for less with -M"));
        }
        PageBuffer::new(bytes as usize).map(|memory| Some(Self(memory)))
    }
}

/// A size, or a part of what is available.
fn share(text: &str, available: Option<u64>) -> Result<u64> {
    let Some(percent) = text.trim().strip_suffix('%') else { return size::parse(text) };
    let bad = || Error::invalid("occupy memory", format!("{text:?} is no share")).hint("use 2g or 75%");
    let percent: u64 = percent.trim().parse().ok().filter(|percent| *percent <= 95).ok_or_else(bad)?;
    Ok(available.ok_or_else(bad)? / 100 * percent)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_a_size_or_a_share() {
        assert_eq!((share("2k", None).unwrap(), share("50%", Some(1000)).unwrap()), (2048, 500));
        assert!(share("50%", None).is_err() && share("100%", Some(1)).is_err() && share("x", None).is_err());
    }
}
