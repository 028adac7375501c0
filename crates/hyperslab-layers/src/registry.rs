//! The registry of layers.

use crate::check_order;
use hyperslab_core::{Error, Format, LayerEffect, OptionSpec, Result, Stack, StackElement, suggest};
use std::sync::Arc;

/// Wraps a format with a layer, given the options of its stack element. The stack describes what is below, for layers that
/// record it.
pub type Wrap = fn(&StackElement, Arc<dyn Format>, &Stack) -> Result<Arc<dyn Format>>;

/// A layer that a stack string can name.
#[derive(Debug, Clone, Copy)]
pub struct LayerEntry {
    /// Name in stack strings.
    pub name: &'static str,
    /// One-line description.
    pub about: &'static str,
    /// Supported options.
    pub options: &'static [OptionSpec],
    /// Options that may be given positionally, in this order.
    pub bare: &'static [&'static str],
    /// Wraps a format with the layer.
    pub wrap: Wrap,
    /// Reads what becomes of transfers, for models.
    pub effect: Effect,
    /// What it costs whoever reads the files, and whoever loses power.
    pub consequence: Option<&'static str>,
    /// The mode of the HDF5 connector that does the same.
    pub connector_mode: Option<&'static str>,
    /// What h5bench calls it in `MODE`.
    pub h5bench_mode: Option<&'static str>,
}

/// Reads from a stack element what becomes of transfers.
pub type Effect = fn(&StackElement) -> Result<LayerEffect>;

const LAYERS: &[LayerEntry] = &[
    crate::async_io::ENTRY,
    crate::auto::ENTRY,
    crate::cache::ENTRY,
    crate::log::ENTRY,
    crate::loglayout::ENTRY,
    crate::slow::ENTRY,
    crate::trace::ENTRY,
    crate::twophase::ENTRY,
];

/// All layers.
pub fn layers() -> &'static [LayerEntry] {
    LAYERS
}

/// Builds the layers of `stack` over `bottom`, its format. Checks their order and options.
pub fn build(stack: &Stack, bottom: Arc<dyn Format>) -> Result<Arc<dyn Format>> {
    check_order(stack)?;
    let (mut format, mut below) = (bottom, Stack { layers: Vec::new(), format: stack.format.clone() });
    for element in stack.layers.iter().rev() {
        let (entry, named) = layer(element)?;
        format = (entry.wrap)(&named, format, &below)?;
        below.layers.insert(0, element.clone());
    }
    Ok(format)
}

/// What becomes of transfers in the layer of `element`, for models.
pub fn effect(element: &StackElement) -> Result<LayerEffect> {
    let (entry, named) = layer(element)?;
    (entry.effect)(&named)
}

/// Looks up the layer of `element`, and names and checks its options.
fn layer(element: &StackElement) -> Result<(&'static LayerEntry, StackElement)> {
    let entry = LAYERS.iter().find(|entry| entry.name == element.name).ok_or_else(|| {
        Error::unsupported("choose stack", format!("layer {:?} is not available in this build", element.name))
            .hint(suggest::hint(&element.name, LAYERS.iter().map(|entry| entry.name)))
    })?;
    let element = element.with_names(entry.bare, entry.options)?;
    element.check_options(entry.options)?;
    Ok((entry, element))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn of(text: &str) -> LayerEffect {
        effect(&format!("{text}/posix").parse::<Stack>().unwrap().layers[0]).unwrap()
    }

    #[test]
    fn every_layer_says_what_becomes_of_transfers() {
        for entry in layers() {
            assert!(effect(&StackElement::plain(entry.name)).is_ok(), "{}", entry.name);
        }
        assert_eq!(of("slow(1MB/s,3ms)"), LayerEffect::Emulated { rate: 1_048_576.0, latency: 0.003 });
        assert_eq!(of("slow(latency=1ms)"), LayerEffect::Emulated { rate: f64::from(200 << 20), latency: 0.001 });
        assert_eq!(of("twophase(aggregators=3)"), LayerEffect::Together { aggregators: Some(3), buffer: 1 << 20 });
        let LayerEffect::Logged { drain, buffer, .. } = of("log(limit=8MiB)") else { panic!("no log") };
        assert_eq!((drain, buffer), (1 << 20, 8 << 20));
        let LayerEffect::Logged { drain, .. } = of("log") else { panic!("no log") };
        assert_eq!(drain, 256 << 20);
        assert_eq!(of("trace"), LayerEffect::Through);
    }
}
