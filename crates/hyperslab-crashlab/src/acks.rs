//! What the program had been told when: lines `B 7` (operation 7 begins), `E 7` (it has returned), `X 7 why` (it failed).

/// How far a program had come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Progress {
    /// The last operation that had begun; -1 if none.
    pub begun: i64,
    /// The last operation that had returned; -1 if none.
    pub acked: i64,
}

impl Default for Progress {
    fn default() -> Self {
        Self { begun: -1, acked: -1 }
    }
}

impl Progress {
    /// Takes in what was written to the file of acknowledgements.
    pub fn see(&mut self, text: &str) {
        for line in text.lines() {
            let mut words = line.split(' ');
            let (word, number) = (words.next(), words.next().and_then(|number| number.parse().ok()));
            match (word, number) {
                (Some("B"), Some(number)) => self.begun = number,
                (Some("E"), Some(number)) => self.acked = number,
                _ => {}
            }
        }
    }
}

/// The failure that the program met, if it met one.
pub fn failure(text: &str) -> Option<&str> {
    text.lines().find(|line| line.starts_with("X "))
}
