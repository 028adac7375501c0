//! The layers by name.

use crate::check_order;
use hyperslab_core::{Error, Format, OptionSpec, Result, Stack, StackElement, suggest};
use std::sync::Arc;

/// The format seen through a layer with the options of a stack element. The stack is what lies below as data, for layers that
/// write down what they stand on.
pub type Wrap = fn(&StackElement, Arc<dyn Format>, &Stack) -> Result<Arc<dyn Format>>;

/// A layer that a stack string can name.
#[derive(Debug, Clone, Copy)]
pub struct LayerEntry {
    /// Its name in stack strings.
    pub name: &'static str,
    /// One line for people.
    pub about: &'static str,
    /// The options it understands.
    pub options: &'static [OptionSpec],
    /// Options whose names may be left out, in this order.
    pub bare: &'static [&'static str],
    /// Puts it above a format.
    pub wrap: Wrap,
}

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

/// Every layer of this version.
pub fn layers() -> &'static [LayerEntry] {
    LAYERS
}

/// The format that `stack` describes, its layers over `bottom`, which stands for its format. Orders and options are checked.
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

/// The layer that `element` names, and the element with all its options named and checked.
fn layer(element: &StackElement) -> Result<(&'static LayerEntry, StackElement)> {
    let entry = LAYERS.iter().find(|entry| entry.name == element.name).ok_or_else(|| {
        Error::unsupported("choose stack", format!("layer {:?} is not available in this build", element.name))
            .hint(suggest::hint(&element.name, LAYERS.iter().map(|entry| entry.name)))
    })?;
    let element = element.with_names(entry.bare, entry.options)?;
    element.check_options(entry.options)?;
    Ok((entry, element))
}
