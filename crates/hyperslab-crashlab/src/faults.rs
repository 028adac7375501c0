//! Programs that meet a full disk, a full log directory or a call that fails, and are then replayed as all others. What
//! had returned without an error is promised all the same.

use crate::campaign::{each_image, images_of, record_with};
use crate::checker::Program;
use crate::report::CaseTally;
use crate::subject::Subject;
use crate::workshop::Workshop;
use anyhow::Result;

/// One program with a fault that follows from its seed.
pub fn faults(
    workshop: &mut Workshop<'_>,
    subject: Subject,
    program: Program,
    _: u64,
    tally: &mut CaseTally,
) -> Result<()> {
    let nth = 2 + program.seed * 7 % 40;
    let data = workshop.data();
    let container = workshop.container(0);
    let kinds = [
        format!("path={},call=write,from={nth},fault=ENOSPC", data.display()),
        format!("path={}/hyperslab-,call=write,from={nth},fault=ENOSPC", data.display()),
        format!("path={},call=write,from={},fault=ENOSPC", workshop.logs().display(), 1 + nth / 8),
        format!("path={},call=write,nth={nth},fault=EIO", container.display()),
        format!("path={},call=sync,nth={},fault=EIO", data.display(), 1 + nth / 8),
        format!("path={},call=truncate,nth={},fault=EIO", data.display(), 1 + nth / 8),
        format!("path={},call=write,nth={nth},fault=short", data.display()),
        format!("path={},call=open,nth={},fault=EACCES", data.display(), 2 + nth / 8),
        format!("path={},call=unlink,nth={},fault=EIO", data.display(), 1 + nth / 16),
    ];
    let fault = &kinds[program.seed as usize % kinds.len()];
    let recorded = record_with(workshop, subject, program, Some(fault))?;
    // A journal that cannot be made is told, and nothing is promised from then on.
    if recorded.said.contains("not safe from kills") {
        return Ok(());
    }
    let shown = fault.replace(&format!("{}", data.display()), "DATA");
    let logs = workshop.logs();
    each_image(&recorded, &logs, |disk, number, progress| {
        // Every third image: what matters here is what programs do after the fault.
        if progress.acked < 0 || (number % 3 != 0 && number < recorded.events.len()) {
            return Ok(true);
        }
        disk.place(&workshop.data())?;
        let replay = format!("{} --fault {shown}", images_of(subject, program, number, progress));
        tally.count(&workshop.case(subject, program, progress, replay)?);
        Ok(true)
    })
}
