//! Who transfers the elements of an open dataset: undecided until its transfers are many or large.
//!
//! Most datasets of a file with thousands of them are small, and deciding costs more than their elements.

use super::dataset::{Attach, Dataset, attach, identity, object_name, token_of_object};
use super::file::FileState;
use super::metadata_backend::Handle;
use super::transfer::{Transfer, bytes_selected};
use crate::callbacks::dataset::{AccessList, BY_ITSELF, Place, wants_cache};
use crate::host::api::{Hid, Ptr};
use crate::object::{DATASET, Object};
use hyperslab_core::lock;
use std::ffi::{CString, c_int};
use std::ptr::null_mut;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// Small transfers of a dataset that are libhdf5's; it is decided with the next.
const FEW: u32 = 8;
/// `H5I_GROUP`.
const GROUP: c_int = 2;
/// What the statistics say of them.
const SMALL: &str = "few elements, which libhdf5 transfers as fast";

/// Who transfers the elements.
#[derive(Debug, Clone)]
pub(crate) enum Attachment {
    /// libhdf5 as yet.
    Undecided(Undecided),
    /// The direct path.
    Direct(Arc<Dataset>),
    /// libhdf5.
    Library(LibraryOnly),
}

/// What is known of a dataset that libhdf5 transfers.
#[derive(Debug, Clone, Default)]
pub(crate) struct LibraryOnly {
    /// Why, if the file is accelerated at all.
    pub(crate) why: Option<Arc<str>>,
    /// Whether it is a virtual dataset, or elements of it are outside the file.
    pub(crate) is_indirect: bool,
    /// Whether this rank of an MPI program writes its elements by itself in collective writes, as the others do.
    pub(crate) moves_alone: bool,
}

/// What is known of a dataset before it is decided about.
#[derive(Debug, Clone)]
pub(crate) struct Undecided {
    /// Whether it was opened or created by a name.
    has_name: bool,
    /// Whether its elements are certainly in its own file: it was created here, and is no virtual dataset.
    is_own: bool,
    /// How often names had changed in the file when it was opened.
    renames: u64,
    /// Transfers so far, all of them small.
    transfers: u32,
    /// Whether the program may know where it is in the file.
    offset_exposed: bool,
}

impl Undecided {
    pub(crate) fn new(file: &FileState, has_name: bool, is_own: bool) -> Self {
        let renames = file.renames.load(Ordering::Relaxed);
        Self { has_name, is_own, renames, transfers: 0, offset_exposed: false }
    }
}

impl Default for Attachment {
    fn default() -> Self {
        Self::Library(LibraryOnly::default())
    }
}

impl LibraryOnly {
    /// The reason in words.
    pub(crate) fn reason(&self) -> String {
        self.why.as_deref().unwrap_or("the mode asks for nothing more").to_owned()
    }
}

impl Attachment {
    /// The reason why libhdf5 makes a transfer now.
    pub(crate) fn library(&self) -> LibraryOnly {
        match self {
            Self::Library(library) => library.clone(),
            Self::Undecided(_) => LibraryOnly { why: Some(SMALL.into()), ..LibraryOnly::default() },
            Self::Direct(_) => LibraryOnly::default(),
        }
    }
}

/// Call before a transfer: decides about the dataset, unless the transfer is small and among the first.
///
/// # Safety
/// Inside a call of the library, with the arguments it gives for a transfer of the object.
pub(crate) unsafe fn decide_for(object: &Object, one: &Transfer, writes: bool) {
    let (Some(mut undecided), Some(file)) = (object.undecided(), &object.file) else { return };
    // SAFETY: the caller's.
    unsafe {
        if undecided.transfers < FEW && stays_undecided(object, file, &undecided, one, writes) {
            undecided.transfers += 1;
            object.set_attachment(Attachment::Undecided(undecided));
        } else {
            decide(object);
        }
    }
}

unsafe fn stays_undecided(
    object: &Object,
    file: &FileState,
    undecided: &Undecided,
    one: &Transfer,
    writes: bool,
) -> bool {
    let host = object.host;
    if !file.leaves_small_transfers() {
        return false;
    }
    // What the transfer reads may wait in memory, and what it writes may be known here, as elements of this dataset or, of
    // a virtual one, of another.
    if host.direct_datasets.load(Ordering::Relaxed) > 0 {
        let coherent = if writes { undecided.is_own } else { !host.pending.load(Ordering::Relaxed) };
        // SAFETY: the caller's.
        if !coherent || (writes && unsafe { is_known(object, file) }) {
            return false;
        }
    }
    // SAFETY: the caller's.
    unsafe { bytes_selected(object, one) < file.settings.small }
}

/// Whether another handle of the same object uses the direct path, or that cannot be told.
unsafe fn is_known(object: &Object, file: &FileState) -> bool {
    // SAFETY: the object is an open dataset.
    object
        .host
        .preserving_error_stack(|| unsafe { identity(object) })
        .is_none_or(|(number, token)| number != file.number || lock(&file.datasets).contains_key(&token))
}

/// Call before libhdf5 changes a dataset by other calls than transfers: it is decided about if the direct path may know it.
///
/// # Safety
/// Inside a call of the library; the object is an open dataset.
pub(crate) unsafe fn decide_if_known(object: &Object) {
    if object.undecided().is_some() && object.host.direct_datasets.load(Ordering::Relaxed) > 0 {
        // SAFETY: the caller's.
        unsafe { decide(object) };
    }
}

/// Records that the program may know where the elements are in the file.
pub(crate) fn expose_offset(object: &Object) {
    match object.attachment() {
        Attachment::Undecided(undecided) => {
            object.set_attachment(Attachment::Undecided(Undecided { offset_exposed: true, ..undecided }));
        }
        Attachment::Direct(dataset) => dataset.io.offset_exposed.store(true, Ordering::Relaxed),
        Attachment::Library(_) => {}
    }
}

/// Decides about an undecided dataset.
///
/// # Safety
/// Inside a call of the library; the object is an open dataset.
pub(crate) unsafe fn decide(object: &Object) {
    let (Some(undecided), Some(file)) = (object.undecided(), &object.file) else { return };
    // SAFETY: the caller's.
    let attached = object.host.preserving_error_stack(|| unsafe { attach(object, undecided.has_name) });
    if let Attach::Direct(dataset) = &attached {
        if undecided.renames != file.renames.load(Ordering::Relaxed) {
            dataset.mark_renamed();
        }
        if undecided.offset_exposed {
            dataset.io.offset_exposed.store(true, Ordering::Relaxed);
        }
    }
    let stays = matches!(attached, Attach::Library { .. });
    object.set_attachment(attached.into());
    if stays {
        // SAFETY: the caller's.
        object.host.preserving_error_stack(|| unsafe { reopen_with_cache(object) });
    }
}

impl From<Attach> for Attachment {
    fn from(attached: Attach) -> Self {
        match attached {
            Attach::Direct(dataset) => Self::Direct(dataset),
            Attach::Library { why, is_indirect, moves_alone } => {
                Self::Library(LibraryOnly { why: Some(why.into()), is_indirect, moves_alone })
            }
        }
    }
}

/// Opens a dataset, which was opened without a chunk cache, with the one that the program wants, if libhdf5 transfers its
/// elements and it has chunks. It stays as it is if it is not found by its name, or open elsewhere.
unsafe fn reopen_with_cache(object: &Object) {
    let (host, connector, list) = (object.host, object.connector, object.host.default_transfer());
    // SAFETY: the dataset is open, and so is what is opened here until it is closed here.
    unsafe {
        let Some(wanted) = object.chunk_cache.filter(|wanted| wants_cache(object, *wanted)) else { return };
        let Some(path) = object_name(host, object.handle(), DATASET).filter(|name| !name.is_empty()) else { return };
        let Ok(path) = CString::new(format!("/{path}")) else { return };
        let place = |kind| Place::itself(kind);
        let (here, above) = (place(DATASET), place(GROUP));
        let root = c"/".as_ptr();
        let root = host.H5VLgroup_open(object.under(), (&raw const here).cast(), connector, root, 0, list, null_mut());
        if root.is_null() {
            return;
        }
        let open = |access: Hid| {
            host.H5VLdataset_open(root, (&raw const above).cast(), connector, path.as_ptr(), access, list, null_mut())
        };
        let close = |dataset: Ptr| host.H5VLdataset_close(dataset, connector, list, null_mut());
        let second = open(0);
        let token = token_of_object(host, object.handle()).filter(|_| !second.is_null());
        let same = token.is_some() && token == token_of_object(host, Handle { under: second, connector });
        if !second.is_null() && !same {
            close(second);
        }
        if same && let Some(access) = AccessList::with(host, 0, wanted) {
            // Only without the first handle is the cache made anew; until the second is there the first stays.
            close(object.under());
            close(second);
            let again = open(access.list);
            object.set_under(if again.is_null() { open(0) } else { again });
        } else if same {
            close(second);
        }
        host.H5VLgroup_close(root, connector, list, null_mut());
    }
}

impl Place {
    /// The object itself, of a kind.
    pub(crate) fn itself(kind: c_int) -> Self {
        Self { kind, how: BY_ITSELF, name: std::ptr::null(), _more: [0; 6] }
    }
}
