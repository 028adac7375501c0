//! The one error type of the workspace.

use serde::{Deserialize, Serialize};
use std::error::Error as StdError;
use std::fmt;

/// Error category for code to act on; the message is for people.
///
/// ```
/// use hyperslab_core::{ErrorKind, Stack};
///
/// let error = "hdf5(chunk=".parse::<Stack>().unwrap_err();
/// assert_eq!(error.kind(), ErrorKind::InvalidInput);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ErrorKind {
    /// Invalid request (bad option, selection outside the array).
    InvalidInput,
    /// A file, array, group or attribute does not exist.
    NotFound,
    /// Something to be created exists already.
    AlreadyExists,
    /// A valid request that this format, build or machine does not support.
    Unsupported,
    /// Stored data or metadata is inconsistent.
    Corrupt,
    /// Data read back differs from the data written.
    Mismatch,
    /// The device or quota is full.
    NoSpace,
    /// The user asked to stop.
    Interrupted,
    /// Another process uses it.
    Busy,
    /// Another rank failed; its own error says why.
    Peer,
    /// The operating system or a library reported a failure.
    Io,
}

impl ErrorKind {
    fn words(self) -> &'static str {
        match self {
            Self::InvalidInput => "invalid input",
            Self::NotFound => "not found",
            Self::AlreadyExists => "exists already",
            Self::Unsupported => "not supported",
            Self::Corrupt => "corrupt",
            Self::Mismatch => "data mismatch",
            Self::NoSpace => "no space left",
            Self::Interrupted => "interrupted",
            Self::Busy => "in use",
            Self::Peer => "another rank failed",
            Self::Io => "I/O error",
        }
    }
}

/// An error with its kind, operation, reporting component, target, rank, cause and a hint what to try.
///
/// ```
/// use hyperslab_core::Error;
///
/// let error = Error::unsupported("create array", "no chunks here").target("t/u").hint("use hdf5");
/// assert_eq!(error.operation(), "create array");
/// assert_eq!(error.what_to_try(), Some("use hdf5"));
/// ```
pub struct Error(Box<Details>);

struct Details {
    kind: ErrorKind,
    operation: &'static str,
    backend: Option<&'static str>,
    target: Option<String>,
    rank: Option<usize>,
    message: String,
    hint: Option<String>,
    source: Option<Box<dyn StdError + Send + Sync>>,
}

/// Result with the workspace's error.
pub type Result<T, E = Error> = std::result::Result<T, E>;

impl Error {
    /// An error of `kind` met while doing `operation` ("write", "open", "parse stack").
    pub fn new(kind: ErrorKind, operation: &'static str, message: impl Into<String>) -> Self {
        Self(Box::new(Details {
            kind,
            operation,
            backend: None,
            target: None,
            rank: None,
            message: message.into(),
            hint: None,
            source: None,
        }))
    }

    /// Shorthand for [`ErrorKind::InvalidInput`].
    pub fn invalid(operation: &'static str, message: impl Into<String>) -> Self {
        Self::new(ErrorKind::InvalidInput, operation, message)
    }

    /// Shorthand for [`ErrorKind::Unsupported`].
    pub fn unsupported(operation: &'static str, message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Unsupported, operation, message)
    }

    /// An error relayed from another process, with its printed text.
    pub fn relayed(kind: ErrorKind, text: impl Into<String>) -> Self {
        Self::new(kind, "", text)
    }

    /// Wraps an operating-system error, choosing the kind from its code.
    pub fn io(operation: &'static str, source: std::io::Error) -> Self {
        use std::io::ErrorKind as Os;
        let kind = match source.kind() {
            Os::NotFound => ErrorKind::NotFound,
            Os::AlreadyExists => ErrorKind::AlreadyExists,
            Os::StorageFull | Os::QuotaExceeded | Os::FileTooLarge => ErrorKind::NoSpace,
            Os::Unsupported => ErrorKind::Unsupported,
            _ => ErrorKind::Io,
        };
        let mut error = Self::new(kind, operation, source.to_string());
        if kind == ErrorKind::NoSpace {
            error = error.hint("free some space or choose another directory");
        }
        error.source(source)
    }

    /// Names the format, layer or communicator that reports the error.
    pub fn backend(mut self, backend: &'static str) -> Self {
        self.0.backend.get_or_insert(backend);
        self
    }

    /// Names the file, array or option concerned; the innermost name wins.
    pub fn target(mut self, target: impl fmt::Display) -> Self {
        self.0.target.get_or_insert_with(|| target.to_string());
        self
    }

    /// Sets the rank on which it happened, unless set.
    pub fn rank(mut self, rank: usize) -> Self {
        self.0.rank.get_or_insert(rank);
        self
    }

    /// Sets what the user can try, unless set.
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.0.hint.get_or_insert_with(|| hint.into());
        self
    }

    /// Keeps the cause.
    pub fn source(mut self, source: impl Into<Box<dyn StdError + Send + Sync>>) -> Self {
        self.0.source = Some(source.into());
        self
    }

    /// The kind, for code that decides.
    pub fn kind(&self) -> ErrorKind {
        self.0.kind
    }

    /// The operation that failed.
    pub fn operation(&self) -> &'static str {
        self.0.operation
    }

    /// The rank on which it happened, where known.
    pub fn on_rank(&self) -> Option<usize> {
        self.0.rank
    }

    /// What the user can try, where known.
    pub fn what_to_try(&self) -> Option<&str> {
        self.0.hint.as_deref()
    }

    /// A copy for another rank or a report; the cause survives only as text.
    pub fn copied(&self) -> Self {
        let d = &*self.0;
        Self(Box::new(Details {
            kind: d.kind,
            operation: d.operation,
            backend: d.backend,
            target: d.target.clone(),
            rank: d.rank,
            message: d.message.clone(),
            hint: d.hint.clone(),
            source: None,
        }))
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let d = &*self.0;
        if d.operation.is_empty() {
            write!(f, "{}", d.message)?; // relayed: all of this is in the message
        } else {
            write!(f, "{}", d.operation)?;
            if let Some(target) = &d.target {
                write!(f, " {target}")?;
            }
            match (d.backend, d.rank) {
                (Some(backend), Some(rank)) => write!(f, " ({backend}, rank {rank})")?,
                (Some(backend), None) => write!(f, " ({backend})")?,
                (None, Some(rank)) => write!(f, " (rank {rank})")?,
                (None, None) => {}
            }
            let message = if d.message.is_empty() { d.kind.words() } else { &d.message };
            write!(f, ": {message}")?;
        }
        if let Some(hint) = &d.hint {
            write!(f, "\n  try: {hint}")?;
        }
        Ok(())
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "[{:?}] {self}", self.0.kind)
    }
}

impl StdError for Error {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        self.0.source.as_deref().map(|s| s as _)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_says_what_where_and_what_to_try() {
        let error =
            Error::io("write", std::io::Error::from_raw_os_error(28)).backend("posix").target("/data/x").rank(3);
        assert_eq!(error.kind(), ErrorKind::NoSpace);
        let text = error.to_string();
        assert!(text.starts_with("write /data/x (posix, rank 3): "), "{text}");
        assert!(text.contains("try: free some space"), "{text}");
    }

    #[test]
    fn a_relayed_error_prints_as_it_did() {
        let error = Error::invalid("open", "bad").target("x").hint("other");
        let relayed = Error::relayed(error.kind(), error.to_string());
        assert_eq!((relayed.kind(), relayed.to_string()), (error.kind(), error.to_string()));
    }

    #[test]
    fn the_innermost_target_wins() {
        let error = Error::invalid("open", "bad").target("inner").target("outer");
        assert_eq!(error.to_string(), "open inner: bad");
    }
}
