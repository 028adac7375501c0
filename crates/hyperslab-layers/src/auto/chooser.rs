//! Chooses the strategy of the next epoch from forecasts; pure arithmetic.

use super::choice::{Choice, Each};
use super::history::Forecast;
use std::fmt;

/// Minimum relative gain for changing to a strategy that buffers more: forecasts are no better than that, and background
/// threads may slow computing down.
const WORTH_CHANGING: f64 = 0.02;
/// Epochs within which a change must pay for draining what is buffered.
const PAID_BACK: f64 = 16.0;
/// Epochs before a strategy with an almost equal forecast is tried.
const BEFORE_TRYING: u64 = 2;
/// Relative excess that counts as almost equal.
const PROMISING: f64 = 0.15;
/// Maximum cost of an early try, as a share of the elapsed time.
const AT_FIRST: f64 = 0.03;
/// Maximum cost of all tries, as a share of the elapsed time.
const TRYING: f64 = 0.01;
/// Allowance for the forecast error of a try, as a share of the best.
const SURPRISE: f64 = 0.25;
/// Compute time below which unmeasured strategies are not tried.
const HARDLY_ANY: f64 = 1e-3;
/// Minimum ratio of computing to copying for unmeasured strategies: first copies go to fresh memory and are slower.
const MANY_COPIES: f64 = 16.0;
/// Epochs after which a strategy may be tried again.
const AGAIN: u64 = 64;

/// The decision for an epoch.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Decision {
    pub choice: Choice,
    pub why: Reason,
    /// Expected seconds with each choice; `None` if not allowed or unknown.
    pub costs: Each<Option<f64>>,
    /// Expected excess over the best choice, in seconds.
    pub risk: f64,
}

/// The reason.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reason {
    /// The only choice.
    Only,
    /// No history; there is computing to overlap with.
    GuessBehind,
    /// No history, and hardly any computing.
    GuessWait,
    /// Shortest expected time.
    Least,
    /// No other choice is enough better.
    Kept,
    /// A try: never measured, or not recently.
    Tried,
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Only => "there is no other choice",
            Self::GuessBehind => {
                "nothing is known of this storage yet, and there is computing to hide transfers behind"
            }
            Self::GuessWait => "nothing is known of this storage yet, and there is hardly any computing to hide behind",
            Self::Least => "it should take least",
            Self::Kept => "no other would take so much less that a change pays",
            Self::Tried => "to measure it",
        })
    }
}

/// The input of a decision.
#[derive(Debug, Clone, Copy)]
pub(super) struct Situation<'a> {
    pub forecast: &'a Forecast,
    /// At least one.
    pub allowed: &'a [Choice],
    /// The present choice; `None` before the first epoch.
    pub current: Option<Choice>,
    /// Elapsed seconds since the container was opened.
    pub elapsed: f64,
    /// Estimated cost of tries so far, in seconds.
    pub risked: f64,
}

/// Chooses the strategy of the next epoch.
pub(super) fn choose(situation: &Situation<'_>) -> Decision {
    let (forecast, expected) = (situation.forecast, &situation.forecast.expected);
    let mut costs: Each<Option<f64>> = [None; 3];
    if let [only] = situation.allowed {
        return Decision { choice: *only, why: Reason::Only, costs, risk: 0.0 };
    }
    if !forecast.transfer_known {
        let enough = expected.room > (MANY_COPIES * expected.copy).max(HARDLY_ANY);
        let behind = situation.allowed.contains(&Choice::Async) && enough;
        let choice = if behind { Choice::Async } else { situation.allowed[0] };
        return Decision {
            choice,
            why: if behind { Reason::GuessBehind } else { Reason::GuessWait },
            costs,
            risk: 0.0,
        };
    }
    situation.allowed.iter().for_each(|choice| costs[choice.index()] = Some(expected.cost(*choice)));
    let cost = |choice: Choice| expected.cost(choice);
    let best = situation.allowed.iter().copied().min_by(|a, b| cost(*a).total_cmp(&cost(*b))).unwrap_or(Choice::Sync);
    let decide = |choice, why| Decision { choice, why, costs, risk: (cost(choice) - cost(best)).max(0.0) };
    if let Some(tried) = to_try(situation, best) {
        return decide(tried, Reason::Tried);
    }
    match situation.current.filter(|current| *current != best && situation.allowed.contains(current)) {
        Some(current) => {
            let gain = cost(current) - cost(best);
            // Draining now forfeits the overlap of what is buffered.
            let waits = if current == Choice::Sync { 0.0 } else { expected.behind.min(expected.room) };
            let least = if best.index() > current.index() { WORTH_CHANGING * cost(current) } else { 0.0 };
            match gain < least || gain * PAID_BACK < waits {
                true => decide(current, Reason::Kept),
                false => decide(best, Reason::Least),
            }
        }
        None => decide(best, Reason::Least),
    }
}

/// A choice to try: unmeasured, and cheap enough.
fn to_try(situation: &Situation<'_>, best: Choice) -> Option<Choice> {
    let forecast = situation.forecast;
    let least = forecast.expected.cost(best);
    let budget = TRYING * situation.elapsed - situation.risked;
    let worth = |choice: &Choice| {
        let (measured, risk) = (forecast.measured[choice.index()], forecast.expected.cost(*choice) - least);
        let promising = measured == 0
            && forecast.epochs >= BEFORE_TRYING
            && risk <= PROMISING * least
            && risk <= AT_FIRST * situation.elapsed;
        let affordable = risk + SURPRISE * least <= budget && (measured == 0 || forecast.epochs - measured >= AGAIN);
        promising || affordable
    };
    situation.allowed.iter().copied().filter(|choice| *choice != best).find(worth)
}

#[cfg(test)]
mod tests {
    use super::super::cost::Expected;
    use super::*;

    const BOTH: &[Choice] = &[Choice::Sync, Choice::Async];

    fn forecast(compute: f64, transfer: f64, copy: f64) -> Forecast {
        let (direct, behind, drain) = (transfer, transfer, transfer);
        let expected = Expected { compute, room: compute, direct, behind, copy, append: 2.0 * copy, drain };
        Forecast { expected, transfer_known: true, epochs: 20, measured: [19, 20, 20] }
    }

    fn situation(forecast: &Forecast, current: Option<Choice>) -> Situation<'_> {
        Situation { forecast, allowed: BOTH, current, elapsed: 5.0, risked: 0.0 }
    }

    #[test]
    fn the_deciding_cases() {
        for (compute, transfer, copy, right) in [
            (0.200, 0.020, 0.100, Choice::Sync),
            (0.200, 0.300, 0.040, Choice::Async),
            (0.0, 0.300, 0.040, Choice::Sync),
            (0.5, 0.1, 0.01, Choice::Async),
        ] {
            for current in [None, Some(Choice::Sync), Some(Choice::Async)] {
                let forecast = forecast(compute, transfer, copy);
                let decision = choose(&situation(&forecast, current));
                assert_eq!(decision.choice, right, "{compute} {transfer} {copy} {decision:?}");
            }
        }
    }

    #[test]
    fn before_anything_is_known_computing_decides() {
        let unknown = |pause| Forecast { transfer_known: false, epochs: 0, ..forecast(pause, 0.01, 0.01) };
        assert_eq!(choose(&situation(&unknown(0.2), None)).choice, Choice::Async);
        assert_eq!(choose(&situation(&unknown(0.1), None)).choice, Choice::Sync, "not much longer than a copy");
        assert_eq!(choose(&situation(&unknown(0.0005), None)).choice, Choice::Sync);
        let forecast = unknown(0.1);
        let log = Situation { allowed: &[Choice::Log], ..situation(&forecast, None) };
        assert_eq!((choose(&log).choice, choose(&log).why), (Choice::Log, Reason::Only));
    }

    #[test]
    fn a_small_gain_changes_nothing() {
        let close = forecast(0.1, 0.011, 0.01);
        let kept = choose(&situation(&close, Some(Choice::Sync)));
        assert_eq!((kept.choice, kept.why), (Choice::Sync, Reason::Kept));
        assert_eq!(choose(&situation(&close, None)).choice, Choice::Async);
        // Waiting holds nothing back.
        let close = forecast(0.1, 0.01, 0.011);
        assert_eq!(choose(&situation(&close, Some(Choice::Async))).choice, Choice::Sync);
        let little = forecast(0.1, 0.01, 0.0101);
        assert_eq!(choose(&situation(&little, Some(Choice::Async))).choice, Choice::Async, "less than what waits");
    }

    #[test]
    fn what_was_never_measured_is_tried_where_that_is_cheap() {
        let never = Forecast { measured: [20, 0, 0], ..forecast(0.1, 0.01, 0.02) };
        assert_eq!(choose(&situation(&never, Some(Choice::Sync))).why, Reason::Tried, "10 % more at most");
        // Nothing to hide behind, and a dear copy: not in the first second, but at last.
        let dear = Forecast { measured: [20, 0, 0], ..forecast(0.0, 0.1, 0.1) };
        assert_eq!(choose(&situation(&dear, Some(Choice::Sync))).choice, Choice::Sync);
        let later = Situation { elapsed: 60.0, ..situation(&dear, Some(Choice::Sync)) };
        assert_eq!((choose(&later).choice, choose(&later).why), (Choice::Async, Reason::Tried));
        let risked = Situation { risked: 0.6, ..later };
        assert_eq!(choose(&risked).choice, Choice::Sync, "the budget is spent");
        let lately = Forecast { measured: [20, 10, 0], ..dear };
        assert_eq!(choose(&Situation { forecast: &lately, ..later }).choice, Choice::Sync);
        let long_ago = Forecast { epochs: 100, measured: [100, 10, 0], ..dear };
        assert_eq!(choose(&Situation { forecast: &long_ago, ..later }).choice, Choice::Async);
    }

    #[test]
    fn the_log_is_a_choice_like_the_others() {
        let mut scattered = forecast(0.01, 0.5, 0.002);
        scattered.expected.drain = 0.02;
        let all = Situation { allowed: &Choice::ALL, ..situation(&scattered, Some(Choice::Sync)) };
        assert_eq!(choose(&all).choice, Choice::Log);
    }
}
