//! Ways to run a program, and what each promises.

use anyhow::{Result, bail};
use std::path::Path;
use std::process::Command;

/// What a program may count on after it was killed and its files were recovered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Promise {
    /// The file is exactly as of its last flush or close.
    Safe,
    /// That, and every write that had returned since.
    Log,
    /// Nothing; counted is whether the file can be read and has everything that had been flushed.
    None,
}

impl Promise {
    /// As the checker calls it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Safe => "safe",
            Self::Log => "log",
            Self::None => "flush",
        }
    }
}

/// A way to run a program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Subject {
    pub name: &'static str,
    /// The connector's mode; none without the connector.
    mode: Option<&'static str>,
    pub promise: Promise,
    /// Whether logs go to a directory of their own.
    pub log_directory: bool,
    settings: &'static [(&'static str, &'static str)],
}

/// The setting under which a loss of power costs nothing that had been promised.
const DURABLE: (&str, &str) = ("HYPERSLAB_DURABILITY", "every-write");

/// All of them.
pub const SUBJECTS: &[Subject] = &[
    Subject { name: "plain", mode: None, promise: Promise::None, log_directory: false, settings: &[] },
    Subject { name: "codec", mode: Some("codec"), promise: Promise::None, log_directory: false, settings: &[] },
    Subject { name: "async", mode: Some("codec+async"), promise: Promise::None, log_directory: false, settings: &[] },
    Subject { name: "safe", mode: Some("safe"), promise: Promise::Safe, log_directory: false, settings: &[] },
    Subject {
        name: "async-safe",
        mode: Some("codec+async+safe"),
        promise: Promise::Safe,
        log_directory: false,
        settings: &[],
    },
    Subject {
        name: "cache-safe",
        mode: Some("cache+safe"),
        promise: Promise::Safe,
        log_directory: false,
        settings: &[],
    },
    Subject { name: "auto-safe", mode: Some("auto+safe"), promise: Promise::Safe, log_directory: false, settings: &[] },
    Subject { name: "log", mode: Some("log"), promise: Promise::Log, log_directory: false, settings: &[] },
    Subject { name: "log-dir", mode: Some("log"), promise: Promise::Log, log_directory: true, settings: &[] },
    Subject {
        name: "log-small",
        mode: Some("log"),
        promise: Promise::Log,
        log_directory: false,
        settings: &[("HYPERSLAB_LOG_LIMIT", "1MiB")],
    },
    Subject {
        name: "safe-sync",
        mode: Some("safe"),
        promise: Promise::Safe,
        log_directory: false,
        settings: &[DURABLE],
    },
    Subject { name: "log-sync", mode: Some("log"), promise: Promise::Log, log_directory: false, settings: &[DURABLE] },
];

/// The subject of this name.
pub fn named(name: &str) -> Result<Subject> {
    let Some(subject) = SUBJECTS.iter().find(|subject| subject.name == name) else {
        let names: Vec<&str> = SUBJECTS.iter().map(|subject| subject.name).collect();
        bail!("there is no mode {name:?}; there are {}", names.join(", "));
    };
    Ok(*subject)
}

impl Subject {
    /// Sets the variables of the environment.
    pub fn apply(&self, command: &mut Command, plugin: &Path, logs: &Path) {
        command.env_remove("HDF5_VOL_CONNECTOR");
        let Some(mode) = self.mode else { return };
        command.env("HDF5_PLUGIN_PATH", plugin).env("HDF5_VOL_CONNECTOR", "hyperslab").env("HYPERSLAB_MODE", mode);
        command.envs(self.settings.iter().copied()).env("HYPERSLAB_STATE", "off");
        if self.log_directory {
            command.env("HYPERSLAB_LOG_DIR", logs);
        }
    }

    /// Whether its promise holds after a loss of power, too.
    pub fn is_durable(&self) -> bool {
        self.settings.contains(&DURABLE)
    }

    /// Whether `hyperslab recover` belongs to it.
    pub fn recovers(&self) -> bool {
        self.mode.is_some()
    }
}
