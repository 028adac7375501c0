//! Splits a selection into MPI requests: the file bytes of each call.

use crate::posix::transfer::Pieces;
use hyperslab_core::{ElementPiece, Run, Runs};
use smallvec::SmallVec;

/// Maximum number of runs per request, which bounds the memory for its datatype.
const RUNS: usize = 1 << 16;

/// The runs of elements, or of some fields of them.
#[derive(Debug, Clone)]
pub(super) struct FileRuns<'a> {
    runs: Runs<'a>,
    element: u64,
    /// Fields to transfer, in element order; empty for complete elements.
    fields: SmallVec<[ElementPiece; 2]>,
    current: Option<Run>,
    next_field: usize,
}

impl<'a> FileRuns<'a> {
    pub fn whole(runs: Runs<'a>) -> Self {
        Self { runs, element: 0, fields: SmallVec::new(), current: None, next_field: 0 }
    }

    /// `fields` must not overlap.
    pub fn fields(runs: Runs<'a>, element: u64, mut fields: SmallVec<[ElementPiece; 2]>) -> Self {
        fields.sort_by_key(|field| field.element);
        Self { runs, element, fields, current: None, next_field: 0 }
    }
}

impl Iterator for FileRuns<'_> {
    type Item = (Run, ());

    fn next(&mut self) -> Option<Self::Item> {
        if self.fields.is_empty() {
            return self.runs.next().map(|run| (run, ()));
        }
        if self.next_field == self.fields.len() {
            self.next_field = 0;
            self.current = self
                .current
                .map(|run| Run { offset: run.offset + self.element, len: run.len - self.element })
                .filter(|run| run.len > 0);
        }
        if self.current.is_none() {
            self.current = Some(self.runs.next()?);
        }
        let run = self.current?;
        let field = self.fields[self.next_field];
        self.next_field += 1;
        Some((Run { offset: run.offset + field.element, len: field.len }, ()))
    }
}

/// Size limits of requests.
#[derive(Debug, Clone, Copy)]
pub(super) struct RequestLimits {
    /// Capacity of memory per fill, in bytes.
    pub fill: u64,
    /// Bytes per call.
    pub call: u64,
    /// Whether one call may cover many runs by a file view.
    pub view: bool,
}

/// Iterator over the requests of a transfer.
#[derive(Debug, Clone)]
pub(super) struct Requests<'a> {
    pieces: Pieces<FileRuns<'a>, ()>,
    limits: RequestLimits,
    /// Bytes of later fills.
    left: u64,
    /// Bytes of the current fill, and how many of them are done.
    fill: u64,
    at: u64,
    group: Vec<Run>,
}

/// One call: bytes `at..at + len` of a fill of `fill` bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Request {
    pub fill: u64,
    pub at: u64,
    pub len: u64,
}

impl<'a> Requests<'a> {
    /// The requests for `runs` of `total` bytes.
    pub fn new(runs: FileRuns<'a>, total: u64, limits: RequestLimits) -> Self {
        Self { pieces: Pieces::new(runs), limits, left: total, fill: 0, at: 0, group: Vec::new() }
    }

    /// The next request; its file bytes are in [`Requests::runs`].
    pub fn advance(&mut self) -> Option<Request> {
        if self.at == self.fill {
            self.fill = self.left.min(self.limits.fill);
            self.left -= self.fill;
            self.at = 0;
        }
        self.group.clear();
        let mut len = 0;
        let most = (self.fill - self.at).min(self.limits.call);
        let most_runs = if self.limits.view { RUNS } else { 1 };
        while self.group.len() < most_runs
            && let Some((run, ())) = self.pieces.next_up_to(most - len)
        {
            len += run.len;
            self.group.push(run);
        }
        let request = Request { fill: self.fill, at: self.at, len };
        self.at += len;
        (len > 0).then_some(request)
    }

    /// The runs of the last request, in increasing order.
    pub fn runs(&self) -> &[Run] {
        &self.group
    }

    /// Whether one request suffices. Valid before the first one.
    pub fn fits_one_call(&self) -> bool {
        self.left <= self.limits.fill.min(self.limits.call)
    }

    /// Everything as one request.
    pub fn whole(&mut self) -> Request {
        let len = std::mem::take(&mut self.left);
        (self.fill, self.at) = (len, len);
        Request { fill: len, at: 0, len }
    }

    /// Number of remaining requests, and whether any has several runs.
    pub fn count(&self) -> (u64, bool) {
        let mut requests = self.clone();
        let (mut calls, mut several) = (0, false);
        while requests.advance().is_some() {
            calls += 1;
            several |= requests.group.len() > 1;
        }
        (calls, several)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use hyperslab_core::Selection;

    fn all(mut requests: Requests<'_>) -> Vec<(Request, Vec<Run>)> {
        let count = requests.count().0;
        let mut out = Vec::new();
        while let Some(request) = requests.advance() {
            out.push((request, requests.runs().to_vec()));
        }
        assert_eq!(out.len() as u64, count);
        out
    }

    #[test]
    fn calls_cover_every_byte_once_whatever_the_limits() {
        let selection = Selection::strided(&[0, 1], &[2, 4], &[3, 2], &[1, 2]).unwrap();
        let runs = || selection.runs(&[6, 8], 4).unwrap();
        let expected: Vec<u64> = runs().flat_map(|run| run.offset..run.end()).collect();
        for (fill, call, view) in
            [(1 << 20, 1 << 20, true), (8, 1 << 20, true), (12, 5, true), (20, 3, false), (48, 1 << 9, false)]
        {
            let limits = RequestLimits { fill, call, view };
            let requests = all(Requests::new(FileRuns::whole(runs()), expected.len() as u64, limits));
            let found: Vec<u64> =
                requests.iter().flat_map(|(_, runs)| runs.iter().flat_map(|r| r.offset..r.end())).collect();
            assert_eq!(found, expected, "{limits:?}");
            for (request, runs) in &requests {
                assert_eq!(runs.iter().map(|run| run.len).sum::<u64>(), request.len);
                assert!(
                    request.len <= call && request.at + request.len <= request.fill && request.fill <= fill,
                    "{request:?} {limits:?}"
                );
                assert!(view || runs.len() == 1);
            }
        }
        assert_eq!(
            all(Requests::new(FileRuns::whole(runs()), 48, RequestLimits { fill: 99, call: 99, view: true })).len(),
            1
        );
    }

    #[test]
    fn fields_are_runs_of_their_own() {
        let selection = Selection::dense(&[1], &[2]).unwrap();
        let piece = |element, len| ElementPiece { memory: 0, element, len };
        let fields =
            FileRuns::fields(selection.runs(&[9], 10).unwrap(), 10, SmallVec::from_slice(&[piece(7, 2), piece(1, 3)]));
        let found: Vec<(u64, u64)> = fields.map(|(run, ())| (run.offset, run.len)).collect();
        assert_eq!(found, [(11, 3), (17, 2), (21, 3), (27, 2)]);
    }

    #[test]
    fn nothing_is_no_call() {
        let nothing = Selection::empty(1);
        let requests = Requests::new(
            FileRuns::whole(nothing.runs(&[9], 1).unwrap()),
            0,
            RequestLimits { fill: 9, call: 9, view: true },
        );
        assert_eq!(requests.count(), (0, false));
    }
}
