//! The file driver under files of modes `safe` and `log`: as `sec2`, with a rollback journal before its writes.
//!
//! The connector registers the class (`table`) with the program's libhdf5 and puts it into access lists that ask for
//! `sec2`. While it opens a file (`open_with`), the driver gives files that are opened for writing a [`Rollback`]
//! (`file`). Files that libhdf5 opens by itself through external links inherit the driver and have none.
//! A flush through the connector commits (`commit_flushed`); so does closing, after which the journal is removed.

mod file;
mod guard;
mod table;

pub(crate) use guard::Guard;

use crate::host::Host;
use crate::host::api::Hid;
use hyperslab_core::{Error, Result};
use hyperslab_rollback::{Refusal, Rollback, RollbackOutcome, roll_back};
use std::cell::RefCell;
use std::path::Path;
use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError, Weak};

/// How files that are being opened are guarded.
#[derive(Debug, Clone)]
struct Wanted {
    durable: bool,
    made: Weak<Rollback>,
}

thread_local! {
    static WANTED: RefCell<Option<Wanted>> = const { RefCell::new(None) };
}

/// Runs a call that opens a file, which gets a rollback journal if it is opened for writing. Returns the journal too, if
/// it is still in use: libhdf5 opens files tentatively, and not at all if they are open already.
pub(crate) fn open_with<T>(durable: bool, open: impl FnOnce() -> T) -> (T, Weak<Rollback>) {
    WANTED.set(Some(Wanted { durable, made: Weak::new() }));
    let result = open();
    (result, WANTED.take().map(|wanted| wanted.made).unwrap_or_default())
}

/// The rollback journal of a file that the driver has opened for writing, if the connector wants one.
fn guard_new(file: &Arc<std::fs::File>, path: &Path) -> std::io::Result<Option<Arc<Rollback>>> {
    let Some(durable) = WANTED.with_borrow(|wanted| wanted.as_ref().map(|wanted| wanted.durable)) else {
        return Ok(None);
    };
    let rollback = Arc::new(Rollback::begin(file.clone(), path, durable)?);
    WANTED.with_borrow_mut(|wanted| {
        if let Some(wanted) = wanted {
            wanted.made = Arc::downgrade(&rollback);
        }
    });
    Ok(Some(rollback))
}

/// Puts the driver into an access list that asks for `sec2`. Whether it did.
///
/// # Safety
/// Inside a call of the library; the list is open and ours.
pub(crate) unsafe fn put(host: &'static Host, list: Hid) -> bool {
    // SAFETY: the class lives as long as the program; the list is open.
    unsafe {
        let mut id = host.driver.load(Ordering::Relaxed);
        if id <= 0 || host.H5Iis_valid(id) <= 0 {
            id = host.H5FDregister(table::of_slot(host.slot));
            host.driver.store(id, Ordering::Relaxed);
        }
        id > 0 && host.H5Pset_driver(list, id, std::ptr::null()) >= 0
    }
}

/// Puts `sec2` back into a list that the program gets.
///
/// # Safety
/// Inside a call of the library; the list is open.
pub(crate) unsafe fn take_out(host: &'static Host, list: Hid) {
    let id = host.driver.load(Ordering::Relaxed);
    // SAFETY: the list is open.
    unsafe {
        if id > 0 && host.H5Pget_driver(list) == id {
            host.H5Pset_fapl_sec2(list);
        }
    }
}

/// Brings a file whose writer was killed back to its last commit, before it is opened.
pub(crate) fn roll_back_before(host: &'static Host, path: &Path) -> Result<()> {
    let failed = |error| {
        Error::io("open", error)
            .hint("a rollback journal lies beside the file, whose writer was killed: run `hyperslab recover` on it where it can be written")
    };
    match roll_back(path, false).map_err(failed)? {
        RollbackOutcome::Nothing | RollbackOutcome::Clean | RollbackOutcome::Refused(Refusal::WriterAlive) => Ok(()),
        RollbackOutcome::RolledBack { .. } => {
            crate::host::say(&format!(
                "{}: its writer was killed; the file is as of its last flush again",
                path.display()
            ));
            Ok(())
        }
        RollbackOutcome::Refused(Refusal::InUse) => Err(Error::unsupported(
            "open",
            "the file must be rolled back, since its writer was killed, and another process has it open",
        )),
        // Never touched: the program gets the file as it is.
        RollbackOutcome::Refused(why) => {
            host.say_once(&format!(
                "{}: a rollback journal lies beside the file and is not used: {why}",
                path.display()
            ));
            Ok(())
        }
    }
}

fn rollbacks(host: &'static Host) -> Vec<Arc<Rollback>> {
    let mut all = host.rollbacks.lock().unwrap_or_else(PoisonError::into_inner);
    all.retain(|rollback| rollback.strong_count() > 0);
    all.iter().filter_map(Weak::upgrade).collect()
}

/// Runs a call that has libhdf5 write files as a whole, and commits those that it wrote. The driver is told which: objects
/// may be in another file than the one they were reached through.
pub(crate) fn flushing(
    host: &'static Host,
    flush: impl FnOnce() -> crate::host::api::Herr,
) -> Result<crate::host::api::Herr> {
    let all = rollbacks(host);
    for rollback in &all {
        let _ = rollback.take_flushed();
    }
    let status = flush();
    if status < 0 || all.is_empty() {
        return Ok(status);
    }
    for rollback in all.iter().filter(|rollback| rollback.take_flushed()) {
        host.stats.rollback.fetch_add(rollback.take_saved_bytes(), Ordering::Relaxed);
        rollback.commit().map_err(|error| Error::io("commit", error))?;
    }
    Ok(status)
}
