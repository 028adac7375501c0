//! A recorded workload with another number of ranks, where its decomposition is regular.
//!
//! Regular means that call k of rank r is that of rank 0, moved by r equal steps along one dimension that ranks divide into
//! equal parts, once or in turns. Every rank keeps its bytes; arrays grow or shrink along that dimension.

use hyperslab_core::workload::{Step, StepSource, Steps, Workload};
use hyperslab_core::{Error, Result, Selection};
use std::collections::HashMap;
use std::sync::Arc;

/// Steps of all ranks together that are compared.
const MOST_STEPS: u64 = 50_000_000;

/// `workload` for `ranks` ranks; refused where it is not known what other ranks would do.
pub fn rescaled(workload: &Workload, ranks: usize) -> Result<Workload> {
    let recorded = workload.header.ranks;
    if ranks == recorded {
        return Ok(workload.clone());
    }
    if ranks == 0 || recorded < 2 {
        return Err(irregular(workload, "one rank does not tell what others would do".into()));
    }
    let divided = check(workload)?;
    let mut header = workload.header.clone();
    header.ranks = ranks;
    for (number, dimension) in divided {
        let spec = &mut header.arrays[number as usize].spec;
        if spec.max_shape.is_some() {
            return Err(irregular(workload, format!("array {number} may grow")));
        }
        let mut shape = spec.shape.clone();
        let part = shape[dimension] / recorded as u64;
        shape[dimension] =
            part.checked_mul(ranks as u64).ok_or_else(|| irregular(workload, "arrays of 2^64 elements".into()))?;
        spec.shape = shape;
    }
    Workload::new(header, Arc::new(Rescaled { of: workload.clone(), ranks: ranks as u64 }))
}

fn irregular(workload: &Workload, why: String) -> Error {
    let ranks = workload.header.ranks;
    Error::unsupported(
        "change the number of ranks",
        format!("which of the steps of {ranks} ranks others would take is not known: {why}"),
    )
    .hint("simulate it with its own number of ranks, or the kernel or workflow that it was recorded from")
}

/// How the ranks of a call lie beside each other: the dimension, and elements from one rank to the next. `None`: all the same.
fn distance(first: &Selection, second: &Selection) -> Option<Option<(usize, u64)>> {
    let (Some((a, a_end)), Some((b, b_end))) = (first.bounds(), second.bounds()) else {
        return (first.is_empty() && second.is_empty()).then_some(None);
    };
    let moved: Vec<usize> = (0..a.len()).filter(|at| a[*at] != b[*at]).collect();
    match moved.as_slice() {
        [] => (a_end == b_end).then_some(None),
        [at] => Some(Some((*at, b[*at].checked_sub(a[*at])?))),
        _ => None,
    }
}

fn moved(selection: &Selection, dimension: usize, by: i64) -> Result<Selection> {
    let mut all = vec![0; selection.rank()];
    all[dimension] = by;
    selection.shifted(&all)
}

fn parts(step: &Step) -> Option<(u32, &Selection)> {
    match step {
        Step::Write { slot, selection, .. } | Step::Read { slot, selection, .. } => Some((*slot, selection)),
        _ => None,
    }
}

/// The arrays that ranks divide, with the dimension; refuses what is not regular.
fn check(workload: &Workload) -> Result<HashMap<u32, usize>> {
    let ranks = workload.header.ranks;
    let bad = |why: String| irregular(workload, why);
    let mut all: Vec<Steps<'_>> = (0..ranks).map(|rank| workload.steps(rank)).collect::<Result<_>>()?;
    let mut slots: HashMap<u32, u32> = HashMap::new();
    let mut divided: HashMap<u32, usize> = HashMap::new();
    let (mut number, mut looked) = (0_u64, 0_u64);
    loop {
        let mut steps: Vec<Option<Step>> = Vec::with_capacity(ranks);
        for rank in &mut all {
            steps.push(rank.next().transpose()?);
        }
        if steps.iter().all(Option::is_none) {
            return Ok(divided);
        }
        let Some(steps) = steps.into_iter().collect::<Option<Vec<Step>>>() else {
            return Err(bad("some ranks take more steps than others".into()));
        };
        (number, looked) = (number + 1, looked + ranks as u64);
        if looked > MOST_STEPS {
            return Err(bad(format!("it has more than {MOST_STEPS} steps")));
        }
        match &steps[0] {
            Step::Create { slot, array, .. } | Step::Open { slot, array, .. } => {
                slots.insert(*slot, *array);
            }
            Step::Resize { .. } => return Err(bad("arrays change their extents".into())),
            // Ranks compute for times of their own.
            Step::Compute { .. } if steps.iter().all(|step| matches!(step, Step::Compute { .. })) => continue,
            _ => {}
        }
        let Some((slot, first)) = parts(&steps[0]) else {
            if steps.iter().any(|step| step != &steps[0]) {
                return Err(bad(format!("step {number} is not the same on all ranks")));
            }
            continue;
        };
        let array =
            *slots.get(&slot).ok_or_else(|| bad(format!("step {number} is about an array that nobody opened")))?;
        let shape = &workload
            .header
            .arrays
            .get(array as usize)
            .ok_or_else(|| bad(format!("there is no array {array}")))?
            .spec
            .shape;
        let found =
            parts(&steps[1]).filter(|(other, _)| *other == slot).and_then(|(_, second)| distance(first, second));
        let found =
            found.ok_or_else(|| bad(format!("in step {number} ranks do not follow each other along one dimension")))?;
        for (rank, step) in steps.iter().enumerate() {
            let same = match (parts(step), found) {
                (Some((other, selection)), Some((dimension, by))) => {
                    other == slot && *selection == moved(first, dimension, (by * rank as u64) as i64)?
                }
                (Some((other, selection)), None) => other == slot && selection == first,
                (None, _) => false,
            };
            if !same {
                return Err(bad(format!("in step {number} the part of rank {rank} is not like that of rank 0")));
            }
        }
        let Some((dimension, by)) = found else { continue };
        if divided.insert(array, dimension).is_some_and(|known| known != dimension) {
            return Err(bad(format!("array {array} is divided along two dimensions")));
        }
        let (begin, end) = first.bounds().map_or((0, 0), |(begin, end)| (begin[dimension], end[dimension]));
        let turn = by.saturating_mul(ranks as u64);
        let fits = shape[dimension].is_multiple_of(turn.max(1)) && begin % turn.max(1) + (end - begin) <= by;
        if !fits {
            return Err(bad(format!(
                "in step {number} ranks do not divide {} elements into equal parts",
                shape[dimension]
            )));
        }
    }
}

/// The steps of rank 0, moved.
#[derive(Debug)]
struct Rescaled {
    of: Workload,
    ranks: u64,
}

impl Rescaled {
    fn step(&self, rank: u64, first: Step, second: &Step) -> Result<Step> {
        let Some(Some((dimension, by))) = parts(&first).zip(parts(second)).and_then(|(a, b)| distance(a.1, b.1)) else {
            return Ok(first);
        };
        let turn = by * self.of.header.ranks as u64;
        let mut first = first;
        if let Step::Write { selection, .. } | Step::Read { selection, .. } = &mut first {
            let begin = selection.bounds().map_or(0, |(begin, _)| begin[dimension]);
            let turns = begin / turn.max(1);
            let at = turns * by * self.ranks + begin % turn.max(1) + rank * by;
            *selection = moved(selection, dimension, at as i64 - begin as i64)?;
        }
        Ok(first)
    }
}

impl StepSource for Rescaled {
    fn steps(&self, rank: usize) -> Result<Steps<'_>> {
        let both = self.of.steps(0)?.zip(self.of.steps(1)?);
        Ok(Box::new(both.map(move |(first, second)| self.step(rank as u64, first?, &second?))))
    }
}
