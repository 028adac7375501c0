//! In which order things were made in the input, to make them so again.

use hyperslab_core::{Result, Stack};
use std::collections::HashMap;
use std::path::Path;

/// Numbers of objects and of their attributes.
#[derive(Debug, Default)]
pub struct MadeOrder {
    objects: HashMap<String, usize>,
    attributes: HashMap<String, Vec<String>>,
}

impl MadeOrder {
    /// As far as the format keeps it.
    pub fn of(stack: &Stack, path: &Path) -> Result<Self> {
        let Some(creation_order) = hyperslab_formats::format(&stack.format.name)?.creation_order else {
            return Ok(Self::default());
        };
        let mut order = Self::default();
        for (number, (object, attributes)) in creation_order(path)?.into_iter().enumerate() {
            order.objects.insert(object.clone(), number);
            order.attributes.insert(object, attributes);
        }
        Ok(order)
    }

    /// Objects in their order; those that have none come last, by name.
    pub fn sorted(&self, mut names: Vec<String>) -> Vec<String> {
        names.sort_by_cached_key(|name| (self.objects.get(name).copied().unwrap_or(usize::MAX), name.clone()));
        names
    }

    /// Attributes of an object in their order; those that have none come last, by name.
    pub fn attributes(&self, object: &str, mut names: Vec<String>) -> Vec<String> {
        let Some(order) = self.attributes.get(object) else { return names };
        let number = |name: &String| order.iter().position(|known| known == name).unwrap_or(usize::MAX);
        names.sort_by_cached_key(|name| (number(name), name.clone()));
        names
    }
}
