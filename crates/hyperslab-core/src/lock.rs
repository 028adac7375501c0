//! Locking that goes on after a panic elsewhere.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Locks a mutex, also after a thread panicked while it held it. For data that are consistent after every statement, so that a
/// panic of one caller does not become a panic of all others.
pub fn lock<T: ?Sized>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_elsewhere_does_not_spread() {
        let shared = Mutex::new(1);
        let failed = std::thread::scope(|scope| {
            let fail = || {
                *lock(&shared) = 2;
                let _held = lock(&shared);
                panic!("on purpose");
            };
            scope.spawn(fail).join()
        });
        assert!(failed.is_err() && shared.is_poisoned());
        assert_eq!(*lock(&shared), 2);
    }
}
