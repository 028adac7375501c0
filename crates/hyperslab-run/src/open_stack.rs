//! From a stack string to a format.

use hyperslab_comm::{Solo, Threads};
use hyperslab_core::{Communicator, Format, Result, Stack};
use std::sync::Arc;

/// Builds the format at the bottom and wraps it in the layers above, innermost first. Refuses layers in an order that
/// makes no sense.
pub fn open_stack(stack: &Stack) -> Result<Arc<dyn Format>> {
    let format = hyperslab_layers::check_order(stack).and_then(|()| hyperslab_formats::build(&stack.format));
    let format = format.and_then(|format| hyperslab_layers::build(stack, format));
    // Whatever opens containers for a user notices logs that wait for them.
    format.map(hyperslab_journal::marker::with_marker_check).map_err(|error| error.target(stack))
}

/// A group of one rank, for programs that open a container by themselves.
pub fn single_rank() -> Arc<dyn Communicator> {
    Solo::shared()
}

/// Runs `body` on ranks that are threads of this process, for programs that share work by themselves. A rank that fails ends
/// the others; its error is returned.
pub fn on_threads<T: Send>(
    ranks: usize,
    body: impl Fn(Arc<dyn Communicator>) -> Result<T> + Send + Sync,
) -> Result<Vec<T>> {
    Threads::run(ranks, body)
}
