//! Entry point for fuzzing: decodes a generation of the index and encodes it again.

use super::entry::encode;
use super::generation::{HEAD, Head, split};
use hyperslab_core::{Datatype, Result};
use hyperslab_journal::wire::Encoder;

/// Decodes head and body of a finished generation, and checks its entries against an array of `shape`.
pub fn generation(bytes: &[u8], dtype: &Datatype, shape: &[u64]) -> Result<Option<Vec<u8>>> {
    let (head, body) = bytes.split_at(HEAD.min(bytes.len()));
    let Some(head) = Head::decode(head)? else { return Ok(None) };
    head.check(body)?;
    let mut index = super::index::Index::default();
    let mut part = Encoder::default();
    for said in split(body)? {
        encode(&mut part, &said.array, said.cleared, said.entries.iter());
        if said.entries.iter().all(|entry| entry.check(dtype, shape).is_ok()) {
            index.store(said, shape);
        }
    }
    if let Some(entry) = index.entries().next() {
        let overlapping = index.overlapping(&entry.selection, shape);
        // May be refused if it would have too many slabs.
        let _ = super::index::resolve(overlapping, &entry.selection);
    }
    let body = super::generation::join(&[part.0]);
    let head = Head::new(head.generation, head.previous, &body);
    Ok(Some([head.encode(), body].concat()))
}
