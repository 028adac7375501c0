//! Figures that others published of parallel systems, with where (data/published_claims.csv: facts, cited).

use std::sync::OnceLock;

const TABLE: &str = include_str!("../data/published_claims.csv");

/// A line of the table.
#[derive(Debug, Clone, PartialEq)]
pub struct PublishedClaim {
    /// The work.
    pub source: String,
    /// The place in it.
    pub place: String,
    /// Where it was measured.
    pub system: String,
    /// What ran.
    pub workload: String,
    /// What was measured of it.
    pub metric: String,
    /// Under which condition.
    pub condition: String,
    /// How much it was; not always a number.
    pub value: String,
    /// In which unit.
    pub unit: String,
    /// Measured, or of another kind.
    pub kind: String,
    /// Against what, if it is a ratio.
    pub baseline: String,
}

impl PublishedClaim {
    fn parse(line: &str) -> Self {
        let mut fields = fields(line).into_iter();
        let mut next = || fields.next().unwrap_or_default();
        Self {
            source: next(),
            place: next(),
            system: next(),
            workload: next(),
            metric: next(),
            condition: next(),
            value: next(),
            unit: next(),
            kind: next(),
            baseline: next(),
        }
    }

    /// The work and the place in it.
    pub fn cited(&self) -> String {
        format!("{} {}", self.source, self.place)
    }

    /// How much it was, in words.
    pub fn amount(&self) -> String {
        match self.unit.as_str() {
            "" => self.value.clone(),
            "x" => format!("{} times", self.value),
            "ratio" => format!("{} of the time", self.value),
            other => format!("{} {other}", self.value),
        }
    }

    /// What was measured, where, and how much it was.
    pub fn words(&self) -> String {
        let condition = if self.condition.is_empty() { String::new() } else { format!(", {}", self.condition) };
        format!("{}, {}{condition}: {} ({})", self.workload, self.metric, self.amount(), self.system)
    }
}

/// All of them, in the order of the table.
pub fn published_claims() -> &'static [PublishedClaim] {
    static ALL: OnceLock<Vec<PublishedClaim>> = OnceLock::new();
    ALL.get_or_init(|| TABLE.lines().skip(1).map(PublishedClaim::parse).collect())
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
    use super::*;

    #[test]
    fn quotes_hold_commas() {
        assert_eq!(fields("a,\"b, \"\"c\"\"\",,d"), ["a", "b, \"c\"", "", "d"]);
    }

    #[test]
    fn every_claim_says_who_what_and_how_much() {
        assert_eq!(published_claims().len(), 163);
        for claim in published_claims() {
            assert!(
                [&claim.source, &claim.place, &claim.metric, &claim.value].iter().all(|field| !field.is_empty()),
                "{claim:?}"
            );
        }
    }
}
