//! The suite that every format and every stack passes, chosen by what it declares in [`Caps`].
//!
//! A check that does not apply is reported as ignored, with the reason. A check in which the format refuses something
//! that `Caps` cannot express (a datatype, a kind of attribute) with [`ErrorKind::Unsupported`] is reported the same way;
//! refusing what every format must have is a failure.

mod attributes;
mod chunks;
mod closing;
mod collective;
mod datatypes;
mod errors;
mod fields;
mod fill;
mod layouts;
mod modes;
mod objects;
mod ranks;
mod ranks_failing;
mod resize;
mod untouched_files;

use crate::{Overrides, Processes, Ranks, Subject, watchdog};
use hyperslab_core::{Caps, Error, ErrorKind, Format, Result};
use libtest_mimic::{Completion, Failed, Trial};
use std::io::Write;
use std::sync::Arc;
use std::time::Duration;

/// How long one check may take before it counts as hung.
const LIMIT: Duration = Duration::from_secs(300);

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

/// What the suite found when the processes of a job ran it.
#[derive(Debug, Default)]
pub struct Tally {
    /// How many checks passed.
    pub passed: usize,
    /// Checks that do not apply, with the reason.
    pub ignored: Vec<(String, String)>,
    /// Checks that failed, with what they say.
    pub failed: Vec<(String, String)>,
}

/// All trials of the suite for `format`, which test reports call `stack`.
pub fn trials(stack: &str, format: &Arc<dyn Format>, overrides: Overrides) -> Vec<Trial> {
    let ranks = Ranks::Threads;
    let checks = alone(&format.caps()).into_iter().chain(together(&format.caps(), &ranks));
    checks.map(|check| trial(stack, format.clone(), overrides, check)).collect()
}

/// Runs the suite for `format` on the processes of a job, leaving out what `applies` does not want: every process
/// calls it, and every process gets the same answer. What needs one rank only is checked by a job of one.
pub fn run_in_job(
    job: &Processes,
    format: &Arc<dyn Format>,
    overrides: Overrides,
    applies: impl Fn(&str) -> bool,
) -> Result<Tally> {
    let ranks = Ranks::Processes(job.clone());
    let caps = format.caps();
    let mut checks = if job.world.size() == 1 { alone(&caps) } else { Vec::new() };
    checks.extend(together(&caps, &ranks));
    let mut tally = Tally::default();
    for check in checks.into_iter().filter(|check| applies(&check.name)) {
        let verdict = match check.skip {
            Some(reason) => Ok(Completion::ignored_with(reason)),
            None => {
                if job.world.rank() == 0 {
                    // Should it hang, this is what is left of it.
                    let _ = writeln!(std::io::stderr(), "begins: {}", check.name);
                }
                let subject = Subject::on(ranks.clone(), format.clone(), overrides)?;
                // The directory is there until every rank is done.
                job.verdict((check.run)(&subject))
            }
        };
        match verdict {
            Ok(Completion::Completed) => tally.passed += 1,
            Ok(Completion::Ignored { reason }) => tally.ignored.push((check.name, reason.unwrap_or_default())),
            Err(failed) => tally.failed.push((check.name, failed.message().unwrap_or("no message").into())),
        }
    }
    Ok(tally)
}

/// The checks that one rank makes.
fn alone(caps: &Caps) -> Vec<Check> {
    let storing = [
        datatypes::checks(),
        layouts::checks(caps),
        fields::checks(caps),
        chunks::checks(caps),
        fill::checks(caps),
        resize::checks(caps),
        objects::checks(caps),
        attributes::checks(caps),
        untouched_files::checks(caps),
    ];
    let always = [modes::checks(caps), errors::checks(caps), closing::checks(caps)];
    only_storing(caps, storing.into_iter().flatten()).chain(always.into_iter().flatten()).collect()
}

/// The checks that several ranks make.
fn together(caps: &Caps, ranks: &Ranks) -> Vec<Check> {
    let storing = [ranks::checks(caps, ranks), collective::checks(caps, ranks)];
    only_storing(caps, storing.into_iter().flatten()).chain(ranks_failing::checks(caps, ranks)).collect()
}

fn only_storing(caps: &Caps, checks: impl Iterator<Item = Check>) -> impl Iterator<Item = Check> {
    checks.map(|check| check.needs(caps.data.readable, "the format stores nothing"))
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

/// Every filter, and whether the format has it.
fn filters(caps: &Caps) -> Vec<(&'static str, hyperslab_core::Filter, bool)> {
    use hyperslab_core::Filter;
    let all = [
        ("deflate", Filter::Deflate(4)),
        ("shuffle", Filter::Shuffle),
        ("fletcher32", Filter::Fletcher32),
        ("zstd", Filter::Zstd(3)),
        ("blosc", Filter::Blosc(5)),
        ("blosc2", Filter::Blosc2(5)),
        ("lz4", Filter::Lz4),
        ("lzf", Filter::Lzf),
        ("bitshuffle", Filter::Bitshuffle),
    ];
    all.map(|(name, filter)| (name, filter, caps.has(&filter))).into()
}
