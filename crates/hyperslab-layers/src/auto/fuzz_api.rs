//! Entry point for fuzzing history files.

use super::choice::Choice;
use super::chooser::{Situation, choose};
use super::history::{History, Observed, UpcomingEpoch};
use super::history_file;
use super::request_class::RequestClass;

/// Parses a history file, decides and learns with every history in it, and returns it encoded again.
pub fn history(text: &[u8]) -> Result<Vec<u8>, String> {
    let (histories, again) = history_file::read_again(text)?;
    for mut history in histories {
        for class in [RequestClass::of(4096, true), RequestClass::of(1 << 20, true), RequestClass::of(1 << 20, false)] {
            Choice::ALL.into_iter().for_each(|choice| epoch(&mut history, class, choice));
        }
        assert!(history.is_sane(), "after learning: {history:?}");
    }
    Ok(again)
}

/// One epoch: decides and then learns.
fn epoch(history: &mut History, class: RequestClass, choice: Choice) {
    let coming = UpcomingEpoch { class, ranks: 2, request: 4096.0, pause: 0.01, copy_rate: 1e9 };
    let forecast = history.forecast(&coming);
    let allowed = &Choice::ALL;
    let decision =
        choose(&Situation { forecast: &forecast, allowed, current: Some(choice), elapsed: 1.0, risked: 0.0 });
    assert!(allowed.contains(&decision.choice) && decision.risk >= 0.0, "{decision:?}");
    history.learn(&Observed {
        choice,
        class,
        ranks: 2,
        bytes: 1e6,
        compute: 0.01,
        room: Some(0.01),
        calls: 0.02,
        hand_over: 0.001,
        behind: Some((1e6, 0.01)),
        straight: false,
        fresh: false,
    });
}
