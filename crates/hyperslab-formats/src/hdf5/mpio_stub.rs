//! Replaces `mpio` in builds without parallel HDF5. Never called: without MPI no driver is chosen that needs it.

use super::library::Id;
use super::options::Options;
use hyperslab_core::{Error, Result};

fn absent<T>() -> Result<T> {
    Err(Error::unsupported("open", "this build has no parallel HDF5"))
}

pub(super) fn started() -> bool {
    false
}

pub(super) fn ended() -> bool {
    false
}

pub(super) fn has_subfiling() -> bool {
    false
}

pub(super) fn use_mpio(_list: &Id, _handle: i32, _options: &Options) -> Result<()> {
    absent()
}

pub(super) fn use_subfiling(_list: &Id, _handle: i32, _options: &Options) -> Result<()> {
    absent()
}

pub(super) fn refuse_surroundings(_options: &Options) -> Result<()> {
    absent()
}

pub(super) fn collective_metadata_reads(_list: &Id) -> Result<()> {
    absent()
}

pub(super) fn collective_metadata_writes(_list: &Id) -> Result<()> {
    absent()
}

pub(super) fn collective_transfer(_options: &Options) -> Result<Id> {
    absent()
}

pub(super) fn outcome(_list: &Id) -> Result<(u32, u32)> {
    absent()
}
