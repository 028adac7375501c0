//! Files whose writers were killed under mode `safe` or `log`: back to their last flush, before logs are replayed into them.

use super::End;
use hyperslab_rollback::{Outcome, Pending, Refusal};
use std::io;
use std::path::{Path, PathBuf};

/// The files that a directory has rollback journals of, or the file itself.
pub fn files(path: &Path) -> io::Result<Vec<PathBuf>> {
    if path.is_dir() { hyperslab_rollback::find_in(path) } else { Ok(vec![path.to_owned()]) }
}

/// Brings files back to their last flush and says what became of each. With `look` nothing is changed.
pub fn each(files: &[PathBuf], look: bool, force: bool) -> Vec<End> {
    files.iter().map(|file| if look { say_pending(file) } else { one(file, force) }).collect()
}

fn say_pending(file: &Path) -> End {
    let name = file.display();
    match hyperslab_rollback::pending(file) {
        Ok(Pending::Nothing) => End::Done,
        Ok(Pending::Live) => {
            println!("{name}: is being written, its rollback journal is in use");
            End::LeftAlone
        }
        Ok(Pending::Orphaned) => {
            println!("{name}: its writer was killed, it is to be rolled back to its last flush");
            End::Done
        }
        Err(error) => {
            eprintln!("hyperslab: {name}: {error}");
            End::Failed
        }
    }
}

fn one(file: &Path, force: bool) -> End {
    let name = file.display();
    match hyperslab_rollback::roll_back(file, force) {
        Ok(Outcome::Nothing) => mend(file),
        Ok(Outcome::Clean) => {
            println!("{name}: its writer was killed after its last flush; nothing had to be rolled back");
            End::Done
        }
        Ok(Outcome::RolledBack { bytes, from, to }) => {
            println!(
                "{name}: rolled back to its last flush: {bytes} bytes put back, length {from} before and {to} now"
            );
            End::Done
        }
        Ok(Outcome::Refused(why)) => {
            eprintln!("hyperslab: {name}: not rolled back: {why}");
            if why == Refusal::WriterAlive { End::LeftAlone } else { End::Failed }
        }
        Err(error) => {
            eprintln!("hyperslab: {name}: not rolled back: {error}");
            End::Failed
        }
    }
}

/// A file without a journal may be shorter than its superblock says, which libhdf5 refuses.
fn mend(file: &Path) -> End {
    if !file.is_file() {
        return End::Done;
    }
    match hyperslab_rollback::mend_end(file) {
        Ok(0) => End::Done,
        Ok(bytes) => {
            println!("{}: extended by {bytes} bytes to the end that its superblock names", file.display());
            End::Done
        }
        Err(error) => {
            eprintln!("hyperslab: {}: {error}", file.display());
            End::Failed
        }
    }
}
