//! Cases that do the same work on different stacks.

use crate::cases::CaseRow;
use crate::words::count;
use serde::Serialize;
use std::collections::BTreeMap;

/// Groups that get pictures of their own; the others are in the table.
const MOST: usize = 16;
/// Rows of one picture.
const MOST_ROWS: usize = 24;

/// Cases to be set against each other.
#[derive(Debug, Clone, Serialize)]
pub struct Group {
    /// What they do.
    pub title: String,
    /// More about it.
    pub about: String,
    /// Whether they do the same work, so that one of them can be the fastest.
    pub comparable: bool,
    /// Places in the list of cases, fastest first if comparable.
    pub cases: Vec<usize>,
    /// How many times slower the second is; absent if there is none.
    pub lead: Option<f64>,
    /// Whether the intervals of the first two overlap.
    pub close: bool,
}

/// The groups, and how many more there are.
pub fn of(cases: &[CaseRow]) -> (Vec<Group>, usize) {
    let mut by_work: BTreeMap<_, Vec<usize>> = BTreeMap::new();
    for (index, case) in cases.iter().enumerate().filter(|(_, case)| case.is_good() && case.bytes > 0) {
        let key = (case.run, &case.benchmark, &case.workload, &case.cache, case.ranks);
        by_work.entry(key).or_default().push(index);
    }
    let mut groups: Vec<Group> = Vec::new();
    let several = cases.iter().any(|case| case.run > 1);
    for ((run, benchmark, workload, cache, ranks), mut members) in by_work {
        members.sort_by(|a, b| cases[*b].rate.median.total_cmp(&cases[*a].rate.median));
        let [first, second, ..] = members.as_slice() else { continue };
        let (first, second) = (&cases[*first].rate, &cases[*second].rate);
        let file = if several { format!("file {run}: ") } else { String::new() };
        let lead = first.median / second.median;
        let close = first.count < 2 || first.reach()[0] <= second.reach()[1];
        groups.push(Group {
            title: format!("{file}{benchmark}, {cache}, {}", count(ranks as usize, "rank", "ranks")),
            about: workload.clone(),
            comparable: true,
            lead: lead.is_finite().then_some(lead),
            close,
            cases: members,
        });
    }
    if groups.is_empty() {
        groups.extend(plain(cases));
    }
    // The order of the first file, as the program ran them.
    groups.sort_by_key(|group| group.cases.iter().min().copied());
    let left_out = groups.len().saturating_sub(MOST);
    if left_out > 0 {
        let width = |group: &Group| {
            let rate = |place: Option<&usize>| place.map_or(0.0, |case| cases[*case].rate.median);
            rate(group.cases.first()) / rate(group.cases.last())
        };
        // Where stacks differ most there is most to see.
        groups.sort_by(|a, b| width(b).total_cmp(&width(a)));
        groups.truncate(MOST);
        groups.sort_by_key(|group| group.cases.iter().min().copied());
    }
    groups.iter_mut().for_each(|group| group.cases.truncate(MOST_ROWS));
    (groups, left_out)
}

/// Without cases that do the same work, all of them as they are.
fn plain(cases: &[CaseRow]) -> Option<Group> {
    let members: Vec<usize> =
        cases.iter().enumerate().filter(|(_, case)| case.is_good() && case.bytes > 0).map(|(index, _)| index).collect();
    (!members.is_empty()).then(|| Group {
        title: "All cases".into(),
        about: "Different work: none of them is to be compared with another.".into(),
        comparable: false,
        cases: members,
        lead: None,
        close: false,
    })
}
