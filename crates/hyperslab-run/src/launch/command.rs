//! The words that start a program on many ranks.

use hyperslab_core::{Error, Result};
use std::ffi::{OsStr, OsString};
use std::fmt;
use std::process::Command;

/// In a template: the number of ranks.
const RANKS: &str = "{ranks}";
/// In a template: where the program and its arguments go, if not at the end.
const PROGRAM: &str = "{command}";
/// Ranks that wait in OpenMPI keep a core busy; when they share cores they must give way.
const SHARED_CORES: [(&str, &str); 3] = [
    ("OMPI_MCA_rmaps_base_oversubscribe", "1"),
    ("PRTE_MCA_rmaps_default_mapping_policy", ":oversubscribe"),
    ("OMPI_MCA_mpi_yield_when_idle", "1"),
];

/// A launcher with its options: `mpirun -np 4`, `srun --cpu-bind=cores -n 4`, or any words of the user's.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LaunchCommand {
    words: Vec<String>,
    environment: Vec<(&'static str, &'static str)>,
}

impl LaunchCommand {
    /// The command for `ranks` ranks. With `{ranks}` in it, `command` is a template; with `configuration`, the two are
    /// taken as they are; otherwise the options are those of a known launcher.
    pub fn new(command: &str, configuration: Option<&str>, ranks: usize) -> Result<Self> {
        let mut words = split(command)?;
        let known = words.first().map(|first| base_name(first).to_owned()).unwrap_or_default();
        let number = ranks.to_string();
        let mut environment = Vec::new();
        if words.iter().any(|word| word.contains(RANKS)) {
            words.iter_mut().for_each(|word| *word = word.replace(RANKS, &number));
            words.extend(configuration.map(split).transpose()?.unwrap_or_default());
        } else if let Some(configuration) = configuration.filter(|text| !text.trim().is_empty()) {
            words.extend(split(configuration)?);
        } else {
            let options: &[&str] = match known.as_str() {
                "mpirun" | "mpiexec" | "orterun" | "mpiexec.hydra" | "mpirun.openmpi" | "mpirun.mpich"
                | "mpiexec.openmpi" | "mpiexec.mpich" => {
                    let cores = std::thread::available_parallelism().map_or(1, usize::from);
                    if ranks > cores {
                        environment.extend(SHARED_CORES);
                    }
                    &["-np", &number]
                }
                "srun" => &["--cpu-bind=cores", "-n", &number],
                // One rank to a resource set.
                "jsrun" => &["-n", &number, "-a", "1", "-c", "1"],
                "aprun" => &["-n", &number],
                "flux" if words.len() == 1 => &["run", "-n", &number],
                "flux" => &["-n", &number],
                _ => return Err(unknown(command)),
            };
            words.extend(options.iter().map(|&option| option.to_owned()));
        }
        Ok(Self { words, environment })
    }

    /// The command that runs `program` with `arguments` on every rank.
    pub fn of(&self, program: &OsStr, arguments: &[&OsStr]) -> Command {
        let started = || std::iter::once(program).chain(arguments.iter().copied()).map(OsStr::to_owned);
        let mut words: Vec<OsString> = Vec::new();
        for word in &self.words {
            if word == PROGRAM { words.extend(started()) } else { words.push(word.into()) }
        }
        if !self.words.iter().any(|word| word == PROGRAM) {
            words.extend(started());
        }
        let mut command = Command::new(&words[0]);
        command.args(&words[1..]).envs(self.environment.iter().copied());
        command
    }
}

impl fmt::Display for LaunchCommand {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&joined(self.words.iter().map(String::as_str)))
    }
}

/// Words as one would type them, quoted only where it matters.
fn joined<'a>(words: impl Iterator<Item = &'a str>) -> String {
    let plain =
        |word: &str| !word.is_empty() && word.chars().all(|c| c.is_ascii_alphanumeric() || "-_./=:,+@%".contains(c));
    let typed = words.map(|word| if plain(word) { word.into() } else { shell_words::quote(word) });
    typed.collect::<Vec<_>>().join(" ")
}

fn split(text: &str) -> Result<Vec<String>> {
    let bad = |message: String| Error::invalid("read launcher", message).target(format!("{text:?}"));
    let words = shell_words::split(text).map_err(|e| bad(e.to_string()))?;
    if words.is_empty() { Err(bad("it is empty".into())) } else { Ok(words) }
}

fn base_name(word: &str) -> &str {
    word.rsplit('/').next().unwrap_or(word)
}

fn unknown(command: &str) -> Error {
    Error::invalid("read launcher", "how this launcher is told the number of ranks is not known")
        .target(format!("{command:?}"))
        .hint(format!(
            "write a template such as 'launcher -n {RANKS}' or 'launcher -n {RANKS} {PROGRAM} --more'; known are mpirun, \
             mpiexec, srun, jsrun, aprun and flux"
        ))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn words(command: &str, configuration: Option<&str>) -> String {
        let launch = LaunchCommand::new(command, configuration, 8).unwrap();
        let command = launch.of("/bin/p".as_ref(), &["a b".as_ref()]);
        let all = std::iter::once(command.get_program()).chain(command.get_args());
        joined(all.map(|word| word.to_str().unwrap()))
    }

    #[test]
    fn every_launcher_is_told_the_ranks_in_its_own_way() {
        assert_eq!(words("mpirun", None), "mpirun -np 8 /bin/p 'a b'");
        assert_eq!(words("/opt/x/mpiexec", None), "/opt/x/mpiexec -np 8 /bin/p 'a b'");
        assert_eq!(words("mpirun --bind-to core", None), "mpirun --bind-to core -np 8 /bin/p 'a b'");
        assert_eq!(words("srun", None), "srun --cpu-bind=cores -n 8 /bin/p 'a b'");
        assert_eq!(words("jsrun", None), "jsrun -n 8 -a 1 -c 1 /bin/p 'a b'");
        assert_eq!(words("aprun", None), "aprun -n 8 /bin/p 'a b'");
        assert_eq!(words("flux", None), "flux run -n 8 /bin/p 'a b'");
        assert_eq!(words("flux run", None), "flux run -n 8 /bin/p 'a b'");
    }

    #[test]
    fn a_configuration_is_taken_as_it_is_and_a_template_filled_in() {
        assert_eq!(words("mpirun", Some("-np 3 --oversubscribe")), "mpirun -np 3 --oversubscribe /bin/p 'a b'");
        assert_eq!(words("mpirun", Some(" ")), "mpirun -np 8 /bin/p 'a b'");
        assert_eq!(words("prun -c {ranks}", None), "prun -c 8 /bin/p 'a b'");
        assert_eq!(words("prun --n={ranks} -- {command} 'x y'", None), "prun --n=8 -- /bin/p 'a b' 'x y'");
        assert_eq!(words("mpirun -n {ranks}", Some("--map-by node")), "mpirun -n 8 --map-by node /bin/p 'a b'");
    }

    #[test]
    fn what_is_not_understood_is_refused() {
        for bad in ["", "strangerun", "mpirun 'x"] {
            assert!(LaunchCommand::new(bad, None, 2).is_err(), "{bad:?}");
        }
        let error = LaunchCommand::new("strangerun", None, 2).unwrap_err();
        assert!(error.to_string().contains("{ranks}"), "{error}");
    }
}
