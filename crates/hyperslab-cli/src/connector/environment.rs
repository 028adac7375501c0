//! The variables that put the connector into a program.

use anyhow::{Result, bail};
use hyperslab_layers::connector_settings::{ConnectorSettings, meant_variable};
use std::ffi::{OsStr, OsString};
use std::path::Path;
use std::process::Command;

/// The connector's name to libhdf5.
pub const NAME: &str = "hyperslab";
/// Says where statistics go.
pub const STATS: &str = "HYPERSLAB_STATS";

const PLUGIN_PATH: &str = "HDF5_PLUGIN_PATH";
const CONNECTOR: &str = "HDF5_VOL_CONNECTOR";
/// Where libhdf5 looks for plugins if nobody says.
const USUAL_PLUGINS: &str = "/usr/local/hdf5/lib/plugin";

/// Variables for a program. What is not set here is as in this process, so that `HYPERSLAB_*` of the user stay.
#[derive(Debug, Clone)]
pub struct Environment(Vec<(&'static str, OsString)>);

impl Environment {
    /// Those by which libhdf5 loads the plugin of `folder`. Other plugin folders stay behind it. Refuses to take the place
    /// of another connector.
    pub fn new(folder: &Path) -> Result<Self> {
        if let Some(other) = std::env::var_os(CONNECTOR).filter(|value| !value.is_empty())
            && !is_ours(&other)
        {
            bail!(
                "{CONNECTOR} names another connector: {}\n  try: env -u {CONNECTOR} before this command",
                other.display()
            );
        }
        let others = std::env::var_os(PLUGIN_PATH).filter(|value| !value.is_empty());
        let mut path = folder.as_os_str().to_owned();
        path.push(":");
        path.push(others.unwrap_or_else(|| USUAL_PLUGINS.into()));
        Ok(Self(vec![(PLUGIN_PATH, path), (CONNECTOR, NAME.into())]))
    }

    /// Sets one more. Values go by variables and not by the connector's string, which cannot hold white space.
    pub fn set(&mut self, name: &'static str, value: impl Into<OsString>) {
        self.0.push((name, value.into()));
    }

    /// Takes the connector out of a program that the user's own variables put it into.
    pub fn remove(command: &mut Command) -> &mut Command {
        command.env_remove(CONNECTOR)
    }

    /// Refuses settings, of the user's own variables too, with which the connector would do nothing. What looks like one of them
    /// misspelt, and settings that do not count here, are told.
    pub fn check(&self) -> Result<Vec<String>> {
        let set = |name: &str| self.0.iter().rev().find(|(known, _)| *known == name).map(|(_, value)| value.clone());
        let variable = |name: &str| set(name).or_else(|| std::env::var_os(name));
        let text = |name: &str| variable(name).map(|value| value.to_string_lossy().into_owned());
        if let (_, _, Some(wrong)) = ConnectorSettings::parse("", &text) {
            bail!("{wrong}\n  try: another value, or none (unset the variable); nothing was run");
        }
        let misspelt = std::env::vars_os().filter_map(|(name, _)| {
            let name = name.to_str()?;
            let meant = meant_variable(name).filter(|meant| std::env::var_os(meant).is_none())?;
            Some(format!("{name} is no setting of the connector; {meant} is"))
        });
        let string = std::env::var(CONNECTOR).ok().and_then(|text| {
            let (_, own) = text.trim().split_once(char::is_whitespace)?;
            Some(format!("{CONNECTOR} has settings of its own, {:?}, which do not count here: use options", own.trim()))
        });
        Ok(misspelt.chain(string).collect())
    }

    /// Hands them to a program.
    pub fn apply<'a>(&self, command: &'a mut Command) -> &'a mut Command {
        command.envs(self.0.iter().map(|(name, value)| (name, value)))
    }
}

fn is_ours(value: &OsStr) -> bool {
    value.to_str().is_some_and(|text| text.split_whitespace().next() == Some(NAME))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn our_own_connector_is_told_by_its_first_word() {
        for (text, ours) in
            [("hyperslab", true), ("hyperslab mode=log", true), ("hyperslabs", false), ("async x", false)]
        {
            assert_eq!(is_ours(text.as_ref()), ours, "{text}");
        }
    }
}
