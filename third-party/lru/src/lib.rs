//! The interface of `lru` 0.16, implemented by `lru` 0.19.
//!
//! zarrs 0.23 asks for `lru` 0.16, whose `LruCache::pop` is unsound (RUSTSEC-2026-0253, mended in 0.18.2). zarrs uses
//! nothing whose signature changed since. To be removed when zarrs asks for a newer one.
pub use mended::*;
