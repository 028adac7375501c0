//! Emulated slow storage: `slow(200MB/s,2ms)/posix`, for tests and demonstrations.
//!
//! The data move for real through the format below; then the call waits until the emulated storage would have been done.
//! Emulated time counts from the call on, so that the real work is part of it and not added to it. A call never takes
//! less than it would on the emulated storage; where the format below is slower, that time is what is seen.
//!
//! # What takes how long
//!
//! * A transfer of n bytes occupies the device for n / `rate`. Transfers queue: the device serves them one after the
//!   other in the order in which they came. Each is complete one `latency` after the device was done with it, and the
//!   latencies of different requests overlap.
//! * Each part of `write_many` is a request. Empty selections are none.
//! * What is no transfer (opening, creating, attributes, resizing, flushing, closing, listing) takes one `latency` and
//!   does not queue. Flushing and closing a container also wait for what was submitted through it.
//! * With `jitter`, every one of these times is longer or shorter by up to that share, by a fixed sequence of numbers.
//!
//! # Whose device
//!
//! All thread ranks of a stack share one device, whatever containers they open. Ranks that are processes cannot: each
//! has a device with an equal part of the rate, 1 / n for n processes that open a container together; a process that
//! opens one alone has the whole rate.

mod array;
mod container;
mod device;
mod options;
mod timer;

use crate::LayerEntry;
use container::{Shared, SlowContainer};
use device::Device;
use hyperslab_core::{Communicator, Container, Format, OpenMode, Result, Stack, StackElement};
use options::Options;
use std::path::{Path, PathBuf};
use std::sync::Arc;

const NAME: &str = "slow";

pub(crate) const ENTRY: LayerEntry = LayerEntry {
    name: NAME,
    about: "emulates slow storage, for tests and demonstrations: the data move for real, but no faster than this",
    options: options::SPECS,
    bare: &["rate", "latency"],
    wrap,
    effect: options::effect,
    consequence: None,
    connector_mode: None,
    h5bench_mode: None,
};

fn wrap(element: &StackElement, inner: Arc<dyn Format>, _: &Stack) -> Result<Arc<dyn Format>> {
    Ok(Arc::new(SlowFormat { inner, device: Arc::new(Device::new(Options::parse(element)?)) }))
}

/// A format on an emulated device.
#[derive(Debug)]
struct SlowFormat {
    inner: Arc<dyn Format>,
    device: Arc<Device>,
}

#[deny(clippy::missing_trait_methods)]
impl Format for SlowFormat {
    hyperslab_core::forward!(self, self.inner, [caps, extension]);

    fn name(&self) -> &'static str {
        NAME
    }

    fn open(&self, path: &Path, how: OpenMode, comm: &Arc<dyn Communicator>) -> Result<Arc<dyn Container>> {
        let inner = self.device.answer(|| self.inner.open(path, how, comm))?;
        let sharers = if comm.one_process() { 1 } else { comm.size() as u64 };
        Ok(Arc::new(SlowContainer { inner, shared: Arc::new(Shared::new(self.device.clone(), sharers)) }))
    }

    fn exists(&self, path: &Path) -> Result<bool> {
        self.device.answer(|| self.inner.exists(path))
    }

    fn remove(&self, path: &Path) -> Result<()> {
        self.device.answer(|| self.inner.remove(path))
    }

    /// Asked for by tools, not by programs: takes no emulated time.
    fn files(&self, path: &Path) -> Result<Vec<PathBuf>> {
        self.inner.files(path)
    }
}
