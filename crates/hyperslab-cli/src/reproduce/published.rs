//! Figures that others published, with where (data/published_claims.csv): facts, cited.

use std::sync::OnceLock;

const TABLE: &str = include_str!("../../data/published_claims.csv");

/// A line of the table.
#[derive(Debug, Clone)]
pub struct Published {
    fields: Vec<String>,
}

/// What finds a line: the work, the beginning of the place, words of the workload (or of where it ran), of the metric and of
/// the condition.
#[derive(Debug, Clone, Copy)]
pub struct Key(pub &'static str, pub &'static str, pub &'static str, pub &'static str, pub &'static str);

impl Published {
    fn field(&self, place: usize) -> &str {
        self.fields.get(place).map_or("", String::as_str)
    }

    /// The work and the place in it.
    pub fn place(&self) -> String {
        format!("{} {}", self.field(0), self.field(1))
    }

    /// What was measured, where, and how much it was.
    pub fn words(&self) -> String {
        let value = self.field(6);
        let unit = match self.field(7) {
            "x" => " times",
            "ratio" => " of the time",
            other => &format!(" {other}"),
        };
        let condition = Some(self.field(5)).filter(|c| !c.is_empty()).map(|c| format!(", {c}")).unwrap_or_default();
        format!("{}, {}{condition}: {value}{unit} ({})", self.field(3), self.field(4), self.field(2))
    }
}

/// The first line that fits.
pub fn find(key: Key) -> Option<&'static Published> {
    static ALL: OnceLock<Vec<Published>> = OnceLock::new();
    let all = ALL.get_or_init(|| TABLE.lines().skip(1).map(|line| Published { fields: fields(line) }).collect());
    all.iter().find(|row| {
        row.field(0) == key.0
            && row.field(1).starts_with(key.1)
            && (row.field(3).contains(key.2) || row.field(2).contains(key.2))
            && row.field(4).contains(key.3)
            && row.field(5).contains(key.4)
    })
}

/// The fields of a line of CSV; quotes may hold commas, and doubled ones stand for themselves.
fn fields(line: &str) -> Vec<String> {
    let mut fields = vec![String::new()];
    let mut quoted = false;
    let mut letters = line.chars().peekable();
    while let Some(c) = letters.next() {
        match c {
            '"' if quoted && letters.peek() == Some(&'"') => {
                letters.next();
                fields.last_mut().into_iter().for_each(|field| field.push('"'));
            }
            '"' => quoted = !quoted,
            ',' if !quoted => fields.push(String::new()),
            c => fields.last_mut().into_iter().for_each(|field| field.push(c)),
        }
    }
    fields
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
                    assert!(
                        study.trials.iter().any(|trial| trial.name == side.trial),
                        "{}: {}",
                        study.name,
                        side.trial
                    );
                }
            }
        }
    }

    #[test]
    fn quotes_hold_commas() {
        assert_eq!(fields("a,\"b, \"\"c\"\"\",,d"), ["a", "b, \"c\"", "", "d"]);
    }
}
