//! The decoder of headers, for the fuzz target.

use super::decode::decode;
use super::encode::encode;
use super::layout::check;

/// Reads a header; one that is whole is written again, and its length must be the same. Returns whether it was whole.
pub fn header(bytes: &[u8]) -> bool {
    let Ok(decoded) = decode(bytes) else { return false };
    assert!(decoded.len <= bytes.len() as u64, "more was read than there is");
    let written = encode(&decoded.header);
    assert_eq!(written.len() as u64, decoded.len, "written again it has another length");
    let again = decode(&written).map(|again| again.header);
    assert_eq!(again.ok(), Some(decoded.header.clone()), "written again it says something else");
    for variable in &decoded.header.variables {
        let array = super::arrays::Array::of(&decoded.header, variable);
        let _ = array.spec(&decoded.header, variable).check();
        let _ = array.placement(&decoded.header, variable);
    }
    let _ = check(&decoded.header);
    true
}
