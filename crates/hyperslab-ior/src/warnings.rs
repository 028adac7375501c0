//! What people should know, on standard error, so that results stay readable by programs.

use hyperslab_core::{Error, Result};

/// Collects warnings and notes until they are told.
#[derive(Debug, Default)]
pub struct Warnings {
    /// A warning ends the test.
    pub are_errors: bool,
    waiting: Vec<String>,
}

impl Warnings {
    /// Without any so far.
    pub fn new(are_errors: bool) -> Self {
        Self { are_errors, waiting: Vec::new() }
    }

    /// A warning as IOR has them; an error if that was asked for.
    pub fn warn(&mut self, words: impl Into<String>) -> Result<()> {
        let words = words.into();
        if self.are_errors {
            return Err(Error::invalid("run test", words).hint("leave out --warningAsErrors to go on"));
        }
        self.waiting.push(format!("WARNING: {words}"));
        Ok(())
    }

    /// Something to know that is no warning.
    pub fn note(&mut self, words: String) {
        self.waiting.push(format!("note: {words}"));
    }

    /// Tells what has come together, each thing once.
    pub fn tell(&mut self) {
        let mut told: Vec<String> = Vec::new();
        for words in std::mem::take(&mut self.waiting) {
            if !told.contains(&words) {
                eprintln!("{words}");
                told.push(words);
            }
        }
    }
}
