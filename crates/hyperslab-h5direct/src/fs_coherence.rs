//! File systems without cache coherence between nodes: writes of one may become visible to others much later. MPI-IO
//! works around that with file locks, which the direct path does not take.

use hyperslab_core::{Error, Result};
use std::fs::File;

/// File system types and names, see `statfs(2)`.
const KNOWN: [(u64, &str); 7] = [
    (0x6969, "NFS"),
    (0x517B, "SMB"),
    (0xFF53_4D42, "CIFS"),
    (0xFE53_4D42, "SMB2"),
    (0x5346_414F, "AFS"),
    (0x0102_1997, "9P"),
    (0x6573_5546, "FUSE"),
];

/// The name of a file system without coherence, by its type.
fn name(number: u64) -> Option<&'static str> {
    KNOWN.iter().find(|(known, _)| *known == number).map(|(_, name)| *name)
}

/// Fails for files on a file system without coherence between nodes.
pub fn refuse_incoherent(file: &File) -> Result<()> {
    let about = rustix::fs::fstatfs(file).map_err(|e| Error::io("open", e.into()))?;
    // Only the lower 32 bits are significant; kernels differ in width and sign.
    match name(about.f_type as u64 & 0xFFFF_FFFF) {
        None => Ok(()),
        Some(name) => {
            let message = format!("nodes may see a file on {name} differently while processes write it");
            Err(Error::unsupported("open", message))
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn network_file_systems_are_known_and_local_ones_taken() {
        assert_eq!(name(0x6969), Some("NFS"));
        assert_eq!(name(0xEF53), None); // ext4
        refuse_incoherent(&tempfile::tempfile().unwrap()).unwrap();
    }
}
