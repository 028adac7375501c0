//! Who was in which call when: time lines of ranks, and a map of time and ranks.

use crate::input::{Call, Recording};
use serde::Serialize;

/// Pictures that are drawn: those of the recordings that took longest.
const MOST: usize = 6;
/// Ranks of one time line; more are only in the map.
const MOST_LANES: usize = 16;
/// Rows of a map; further ranks share rows.
const MOST_ROWS: usize = 64;
/// Columns of a map.
pub const COLUMNS: usize = 60;
/// Shorter pieces and gaps than this part of the whole are joined to what is beside them.
const FINEST: f64 = 1.0 / 500.0;

/// What a rank is doing, in the order of the colours.
pub const KINDS: [&str; 4] = ["transfer", "metadata", "waiting", "computing"];

/// One recording as pictures.
#[derive(Debug, Serialize)]
pub struct Activity {
    /// What was recorded.
    pub title: String,
    /// Seconds in all.
    pub seconds: f64,
    /// Of each rank: place in [`KINDS`], from and to in seconds.
    pub lanes: Vec<Vec<(usize, f64, f64)>>,
    /// Of rows of ranks: the part of each of [`COLUMNS`] pieces of time that was spent in calls, computing aside.
    pub map: Vec<Vec<f64>>,
    /// Ranks that share a row.
    pub ranks_per_row: usize,
    /// Number of ranks.
    pub ranks: usize,
}

/// The recordings that take longest, and how many others there are.
pub fn of(recordings: Vec<Recording>) -> (Vec<Activity>, usize) {
    let total = recordings.len();
    let mut all: Vec<(usize, f64, Recording)> =
        recordings.into_iter().enumerate().map(|(place, recording)| (place, end(&recording), recording)).collect();
    all.retain(|(_, end, _)| *end > 0.0 && end.is_finite());
    all.sort_by(|a, b| b.1.total_cmp(&a.1));
    all.truncate(MOST);
    all.sort_by_key(|(place, ..)| *place);
    let shown: Vec<Activity> = all.into_iter().map(|(_, end, recording)| picture(recording, end)).collect();
    let left_out = total - shown.len();
    (shown, left_out)
}

fn end(recording: &Recording) -> f64 {
    recording.ranks.iter().flatten().map(|call| call.start + call.seconds).fold(0.0, f64::max)
}

fn kind(operation: &str) -> usize {
    match operation {
        "write" | "read" | "flush" => 0,
        "barrier" => 2,
        "compute" => 3,
        _ => 1,
    }
}

fn picture(recording: Recording, seconds: f64) -> Activity {
    let ranks = recording.ranks.len();
    let ranks_per_row = ranks.div_ceil(MOST_ROWS).max(1);
    let map = recording.ranks.chunks(ranks_per_row).map(|rows| row(rows, seconds)).collect();
    let lanes = recording.ranks.iter().take(MOST_LANES).map(|calls| lane(calls, seconds)).collect();
    Activity { title: recording.title, seconds, lanes, map, ranks_per_row, ranks }
}

/// Pieces of one colour, small ones joined.
fn lane(calls: &[Call], total: f64) -> Vec<(usize, f64, f64)> {
    let finest = total * FINEST;
    let mut pieces: Vec<(usize, f64, f64)> = Vec::new();
    for call in calls {
        let (kind, from, to) = (kind(&call.operation), call.start, call.start + call.seconds);
        match pieces.last_mut() {
            Some((last, _, end)) if *last == kind && from - *end < finest => *end = end.max(to),
            Some((last, begin, end)) if to - from < finest && from - *end < finest && to - *begin < finest => {
                if to - from > *end - *begin {
                    *last = kind;
                }
                *end = end.max(to);
            }
            _ => pieces.push((kind, from, to)),
        }
    }
    pieces.into_iter().map(|(kind, from, to)| (kind, exact(from), exact(to))).collect()
}

/// To the nanosecond: what is behind that is no measurement.
fn exact(seconds: f64) -> f64 {
    (seconds * 1e9).round() / 1e9
}

fn row(ranks: &[Vec<Call>], total: f64) -> Vec<f64> {
    let width = total / COLUMNS as f64;
    let mut spent = vec![0.0; COLUMNS];
    for call in ranks.iter().flatten().filter(|call| call.operation != "compute") {
        let (from, to) = (call.start, call.start + call.seconds);
        let first = ((from / width) as usize).min(COLUMNS - 1);
        for (column, time) in spent.iter_mut().enumerate().skip(first) {
            let (begin, end) = (column as f64 * width, (column + 1) as f64 * width);
            if begin >= to {
                break;
            }
            *time += to.min(end) - from.max(begin);
        }
    }
    let whole = width * ranks.len() as f64;
    spent.into_iter().map(|time: f64| ((time / whole).clamp(0.0, 1.0) * 1000.0).round() / 1000.0).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_is_in_the_columns_where_it_was_spent() {
        let call = |operation: &str, start, seconds| Call { operation: operation.into(), start, seconds };
        let calls = vec![call("write", 0.0, 3.0), call("compute", 3.0, 2.0), call("barrier", 5.0, 1.0)];
        let recording = Recording { title: "t".into(), case: None, ranks: vec![calls] };
        let (shown, left) = of(vec![recording]);
        assert_eq!(left, 0);
        assert_eq!(shown[0].seconds, 6.0);
        assert_eq!(shown[0].lanes[0], [(0, 0.0, 3.0), (3, 3.0, 5.0), (2, 5.0, 6.0)]);
        let row = &shown[0].map[0];
        assert!(row[..30].iter().all(|part| *part == 1.0) && row[30..50].iter().all(|part| *part == 0.0), "{row:?}");
        assert!(row[50..].iter().all(|part| *part == 1.0), "{row:?}");
    }
}
