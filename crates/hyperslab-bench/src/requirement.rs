//! What keys of a workflow ask of the format itself: options of the stack, where the format has them.

use hyperslab_core::Stack;

/// A key and the options of a format that fulfil it.
#[derive(Debug, Clone)]
pub struct Requirement {
    /// The key, as the workflow says it.
    pub key: &'static str,
    /// Names and values of the options.
    pub options: Vec<(&'static str, String)>,
    /// Makes sense only for ranks that are processes.
    pub processes: bool,
    /// Without it the case is not what was asked for, and is skipped.
    pub vital: bool,
}

impl Requirement {
    /// Adds its options to the stack, unless the user's own say something else. Where that cannot be done a note says so, or
    /// the error why the case is skipped.
    pub fn apply(&self, stack: &mut Stack, processes: bool, notes: &mut Vec<String>) -> Result<(), String> {
        let format = &mut stack.format;
        if self.processes && !processes {
            return if self.vital { Err(format!("{} needs ranks that are MPI processes", self.key)) } else { Ok(()) };
        }
        let known = |name: &str| hyperslab_formats::format(&format.name).is_ok_and(|entry| entry.has_option(name));
        if !self.options.iter().all(|(name, _)| known(name)) {
            let said = format!("{} has no effect on {}", self.key, format.name);
            if self.vital {
                return Err(said);
            }
            notes.push(said);
            return Ok(());
        }
        for (name, value) in &self.options {
            if format.get(name).is_none() {
                format.options.push(((*name).to_owned(), value.clone()));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn options_are_added_where_the_format_has_them() {
        let wish =
            Requirement { key: "ALIGN", options: vec![("align", "4KiB".into())], processes: false, vital: false };
        let apply = |stack: &str, wish: &Requirement, processes: bool| {
            let (mut stack, mut notes) = (stack.parse::<Stack>().unwrap(), Vec::new());
            let applied = wish.apply(&mut stack, processes, &mut notes);
            (applied, stack.to_string(), notes)
        };
        assert_eq!(apply("posix", &wish, false), (Ok(()), "posix".into(), vec!["ALIGN has no effect on posix".into()]));
        if cfg!(feature = "hdf5") {
            assert_eq!(apply("hdf5", &wish, false), (Ok(()), "hdf5(align=4KiB)".into(), vec![]));
            assert_eq!(apply("hdf5(align=1MiB)", &wish, false).1, "hdf5(align=1MiB)");
        }
        let vital = Requirement { vital: true, ..wish };
        assert_eq!(apply("posix", &vital, true).0, Err("ALIGN has no effect on posix".into()));
        let parallel = Requirement { processes: true, ..vital };
        assert!(apply("posix", &parallel, false).0.unwrap_err().contains("MPI processes"));
        assert_eq!(apply("posix", &Requirement { vital: false, ..parallel }, false), (Ok(()), "posix".into(), vec![]));
    }
}
