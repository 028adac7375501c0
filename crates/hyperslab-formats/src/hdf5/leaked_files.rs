//! Files of several processes that were dropped without being closed. One process alone cannot close them: it would wait
//! for the others. They are closed when the same processes open a file again, or else when MPI ends.

use super::container::{Slot, lock};
use super::handle::OwnedHandle;
use super::ranks::Ranks;
use hyperslab_core::Result;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, Weak};

/// Names one opening of a file alike on every rank that took part.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Token([u8; Token::BYTES]);

impl Token {
    const BYTES: usize = 32;

    /// A new one, of the first rank's making. Collective.
    pub(super) fn new(ranks: &Ranks) -> Result<Self> {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let since = std::time::UNIX_EPOCH.elapsed().map_or(0, |time| time.as_nanos() as u64);
        let numbers =
            [since, u64::from(std::process::id()), NEXT.fetch_add(1, Ordering::Relaxed), ranks.count() as u64];
        let mut bytes: Vec<u8> = numbers.iter().flat_map(|number| number.to_ne_bytes()).collect();
        ranks.broadcast(&mut bytes)?;
        let mut token = Self([0; Self::BYTES]);
        token.0.copy_from_slice(&bytes[..Self::BYTES]);
        Ok(token)
    }

    /// Whether this many ranks opened the file.
    fn is_of(&self, ranks: usize) -> bool {
        self.0.ends_with(&(ranks as u64).to_ne_bytes())
    }
}

/// A file and what is open in it.
struct LeakedFile {
    token: Token,
    file: OwnedHandle,
    arrays: Vec<Weak<Slot>>,
}

static LEAKED: Mutex<Vec<LeakedFile>> = Mutex::new(Vec::new());

/// Keeps a file until all ranks can close it.
pub(super) fn keep(token: Token, file: OwnedHandle, arrays: Vec<Weak<Slot>>) {
    lock(&LEAKED).push(LeakedFile { token, file, arrays });
}

/// Closes what all these ranks have abandoned. Errors have no place to go. Collective.
pub(super) fn close_collectively(ranks: &Ranks) -> Result<()> {
    let mine: Vec<u8> = lock(&LEAKED).iter().flat_map(|file| file.token.0).collect();
    let all = ranks.all_gather(&mine)?;
    let everywhere = |token: &Token| {
        token.is_of(all.len())
            && all.iter().all(|tokens| tokens.chunks_exact(Token::BYTES).any(|known| known == token.0))
    };
    let mut common: Vec<LeakedFile> = lock(&LEAKED).extract_if(.., |file| everywhere(&file.token)).collect();
    common.sort_by_key(|file| file.token); // in the same order on every rank
    for LeakedFile { file, arrays, .. } in common {
        // Before the file, which would stay open for them.
        arrays.iter().filter_map(Weak::upgrade).for_each(|slot| drop(lock(&slot).take()));
        let _ = file.close("close");
    }
    Ok(())
}
