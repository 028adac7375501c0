//! The suite that every format and every stack passes, chosen by what it declares in [`Caps`].
//!
//! A check that does not apply is reported as ignored, with the reason. A check in which the format refuses something
//! that `Caps` cannot express (a datatype, a kind of attribute) with [`ErrorKind::Unsupported`] is reported the same way;
//! refusing what every format must have is a failure.

mod attributes;
mod chunks;
mod closing;
mod datatypes;
mod errors;
mod fields;
mod fill;
mod foreign;
mod layouts;
mod modes;
mod objects;
mod ranks;
mod ranks_failing;
mod resize;

use crate::{Overrides, Subject, watchdog};
use hyperslab_core::{Caps, Error, ErrorKind, Format, Result};
use libtest_mimic::{Completion, Failed, Trial};
use std::sync::Arc;
use std::time::Duration;

/// How long one check may take before it counts as hung.
const LIMIT: Duration = Duration::from_secs(90);

/// How something is refused that the format lacks, or that its options forbid.
const REFUSALS: [ErrorKind; 2] = [ErrorKind::Unsupported, ErrorKind::InvalidInput];

/// What a check found.
type Verdict = Result<Completion, Failed>;

/// One check of the suite.
struct Check {
    name: String,
    /// Why it does not apply.
    skip: Option<&'static str>,
    run: Box<dyn FnOnce(&Subject) -> Verdict + Send>,
}

impl Check {
    fn new(name: impl Into<String>, run: impl FnOnce(&Subject) -> Result<(), Failed> + Send + 'static) -> Self {
        Self::that_may_be_refused(name, move |subject| run(subject).map(|()| Completion::Completed))
    }

    fn that_may_be_refused(name: impl Into<String>, run: impl FnOnce(&Subject) -> Verdict + Send + 'static) -> Self {
        Self { name: name.into(), skip: None, run: Box::new(run) }
    }

    fn needs(mut self, has: bool, reason: &'static str) -> Self {
        if !has && self.skip.is_none() {
            self.skip = Some(reason);
        }
        self
    }
}

/// All trials of the suite for `format`, which test reports call `stack`.
pub fn trials(stack: &str, format: &Arc<dyn Format>, overrides: Overrides) -> Vec<Trial> {
    let caps = format.caps();
    let storing = [
        datatypes::checks(),
        layouts::checks(&caps),
        fields::checks(&caps),
        chunks::checks(&caps),
        fill::checks(&caps),
        resize::checks(&caps),
        objects::checks(&caps),
        attributes::checks(&caps),
        foreign::checks(&caps),
        ranks::checks(&caps),
    ];
    let storing = storing.into_iter().flatten().map(|check| check.needs(caps.stores, "the format stores nothing"));
    let always = [modes::checks(&caps), errors::checks(&caps), closing::checks(&caps), ranks_failing::checks(&caps)];
    storing.chain(always.into_iter().flatten()).map(|check| trial(stack, format.clone(), overrides, check)).collect()
}

fn trial(stack: &str, format: Arc<dyn Format>, overrides: Overrides, check: Check) -> Trial {
    let name = format!("{stack}::{}", check.name);
    Trial::ignorable_test(name, move || match check.skip {
        Some(reason) => Ok(Completion::ignored_with(reason)),
        None => watchdog::within(LIMIT, move || {
            let subject = Subject::new(format, overrides)?;
            (check.run)(&subject)
        }),
    })
}

/// Fails the check unless the condition holds.
macro_rules! ensure {
    ($condition:expr, $($message:tt)+) => {
        if !$condition {
            return Err(libtest_mimic::Failed::from(format!($($message)+)));
        }
    };
}
use ensure;

/// The error of something that must be refused with one of `kinds`; any kind will do if none is given.
fn refused<T>(result: Result<T>, kinds: &[ErrorKind], what: &str) -> Result<Error, Failed> {
    match result {
        Ok(_) => Err(format!("{what}: succeeded, but must be refused").into()),
        Err(error) if kinds.is_empty() || kinds.contains(&error.kind()) => {
            ensure!(!error.to_string().is_empty(), "{what}: refused without a message");
            Ok(error)
        }
        Err(error) => Err(format!("{what}: refused with {error:?}, expected one of {kinds:?}").into()),
    }
}

/// Adds what was being tried to an error.
fn trying<T>(result: Result<T>, what: impl FnOnce() -> String) -> Result<T, Failed> {
    result.map_err(|error| format!("{}: {error:?}", what()).into())
}

/// Turns a refusal as unsupported into an ignored check, unless `required`.
fn unless_refused<T>(result: Result<T>, required: bool) -> Result<Result<T, Completion>, Failed> {
    match result {
        Ok(value) => Ok(Ok(value)),
        Err(error) if error.kind() == ErrorKind::Unsupported && !required => {
            Ok(Err(Completion::ignored_with(format!("refused: {}", error.to_string().replace('\n', " ")))))
        }
        Err(error) => Err(format!("{error:?}").into()),
    }
}

/// Filters that the format has.
fn filters(caps: &Caps) -> Vec<(&'static str, hyperslab_core::Filter, bool)> {
    use hyperslab_core::Filter;
    vec![
        ("deflate", Filter::Deflate(4), caps.deflate),
        ("shuffle", Filter::Shuffle, caps.shuffle),
        ("fletcher32", Filter::Fletcher32, caps.fletcher32),
        ("zstd", Filter::Zstd(3), caps.zstd),
        ("blosc", Filter::Blosc(5), caps.blosc),
    ]
}
