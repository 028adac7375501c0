//! Finds published figures by words.

use hyperslab_sim::{PublishedClaim, published_claims};

/// What finds a line: the work, the beginning of the place, words of the workload (or of where it ran), of the metric and of
/// the condition.
#[derive(Debug, Clone, Copy)]
pub struct Key(pub &'static str, pub &'static str, pub &'static str, pub &'static str, pub &'static str);

/// The first line that fits.
pub fn find(key: Key) -> Option<&'static PublishedClaim> {
    published_claims().iter().find(|row| {
        row.source == key.0
            && row.place.starts_with(key.1)
            && (row.workload.contains(key.2) || row.system.contains(key.2))
            && row.metric.contains(key.3)
            && row.condition.contains(key.4)
    })
}

#[cfg(test)]
mod tests {
    use super::super::studies::STUDIES;
    use super::*;

    #[test]
    fn every_claim_of_a_study_is_in_the_table() {
        for study in STUDIES {
            assert!(!study.claims.is_empty() && !study.trials.is_empty(), "{}", study.name);
            for claim in study.claims {
                assert!(find(claim.published).is_some(), "{}: {:?}", study.name, claim.published);
                for side in [&claim.before, &claim.after] {
                    let known = study.trials.iter().any(|trial| trial.name == side.trial);
                    assert!(known, "{}: {}", study.name, side.trial);
                }
            }
        }
    }
}
