//! Shared files that were dropped without being closed. Closing is collective, so they are closed when the same
//! processes open a file again, or else when MPI ends.

use super::container::Slot;
use super::handle::OwnedHandle;
use super::ranks::Ranks;
use hyperslab_core::{Result, lock};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, Weak};

/// Identifies one opening of a file, the same on every rank that took part.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Token([u8; Token::BYTES]);

impl Token {
    const BYTES: usize = 32;

    /// Creates a token on the first rank. Collective.
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

/// A leaked file and its open arrays.
struct LeakedFile {
    token: Token,
    file: OwnedHandle,
    arrays: Vec<Weak<Slot>>,
}

static LEAKED: Mutex<Vec<LeakedFile>> = Mutex::new(Vec::new());

/// Keeps a file until all its ranks can close it.
pub(super) fn keep(token: Token, file: OwnedHandle, arrays: Vec<Weak<Slot>>) {
    lock(&LEAKED).push(LeakedFile { token, file, arrays });
}

/// Closes files that all these ranks have leaked. Errors of closing are ignored. Collective.
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
        // Arrays first: they would keep the file open.
        arrays.iter().filter_map(Weak::upgrade).for_each(|slot| drop(lock(&slot).take()));
        let _ = file.close("close");
    }
    Ok(())
}
