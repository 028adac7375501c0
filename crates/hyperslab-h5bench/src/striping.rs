//! How Lustre spreads files over servers: the `file-system` block.

use super::values::Keys;
use anyhow::Result;
use std::path::Path;
use std::process::{Command, Stdio};

/// Stripe size and count of new files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Striping {
    size: Option<String>,
    count: Option<String>,
}

impl Striping {
    /// The `file-system` block of a workflow, if it says anything.
    pub fn parse(top: &Keys<'_>) -> Result<Option<Self>> {
        let Some(block) = top.object("file-system")? else { return Ok(None) };
        let block = Keys::new(block, "file-system", &["lustre"])?;
        let Some(lustre) = block.object("lustre")? else { return Ok(None) };
        let lustre = Keys::new(lustre, "file-system.lustre", &["stripe-size", "stripe-count"])?;
        // Checked as numbers, passed on as written: lfs reads the same units.
        lustre.number("stripe-size")?;
        let count = lustre.text("stripe-count")?;
        if count.as_deref() != Some("-1") {
            lustre.number("stripe-count")?;
        }
        let size = lustre.text("stripe-size")?.map(|size| size.replace(' ', ""));
        Ok((size.is_some() || count.is_some()).then_some(Self { size, count }))
    }

    /// Sets it for new files in `directory`. Returns what was done or why not, in words.
    pub fn apply(&self, directory: &Path) -> String {
        let wanted = self.words();
        let quiet =
            |mut command: Command| command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).status();
        let mut look = Command::new("lfs");
        look.arg("getstripe").arg(directory);
        match quiet(look) {
            Err(_) => return format!("{wanted} not set: there is no lfs program here"),
            Ok(status) if !status.success() => {
                return format!("{wanted} not set: {} is not on Lustre", directory.display());
            }
            Ok(_) => {}
        }
        let mut set = Command::new("lfs");
        set.arg("setstripe");
        for (flag, value) in [("-S", &self.size), ("-c", &self.count)] {
            if let Some(value) = value {
                set.arg(flag).arg(value);
            }
        }
        set.arg(directory);
        match set.stdin(Stdio::null()).output() {
            Ok(done) if done.status.success() => format!("{wanted} set for new files in {}", directory.display()),
            Ok(done) => format!("{wanted} not set: lfs says {}", String::from_utf8_lossy(&done.stderr).trim()),
            Err(error) => format!("{wanted} not set: lfs could not be started: {error}"),
        }
    }

    fn words(&self) -> String {
        let part = |name: &str, value: &Option<String>| value.as_ref().map(|value| format!("{name} {value}"));
        let parts: Vec<String> =
            [part("stripe size", &self.size), part("stripe count", &self.count)].into_iter().flatten().collect();
        format!("Lustre {}", parts.join(" and "))
    }
}
