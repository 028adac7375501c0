//! Entry points for fuzzing: each decodes one structure and encodes it again.

use super::header::{Header, Id};
use super::node::block;
use super::record::{self, Record};
use super::segment_header::SegmentHeader;
use super::wire::Encoder;
use hyperslab_core::Result;

/// The head.
pub fn header(bytes: &[u8]) -> Result<Vec<u8>> {
    Header::decode(bytes).map(|header| header.encode())
}

/// The header of segment `number`.
pub fn segment_head(bytes: &[u8], journal: &Id, number: u64) -> Result<Vec<u8>> {
    SegmentHeader::decode(bytes, journal, number).map(|head| head.encode())
}

/// A record.
pub fn record(bytes: &[u8], seed: u32) -> Result<Vec<u8>> {
    let (sequence, record) = record::decode(bytes, seed)?;
    let mut out = Encoder::default();
    match &record {
        Record::Array { number, name, dtype } => {
            let text = record::type_text(name, dtype).unwrap_or_default();
            record::put_array(&mut out, seed, sequence, *number, name, &text);
        }
        Record::Write { array, selection, payload } => {
            record::put_write(&mut out, seed, sequence, *array, selection, payload);
        }
        Record::Checkpoint { before } => record::put_checkpoint(&mut out, seed, sequence, *before),
    }
    Ok(out.0)
}

/// A block header of a node file; `None` if it is invalid.
pub fn node_block(head: &[u8; 256]) -> Option<Vec<u8>> {
    let (name, index) = block::decode(head)?;
    block::encode(name, index).map(|head| head.to_vec())
}
