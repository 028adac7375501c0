//! Collective transfers through `twophase`.
#![allow(clippy::unwrap_used)]

mod accesses;
mod failures;
mod random;
mod watched;

use hyperslab_core::{Format, Stack};
use std::sync::Arc;

/// The layers of a stack string over `bottom`, whatever format the string names.
fn over(text: &str, bottom: Arc<dyn Format>) -> Arc<dyn Format> {
    let stack: Stack = text.parse().unwrap();
    hyperslab_layers::build(&stack, bottom).unwrap()
}

/// The format that a stack string names, with its layers.
fn build(text: &str) -> Arc<dyn Format> {
    over(text, hyperslab_formats::build(&text.parse::<Stack>().unwrap().format).unwrap())
}
