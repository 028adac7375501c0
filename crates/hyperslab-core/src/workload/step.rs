//! Steps of a workload.

use crate::{Attribute, Dims, Durability, MemoryLayout, OpenMode, Selection, TransferMode};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::sync::Arc;

/// One step of one rank. Files and array kinds are numbers into the header; `slot` names an open array from its
/// `create` or `open` to its `close_array`, and may be used again afterwards.
///
/// Steps marked collective are taken by all ranks in the same order (unless the file is per rank).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "do", rename_all = "snake_case", deny_unknown_fields)]
pub enum Step {
    /// Opens or creates a container. Collective.
    OpenFile {
        /// Number of the file.
        file: u32,
        /// How.
        how: OpenMode,
    },
    /// Creates a group. Collective.
    Group {
        /// Number of the file.
        file: u32,
        /// Path of the group.
        name: Arc<str>,
    },
    /// Creates an array of a declared kind. Collective.
    Create {
        /// Handle for later steps.
        slot: u32,
        /// Number of the file.
        file: u32,
        /// Number of the declaration.
        array: u32,
        /// Path of the array.
        name: Arc<str>,
    },
    /// Opens an array. Collective.
    Open {
        /// Handle for later steps.
        slot: u32,
        /// Number of the file.
        file: u32,
        /// Number of the declaration it is expected to match in datatype and number of dimensions.
        array: u32,
        /// Path of the array.
        name: Arc<str>,
    },
    /// Writes the workload's data. Collective if `transfer` says so.
    Write {
        /// The array.
        slot: u32,
        /// The selected elements.
        selection: Selection,
        /// Their layout in memory.
        #[serde(default, skip_serializing_if = "is_packed")]
        memory: Arc<MemoryLayout>,
        /// Independent or collective.
        #[serde(default, skip_serializing_if = "is_independent")]
        transfer: TransferMode,
    },
    /// Reads, and checks if asked. Collective if `transfer` says so.
    Read {
        /// The array.
        slot: u32,
        /// The selected elements.
        selection: Selection,
        /// Their layout in memory.
        #[serde(default, skip_serializing_if = "is_packed")]
        memory: Arc<MemoryLayout>,
        /// Independent or collective.
        #[serde(default, skip_serializing_if = "is_independent")]
        transfer: TransferMode,
    },
    /// Changes an array's shape. Collective.
    Resize {
        /// The array.
        slot: u32,
        /// New extents.
        shape: Dims,
    },
    /// Sets an attribute. Collective.
    Attribute {
        /// Number of the file.
        file: u32,
        /// Path of the group or array; empty for the root.
        object: Arc<str>,
        /// Name of the attribute.
        name: Arc<str>,
        /// Its value.
        value: Attribute,
    },
    /// Waits for all ranks. Collective.
    Barrier,
    /// Computes (sleeps).
    Compute {
        /// How long.
        nanoseconds: u64,
    },
    /// A new time step begins.
    Epoch {
        /// Its number.
        number: u64,
    },
    /// Makes what was written visible or durable. Collective.
    Flush {
        /// Number of the file.
        file: u32,
        /// The guarantee.
        how: Durability,
    },
    /// Closes an array. Collective.
    CloseArray {
        /// The array.
        slot: u32,
    },
    /// Closes a container. Collective.
    CloseFile {
        /// Number of the file.
        file: u32,
    },
}

impl Step {
    /// Whether all ranks take it together (unless it is about a file per rank).
    pub fn is_collective(&self) -> bool {
        match self {
            Self::Write { transfer, .. } | Self::Read { transfer, .. } => *transfer == TransferMode::Collective,
            Self::Compute { .. } | Self::Epoch { .. } => false,
            _ => true,
        }
    }

    /// What must be equal on all ranks for a collective step: the whole step, or for a transfer its kind and array.
    pub fn in_common(&self) -> Cow<'_, Self> {
        let nothing = || (Selection::empty(0), Arc::default());
        match self {
            Self::Write { slot, transfer, .. } => {
                let (selection, memory) = nothing();
                Cow::Owned(Self::Write { slot: *slot, selection, memory, transfer: *transfer })
            }
            Self::Read { slot, transfer, .. } => {
                let (selection, memory) = nothing();
                Cow::Owned(Self::Read { slot: *slot, selection, memory, transfer: *transfer })
            }
            _ => Cow::Borrowed(self),
        }
    }
}

fn is_packed(memory: &Arc<MemoryLayout>) -> bool {
    memory.is_packed()
}

fn is_independent(transfer: &TransferMode) -> bool {
    *transfer == TransferMode::Independent
}
