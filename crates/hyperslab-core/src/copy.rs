//! Gather and scatter between a [`MemoryView`] and packed elements, in pieces of any size.

use crate::{Datatype, ElementPlan, MemoryView, MemoryViewMut, Result, Run};

/// Reads the elements of a view in order, a buffer-full at a time.
pub struct Gather<'a> {
    data: &'a [u8],
    cursor: Cursor<'a>,
}

/// Writes packed elements into a view in order, a buffer-full at a time.
pub struct Scatter<'a> {
    data: &'a mut [u8],
    cursor: Cursor<'a>,
}

/// Where the next element lies in memory.
struct Cursor<'a> {
    plan: ElementPlan,
    runs: Box<dyn Iterator<Item = Run> + Send + 'a>,
    run: Run,
}

impl Cursor<'_> {
    /// Up to `limit` elements that follow each other in memory: (byte offset, elements).
    fn take(&mut self, limit: u64) -> Option<(usize, usize)> {
        if self.run.len == 0 {
            self.run = self.runs.next()?;
        }
        let elements = (self.run.len / self.plan.stride).min(limit);
        let offset = self.run.offset;
        self.run.offset += elements * self.plan.stride;
        self.run.len -= elements * self.plan.stride;
        Some((offset as usize, elements as usize))
    }
}

impl<'a> Gather<'a> {
    /// Checks the view against `elements` elements of `dtype`.
    pub fn new(view: MemoryView<'a>, dtype: &Datatype, elements: u64) -> Result<Self> {
        view.check(dtype, elements)?;
        let plan = view.layout.plan(dtype)?;
        let stride = plan.stride;
        let runs: Box<dyn Iterator<Item = Run> + Send + 'a> = match &view.layout.within {
            Some(within) => Box::new(within.selection.runs(&within.shape, stride)?),
            None => Box::new(std::iter::once(Run { offset: 0, len: elements * stride }).filter(|r| r.len > 0)),
        };
        Ok(Self { data: view.data, cursor: Cursor { plan, runs, run: Run { offset: 0, len: 0 } } })
    }

    /// Fills `packed`, whose length is a multiple of the element size, with the next elements.
    /// Bytes of elements that no member covers stay as they are. Returns the number of elements.
    pub fn next_into(&mut self, packed: &mut [u8]) -> usize {
        let plan = self.cursor.plan.clone();
        let (element, stride) = (plan.element as usize, plan.stride as usize);
        let mut done = 0;
        let total = packed.len() / element;
        while done < total {
            let Some((offset, n)) = self.cursor.take((total - done) as u64) else { break };
            let from = &self.data[offset..offset + n * stride];
            let to = &mut packed[done * element..(done + n) * element];
            if plan.is_identity() {
                to.copy_from_slice(from);
            } else {
                for piece in &plan.pieces {
                    let (m, e, len) = (piece.memory as usize, piece.element as usize, piece.len as usize);
                    for (s, d) in from.chunks_exact(stride).zip(to.chunks_exact_mut(element)) {
                        d[e..e + len].copy_from_slice(&s[m..m + len]);
                    }
                }
            }
            done += n;
        }
        done
    }
}

impl<'a> Scatter<'a> {
    /// Checks the view against `elements` elements of `dtype`.
    pub fn new(view: MemoryViewMut<'a>, dtype: &Datatype, elements: u64) -> Result<Self> {
        view.check(dtype, elements)?;
        let plan = view.layout.plan(dtype)?;
        let stride = plan.stride;
        let runs: Box<dyn Iterator<Item = Run> + Send + 'a> = match &view.layout.within {
            Some(within) => Box::new(within.selection.runs(&within.shape, stride)?),
            None => Box::new(std::iter::once(Run { offset: 0, len: elements * stride }).filter(|r| r.len > 0)),
        };
        Ok(Self { data: view.data, cursor: Cursor { plan, runs, run: Run { offset: 0, len: 0 } } })
    }

    /// Stores the next packed elements. Returns their number.
    pub fn next_from(&mut self, packed: &[u8]) -> usize {
        let plan = self.cursor.plan.clone();
        let (element, stride) = (plan.element as usize, plan.stride as usize);
        let mut done = 0;
        let total = packed.len() / element;
        while done < total {
            let Some((offset, n)) = self.cursor.take((total - done) as u64) else { break };
            let to = &mut self.data[offset..offset + n * stride];
            let from = &packed[done * element..(done + n) * element];
            if plan.is_identity() {
                to.copy_from_slice(from);
            } else {
                for piece in &plan.pieces {
                    let (m, e, len) = (piece.memory as usize, piece.element as usize, piece.len as usize);
                    for (d, s) in to.chunks_exact_mut(stride).zip(from.chunks_exact(element)) {
                        d[m..m + len].copy_from_slice(&s[e..e + len]);
                    }
                }
            }
            done += n;
        }
        done
    }
}
