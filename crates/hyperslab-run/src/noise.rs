//! What disturbs the figures of a case, and what to do about it.

use crate::rank_balance::RankBalance;
use crate::results::Repetition;
use crate::statistics::Spread;

/// Observed times below this are mostly the scheduler's and the clock's.
const SHORT: f64 = 5e-3;
/// A first repetition so many times slower than the others was not warm.
const FIRST: f64 = 1.5;
/// A middle half wider than this part of the median is unsteady.
const UNSTEADY: f64 = 0.1;
/// The usual limit of the modified z-score.
const OUTLIER: f64 = 3.5;
/// Deviations below this part of the median are no outliers, however alike the other repetitions are.
const FLOOR: f64 = 0.005;
/// A rank so many times slower than the one in the middle is a laggard.
const LAGGARD: f64 = 1.5;

/// What to know about these repetitions. `take_turns`: the format lets one rank at a time in, so that ranks differ by
/// the luck of the queue.
pub(crate) fn warnings(repetitions: &[Repetition], take_turns: bool) -> Vec<String> {
    let times: Vec<f64> = repetitions.iter().map(Repetition::observed).collect();
    if times.is_empty() {
        return Vec::new();
    }
    if Spread::of(times.iter().copied()).median < SHORT {
        // Everything else would only say the same in other words.
        return vec![
            "runs took less than 5 ms, too short for steady figures: use larger extents or more time steps".into(),
        ];
    }
    let mut warnings = Vec::new();
    let first_is_slow = is_first_slow(&times);
    if first_is_slow {
        warnings.push(
            "the first repetition was much slower than the others: a larger --warm-up leaves it out of the figures"
                .into(),
        );
    }
    let skipped = usize::from(first_is_slow);
    warnings.extend(outliers(&times[skipped..], skipped));
    warnings.extend(unsteady(&times[skipped..]));
    if !take_turns {
        warnings.extend(laggard(repetitions));
    }
    warnings
}

fn is_first_slow(times: &[f64]) -> bool {
    let Some((first, rest)) = times.split_first() else { return false };
    let rest = Spread::of(rest.iter().copied());
    rest.count >= 2 && *first > FIRST * rest.median && *first > rest.max
}

/// Repetitions far from the others, by their distance from the median in units of the median distance; neither is
/// moved by the outliers themselves.
fn outliers(times: &[f64], skipped: usize) -> Option<String> {
    if times.len() < 5 {
        return None;
    }
    let median = Spread::of(times.iter().copied()).median;
    let deviation = Spread::of(times.iter().map(|time| (time - median).abs())).median.max(FLOOR * median);
    // 0.6745 makes the score that of a normal distribution.
    let is_outlier = |time: &f64| 0.6745 * (time - median).abs() / deviation > OUTLIER;
    let numbers: Vec<String> = times
        .iter()
        .enumerate()
        .filter(|(_, time)| is_outlier(time))
        .map(|(index, _)| (index + skipped + 1).to_string())
        .collect();
    if numbers.is_empty() {
        return None;
    }
    let shown = numbers.iter().take(10).cloned().collect::<Vec<_>>().join(", ");
    let more = if numbers.len() > 10 { ", ..." } else { "" };
    Some(format!(
        "{} of {} repetitions lie far from the others (number {shown}{more}): look for other programs that use the \
         machine or its storage, and go by the median",
        numbers.len(),
        times.len() + skipped,
    ))
}

fn unsteady(times: &[f64]) -> Option<String> {
    let spread = Spread::of(times.iter().copied());
    (spread.count >= 4 && spread.q3 - spread.q1 > UNSTEADY * spread.median).then(|| {
        "the middle half of the repetitions spreads over more than 10 % of the median: stop other programs, use more \
         repetitions, or larger data"
            .into()
    })
}

fn laggard(repetitions: &[Repetition]) -> Option<String> {
    let ranks = RankBalance::ordered(repetitions);
    let (slowest, others) = ranks.split_last()?;
    let middle = Spread::of(others.iter().map(|rank| rank.own)).median;
    (middle > 0.0 && slowest.own > LAGGARD * middle).then(|| {
        format!(
            "rank {} spent {:.1} times as long in its calls as the ranks in the middle: compare its part of the data and \
             its operations (--samples lists every call)",
            slowest.rank,
            slowest.own / middle
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measure::RankMeasurement;

    /// One rank per inner number; each is its only time.
    fn repetitions(times: &[&[f64]]) -> Vec<Repetition> {
        let rank =
            |(rank, &time): (usize, &f64)| RankMeasurement { rank, observed: time, raw: time, ..Default::default() };
        let repetition =
            |ranks: &&[f64]| Repetition { resident_before: None, ranks: ranks.iter().enumerate().map(rank).collect() };
        times.iter().map(repetition).collect()
    }

    fn of(times: &[f64]) -> String {
        let each: Vec<&[f64]> = times.iter().map(std::slice::from_ref).collect();
        warnings(&repetitions(&each), false).join("\n")
    }

    #[test]
    fn steady_figures_need_no_words() {
        assert_eq!(of(&[]), "");
        assert_eq!(of(&[1.0]), "");
        assert_eq!(of(&[1.0, 1.02, 0.99, 1.01, 1.0, 1.03]), "");
        assert_eq!(of(&[1.0, 1.0, 1.0, 1.0, 1.0, 1.001]), "", "exactly equal ones make no outlier of the next");
    }

    #[test]
    fn each_disturbance_is_named_with_its_remedy() {
        for (times, words) in [
            (&[0.001, 0.5, 0.001][..], "larger extents"),
            (&[2.0, 1.0, 1.01, 0.99], "--warm-up"),
            (&[1.0, 1.01, 0.99, 1.0, 3.0, 1.01], "1 of 6 repetitions lie far from the others (number 5)"),
            (&[1.0, 1.3, 0.8, 1.2, 0.9, 1.1], "middle half"),
        ] {
            let said = of(times);
            assert!(said.contains(words), "{times:?}: {said}");
            assert_eq!(said.lines().count(), 1, "{times:?}: {said}");
        }
        // The slow start is said once, and is no outlier besides.
        assert_eq!(of(&[5.0, 1.0, 1.01, 0.99, 1.0, 1.02]).lines().count(), 1);
        let both = of(&[5.0, 1.0, 1.01, 0.99, 1.0, 1.02, 4.0]);
        assert!(both.contains("number 7") && both.contains("--warm-up"), "{both}");
    }

    #[test]
    fn a_laggard_is_found_unless_ranks_take_turns() {
        let uneven = repetitions(&[&[1.0, 1.1, 2.0], &[1.1, 1.0, 2.02]]);
        let said = warnings(&uneven, false).join("\n");
        assert!(said.contains("rank 2 spent 1.9 times"), "{said}");
        assert!(warnings(&uneven, true).is_empty());
        assert!(warnings(&repetitions(&[&[1.0, 1.4]]), false).is_empty());
    }

    #[test]
    fn ranks_are_ordered_by_their_median() {
        let figures = RankBalance::ordered(&repetitions(&[&[3.0, 1.0], &[3.0, 9.0], &[3.0, 1.5]]));
        assert_eq!(figures.iter().map(|f| (f.rank, f.own)).collect::<Vec<_>>(), [(1, 1.5), (0, 3.0)]);
    }
}
