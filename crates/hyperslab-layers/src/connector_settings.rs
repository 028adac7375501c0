//! ConnectorSettings of the connector: the connector string, with environment variables as defaults.
//!
//! Version 1: `key=value` parts joined by `;`, without white space (HDF5 cuts the string there). docs/connector.md is
//! the promise made to users.

use crate::log;
use hyperslab_core::{StorageOverrides, units};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// The version of the string.
pub const STRING_VERSION: u32 = 1;

const MEMORY: u64 = 256 << 20;
const LEAST_MEMORY: u64 = 1 << 20;
const SMALL: u64 = 64 << 10;
const MOST_THREADS: usize = 16;
/// Each is also a variable: `HYPERSLAB_MODE` and so on.
const KEYS: [&str; 15] = [
    "mode",
    "memory",
    "small",
    "threads",
    "lag",
    "log_dir",
    "log_limit",
    "durability",
    "on_log_failure",
    "state",
    "explain",
    "trace",
    "mpi",
    "stats",
    "overrides",
];
/// Bytes of a file of overrides.
const MOST_OVERRIDES: u64 = 64 << 20;
const LAG: Duration = Duration::from_secs(1);
const LONGEST_LAG: Duration = Duration::from_secs(3600);

/// ConnectorModes: what is done beyond forwarding calls.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ConnectorModes {
    /// Elements bypass libhdf5; filters run on several threads.
    pub codec: bool,
    /// Writes are buffered and executed in the background.
    pub background: bool,
    /// Writes go to a crash-safe log first.
    pub log: bool,
    /// Reads are cached.
    pub cache: bool,
    /// Calls are traced.
    pub trace: bool,
    /// Buffered or synchronous writes, whichever is predicted to be faster.
    pub auto: bool,
    /// Files survive a kill in the state of their last flush.
    pub safe: bool,
}

impl ConnectorModes {
    const NAMES: [&str; 7] = ["codec", "async", "log", "cache", "trace", "auto", "safe"];

    fn flags(&mut self) -> [&mut bool; 7] {
        [
            &mut self.codec,
            &mut self.background,
            &mut self.log,
            &mut self.cache,
            &mut self.trace,
            &mut self.auto,
            &mut self.safe,
        ]
    }

    fn parse(text: &str) -> Result<Self, String> {
        let mut modes = Self::default();
        if text == "off" {
            return Ok(modes);
        }
        for word in text.split(['+', ',']) {
            let at = Self::NAMES.iter().position(|name| *name == word);
            let Some(at) = at else {
                return Err(format!("mode={word} is not known; choose from {}, off", Self::NAMES.join(", ")));
            };
            *modes.flags()[at] = true;
        }
        if modes.background && (modes.log || modes.cache) {
            let other = if modes.log { "log" } else { "cache" };
            return Err(format!(
                "mode=async+{other}: {other} moves writes in the background by itself; leave async out"
            ));
        }
        if modes.auto && (modes.background || modes.log || modes.cache) {
            return Err("mode=auto: it chooses between waiting and async by itself; leave the others out".into());
        }
        Ok(modes)
    }

    /// Whether writes may be executed in the background after their calls have returned.
    pub fn copies(&self) -> bool {
        self.background || self.auto
    }

    /// Whether files have rollback journals.
    pub fn rolls_back(&self) -> bool {
        self.safe || self.log
    }

    /// Whether elements may bypass libhdf5.
    pub fn accelerate(&self) -> bool {
        self.codec || self.background || self.log || self.cache || self.auto
    }
}

impl std::fmt::Display for ConnectorModes {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut copy = *self;
        let flags = copy.flags();
        let on: Vec<&str> = Self::NAMES.iter().zip(flags).filter_map(|(name, on)| on.then_some(*name)).collect();
        f.write_str(if on.is_empty() { "off".into() } else { on.join("+") }.as_str())
    }
}

/// Everything that can be asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConnectorSettings {
    /// What is done.
    pub modes: ConnectorModes,
    /// Bytes that may be kept.
    pub memory: u64,
    /// The first few transfers of a dataset are libhdf5's if they have fewer bytes than this.
    pub small: u64,
    /// Threads for one call.
    pub threads: usize,
    /// How long a write may wait in memory before later ones wait for it.
    pub lag: Option<Duration>,
    /// Where logs go; beside the file if not said.
    pub log_dir: Option<PathBuf>,
    /// Bytes that a log may have.
    pub log_limit: Option<u64>,
    /// How safe a logged write is, in the words of the layer `log`.
    pub durability: Option<String>,
    /// What becomes of writes that the log cannot take, in the words of that layer.
    pub on_log_failure: Option<&'static str>,
    /// Where the history of `auto` is kept, in the words of that layer.
    pub state: Option<String>,
    /// Where `auto` says what it chose.
    pub explain: Option<PathBuf>,
    /// Where the trace goes, `%p` for the number of the process, `%n` for that of the file in it.
    pub trace: PathBuf,
    /// Whether files of MPI programs are only passed on, so that ranks see each other's writes at once.
    pub mpi_strict: bool,
    /// `stderr` or a file for statistics.
    pub stats: Option<String>,
    /// Storage that datasets get in the place of what the program asks for, and the file that says so.
    pub overrides: Option<(PathBuf, Arc<StorageOverrides>)>,
}

impl Default for ConnectorSettings {
    fn default() -> Self {
        let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        Self {
            modes: ConnectorModes { codec: true, ..ConnectorModes::default() },
            memory: MEMORY,
            small: SMALL,
            threads: cores.min(MOST_THREADS),
            lag: Some(LAG),
            log_dir: None,
            log_limit: None,
            durability: None,
            on_log_failure: None,
            state: None,
            explain: None,
            trace: "hyperslab-trace-%p-%n.jsonl".into(),
            mpi_strict: false,
            stats: None,
            overrides: None,
        }
    }
}

/// The connector below, in the words of the string.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct UnderConnector {
    /// Its value; 0 is libhdf5's own.
    pub value: i32,
    /// Its own string.
    pub info: String,
}

impl ConnectorSettings {
    /// From the connector's string and the environment. What is wrong is told in words, and nothing is accelerated
    /// then.
    pub fn parse(text: &str, variable: &dyn Fn(&str) -> Option<String>) -> (Self, UnderConnector, Option<String>) {
        let (text, under) = take_under(text);
        match Self::read(&text, variable) {
            Ok(settings) => (settings, under, None),
            Err(why) => (Self { modes: ConnectorModes::default(), ..Self::default() }, under, Some(why)),
        }
    }

    /// Whether a commit is to survive a loss of power: if it was asked for in so many words.
    pub fn durable_commits(&self) -> bool {
        self.durability.as_deref().is_some_and(|durability| durability != "none")
    }

    fn read(text: &str, variable: &dyn Fn(&str) -> Option<String>) -> Result<Self, String> {
        let mut settings = Self::default();
        for key in KEYS {
            if let Some(value) = variable(&format!("HYPERSLAB_{}", key.to_uppercase())).filter(|v| !v.is_empty()) {
                settings.set(key, &value).map_err(|why| format!("HYPERSLAB_{}: {why}", key.to_uppercase()))?;
            }
        }
        for part in text.split(';').map(str::trim).filter(|part| !part.is_empty()) {
            let Some((key, value)) = part.split_once('=') else {
                return Err(format!("{part:?} should be key=value"));
            };
            settings.set(key, value)?;
        }
        Ok(settings)
    }

    fn set(&mut self, key: &str, value: &str) -> Result<(), String> {
        match key {
            "mode" => self.modes = ConnectorModes::parse(value)?,
            "memory" => {
                let bytes = units::parse_size(value).map_err(|_| format!("memory={value} should be a size"))?;
                if bytes < LEAST_MEMORY {
                    return Err(format!("memory={value} is less than {}", units::display_size(LEAST_MEMORY)));
                }
                self.memory = bytes;
            }
            "small" => {
                self.small = units::parse_size(value).map_err(|_| format!("small={value} should be a size"))?;
            }
            "threads" => match value.parse() {
                Ok(threads @ 1..=MOST_THREADS) => self.threads = threads,
                _ => return Err(format!("threads={value} should be from 1 to {MOST_THREADS}")),
            },
            "lag" if value == "off" => self.lag = None,
            "lag" => {
                let lag = units::parse_duration(value).ok().filter(|lag| !lag.is_zero() && *lag <= LONGEST_LAG);
                let wrong = || format!("lag={value} should be off or a time of at most an hour, such as 1s");
                self.lag = Some(lag.ok_or_else(wrong)?);
            }
            "log_dir" => self.log_dir = Some(value.into()),
            "log_limit" => {
                let bytes = units::parse_size(value).map_err(|_| format!("log_limit={value} should be a size"))?;
                if bytes < LEAST_MEMORY {
                    return Err(format!("log_limit={value} is less than {}", units::display_size(LEAST_MEMORY)));
                }
                self.log_limit = Some(bytes);
            }
            "durability" => {
                log::check_durability(value)?;
                self.durability = Some(value.into());
            }
            "on_log_failure" => {
                let known = ["error", "through"].into_iter().find(|known| *known == value);
                let unknown = || format!("on_log_failure={value} should be error or through");
                self.on_log_failure = Some(known.ok_or_else(unknown)?);
            }
            "state" => self.state = Some(value.into()),
            "explain" => self.explain = Some(value.into()),
            "trace" => self.trace = value.into(),
            "mpi" => match value {
                "flush" => self.mpi_strict = false,
                "strict" => self.mpi_strict = true,
                _ => return Err(format!("mpi={value} should be flush or strict")),
            },
            "stats" => self.stats = Some(value.into()),
            "overrides" => self.overrides = Some((value.into(), Arc::new(overrides(Path::new(value))?))),
            _ => return Err(format!("{key} is not known; choose from {}", KEYS.join(", "))),
        }
        Ok(())
    }

    /// The lag in the words of the string and of layers.
    pub fn lag_text(&self) -> String {
        self.lag.map_or_else(|| "off".into(), |lag| format!("{}us", lag.as_micros().max(1)))
    }

    /// The string that means the same.
    pub fn text(&self) -> String {
        let mut text = format!("mode={};memory={};threads={}", self.modes, self.memory, self.threads);
        if self.small != SMALL {
            text += &format!(";small={}", self.small);
        }
        if self.lag != Some(LAG) {
            text += &format!(";lag={}", self.lag_text());
        }
        if let Some(folder) = &self.log_dir {
            text += &format!(";log_dir={}", folder.display());
        }
        if let Some(bytes) = self.log_limit {
            text += &format!(";log_limit={bytes}");
        }
        if let Some(durability) = &self.durability {
            text += &format!(";durability={durability}");
        }
        if let Some(how) = self.on_log_failure {
            text += &format!(";on_log_failure={how}");
        }
        if let Some(state) = &self.state {
            text += &format!(";state={state}");
        }
        if let Some(explain) = &self.explain {
            text += &format!(";explain={}", explain.display());
        }
        if self.modes.trace {
            text += &format!(";trace={}", self.trace.display());
        }
        if self.mpi_strict {
            text += ";mpi=strict";
        }
        if let Some(stats) = &self.stats {
            text += &format!(";stats={stats}");
        }
        if let Some((file, _)) = &self.overrides {
            text += &format!(";overrides={}", file.display());
        }
        text
    }
}

/// The variable that was probably meant by one that is none of the connector's.
pub fn meant_variable(name: &str) -> Option<String> {
    let key = name.strip_prefix("HYPERSLAB_")?.to_lowercase();
    let is_known = KEYS.contains(&key.as_str());
    let meant = KEYS.into_iter().find(|meant| !is_known && is_slip(&key, meant))?;
    Some(format!("HYPERSLAB_{}", meant.to_uppercase()))
}

/// Whether two words differ in one place, by two letters at most.
fn is_slip(one: &str, other: &str) -> bool {
    let before = one.bytes().zip(other.bytes()).take_while(|(a, b)| a == b).count();
    let rest = (one.len() - before).min(other.len() - before);
    let behind = one.bytes().rev().zip(other.bytes().rev()).take(rest).take_while(|(a, b)| a == b).count();
    one.len().max(other.len()) - before - behind <= 2
}

/// Reads what is overridden. A file that is too large to be one is refused.
fn overrides(path: &Path) -> Result<StorageOverrides, String> {
    let wrong = |why: String| format!("overrides={}: {why}", path.display());
    let length = std::fs::metadata(path).map_err(|error| wrong(error.to_string()))?.len();
    if length > MOST_OVERRIDES {
        return Err(wrong("that is too much".into()));
    }
    let text = std::fs::read_to_string(path).map_err(|error| wrong(error.to_string()))?;
    serde_json::from_str(&text).map_err(|error| wrong(error.to_string()))
}

/// Splits `under_vol=N;under_info={...}` off, whose braces may hold anything.
fn take_under(text: &str) -> (String, UnderConnector) {
    let (mut own, mut under) = (text.to_owned(), UnderConnector::default());
    if let (Some(from), Some(to)) = (text.find("under_info={"), text.rfind('}'))
        && from < to
    {
        under.info = text[from + "under_info={".len()..to].to_owned();
        own = format!("{}{}", &text[..from], &text[to + 1..]);
    }
    let mut rest = Vec::new();
    for part in own.split(';') {
        match part.trim().strip_prefix("under_vol=") {
            Some(value) => under.value = value.parse().unwrap_or_default(),
            None => rest.push(part),
        }
    }
    (rest.join(";"), under)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn parse(text: &str) -> (ConnectorSettings, UnderConnector, Option<String>) {
        ConnectorSettings::parse(text, &|_| None)
    }

    #[test]
    fn nothing_said_means_codec() {
        let (settings, under, wrong) = parse("");
        assert_eq!((settings.modes.to_string(), under.value, wrong), ("codec".into(), 0, None));
        assert_eq!(settings.memory, MEMORY);
    }

    #[test]
    fn the_string_is_read_and_written() {
        let (settings, under, wrong) =
            parse("mode=async+codec;memory=64MiB;threads=2;lag=250ms;stats=stderr;under_vol=0;under_info={a;b={c}}");
        assert_eq!(wrong, None);
        assert_eq!(settings.modes.to_string(), "codec+async");
        assert_eq!((settings.memory, settings.threads), (64 << 20, 2));
        assert_eq!(settings.lag, Some(Duration::from_millis(250)));
        assert_eq!(parse(&parse("lag=off").0.text()).0.lag, None);
        assert_eq!(under, UnderConnector { value: 0, info: "a;b={c}".into() });
        assert_eq!(parse(&settings.text()).0, settings);
        let (settings, _, wrong) = parse("mode=codec+auto;state=/var/state;explain=why.log");
        assert_eq!((wrong, settings.modes.to_string()), (None, "codec+auto".into()));
        assert!(settings.modes.copies() && settings.modes.accelerate());
        assert_eq!(parse(&settings.text()).0, settings);
    }

    #[test]
    fn variables_that_are_misspelt_are_told_from_others() {
        for (name, meant) in [
            ("HYPERSLAB_MEMROY", Some("HYPERSLAB_MEMORY")),
            ("HYPERSLAB_THREAD", Some("HYPERSLAB_THREADS")),
            ("HYPERSLAB_LOGDIR", Some("HYPERSLAB_LOG_DIR")),
            ("HYPERSLAB_MODE", None),
            ("HYPERSLAB_RUN", None),
            ("HYPERSLAB_PYTHON", None),
            ("HYPERSLAB_CACHE", None),
            ("HYPERSLAB_SLOW", None),
            ("HOME", None),
        ] {
            assert_eq!(meant_variable(name).as_deref(), meant, "{name}");
        }
    }

    #[test]
    fn the_string_wins_over_variables() {
        let variable = |name: &str| (name == "HYPERSLAB_MODE").then(|| "log".to_owned());
        assert_eq!(ConnectorSettings::parse("", &variable).0.modes.to_string(), "log");
        assert_eq!(ConnectorSettings::parse("mode=off", &variable).0.modes.to_string(), "off");
    }

    #[test]
    fn what_is_wrong_is_told_and_nothing_is_done() {
        for (text, said) in [
            ("mode=fast", "mode=fast is not known"),
            ("mode=async+log", "leave async out"),
            ("mode=async+cache", "leave async out"),
            ("mode=auto+async", "leave the others out"),
            ("mode=codec+auto+log", "leave the others out"),
            ("memory=much", "should be a size"),
            ("memory=1", "less than"),
            ("threads=0", "from 1 to"),
            ("lag=0s", "should be off or a time"),
            ("durability=always", "none, on-flush, every-write, or a time"),
            ("color=red", "color is not known"),
            ("fast", "key=value"),
        ] {
            let (settings, _, wrong) = parse(text);
            assert!(wrong.as_ref().is_some_and(|why| why.contains(said)), "{text}: {wrong:?}");
            assert_eq!(settings.modes, ConnectorModes::default());
        }
    }
}
