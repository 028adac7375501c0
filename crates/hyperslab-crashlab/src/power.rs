//! Loss of power: of what was not synced, any part may be missing.

use crate::checker::Program;
use crate::report::Tally;
use crate::subject::Subject;
use crate::workshop::Workshop;
use anyhow::Result;

/// Images of one program.
pub fn losses(_: &mut Workshop<'_>, _: Subject, _: Program, _: u64, _: &mut Tally) -> Result<()> {
    anyhow::bail!("loss of power is not laid out yet")
}
