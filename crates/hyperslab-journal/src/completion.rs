//! Checkpoints of completed writes, and closing a journal.

use super::journal::Journal;
use super::sync_mode::SyncMode;
use super::wire::Encoder;
use super::{failed, record};
use hyperslab_core::Result;
use std::sync::PoisonError;
use std::sync::atomic::Ordering;

impl Journal {
    /// Ensures that completed writes are not replayed: removes the files if all writes are completed, and appends a checkpoint
    /// record otherwise. The crate documentation says when this is needed.
    pub fn checkpoint(&self) -> Result<()> {
        self.segment_list.check_process()?;
        let mut writer = self.writer()?;
        if self.segment_list.pending() == 0 {
            self.fill(&mut writer)?;
            return self.segment_list.check();
        }
        // Without files, nothing can be replayed.
        if self.segment_list.is_given_up() {
            return Ok(());
        }
        let (sequence, before) = (writer.next, self.segment_list.first_pending(writer.next));
        let current = self.current(&mut writer)?;
        let mut out = Encoder::default();
        record::put_checkpoint(&mut out, current.segment.seed, sequence, before);
        let bytes = out.0.len() as u64;
        if self.limits.sync.gathers() {
            self.gather_meta(current, sequence, |meta| meta.raw(&out.0));
        } else if let Err(cause) = self.write_meta(current, &out.0) {
            return Err(self.undo(current, failed("append to journal", self.segment_list.files.place(), cause)));
        }
        current.meta_end += bytes;
        self.segment_list.add(current.grown(), 1, false);
        writer.next += 1;
        self.segment_list.appended.store(writer.next, Ordering::Release);
        drop(writer);
        self.write_out()?;
        match self.limits.sync {
            SyncMode::EveryWrite => self.segment_list.sync_up_to(sequence),
            _ => self.arm(sequence),
        }
    }

    /// Closes the journal. If every write is completed, removes its files and returns `true`: nothing can be replayed any
    /// more, and the container may be written without the journal. Otherwise the files stay for recovery, and this returns
    /// `false`, or fails if the batch could not be written out. Works for a failed journal too. Idempotent.
    pub fn close_and_remove(&self) -> Result<bool> {
        let mut writer = self.writer.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(committer) = &self.committer {
            committer.stop(&self.segment_list);
        }
        if !self.segment_list.is_ours() {
            (writer.current, writer.closed) = (None, true);
            return Ok(false);
        }
        self.segment_list.release_ahead();
        if self.segment_list.pending() > 0 {
            writer.closed = true;
            self.segment_list.try_write_out()?.check()?;
            if let Some(current) = writer.current.take() {
                self.give_room_back(current);
            }
            return match self.committer {
                Some(_) => self.sync().map(|()| false),
                None => Ok(false),
            };
        }
        (writer.current, writer.closed) = (None, true);
        if !writer.removed || self.segment_list.check().is_err() {
            self.segment_list.remove_all()?;
            writer.removed = true;
        }
        Ok(true)
    }
}

impl Drop for Journal {
    fn drop(&mut self) {
        // Nobody is left to tell; files that stay are found by recovery.
        let _ = self.close_and_remove();
    }
}
