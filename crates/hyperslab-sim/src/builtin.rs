//! The systems that are described here.

use crate::system::System;
use hyperslab_core::{Error, Result, suggest};

const SYSTEMS: [(&str, &str); 6] = [
    ("cori", include_str!("../systems/cori.json")),
    ("lustre-2014", include_str!("../systems/lustre-2014.json")),
    ("perlmutter", include_str!("../systems/perlmutter.json")),
    ("polaris", include_str!("../systems/polaris.json")),
    ("summit", include_str!("../systems/summit.json")),
    ("theta", include_str!("../systems/theta.json")),
];

/// Their names.
pub fn builtin_names() -> Vec<&'static str> {
    SYSTEMS.iter().map(|(name, _)| *name).collect()
}

/// The system of this name.
pub fn builtin(name: &str) -> Result<System> {
    let Some((_, text)) = SYSTEMS.iter().find(|(known, _)| *known == name) else {
        let error = Error::invalid("choose system", format!("there is no system {name:?}"));
        return Err(error.hint(suggest::hint(name, builtin_names())));
    };
    System::parse(text)
}

/// A description to fill in.
pub fn template() -> Result<System> {
    let mut system = builtin("lustre-2014")?;
    system.name = "mine".into();
    system.about = "a system to describe: replace values and sources".into();
    system.calibration = crate::system::Calibration::default();
    Ok(system)
}
