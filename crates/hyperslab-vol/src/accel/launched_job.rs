//! The MPI job that a launcher has started this process in, as far as variables of the environment tell.

use std::collections::HashMap;
use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

/// What names the job, alike for all ranks and no other job: random, or made of numbers that are given once.
const NAMES: [&[&str]; 3] = [
    &["OMPI_MCA_orte_precondition_transports"],
    &["SLURM_CLUSTER_NAME", "SLURM_JOB_ID", "SLURM_STEP_ID"],
    &["PMIX_NAMESPACE", "PMIX_SERVER_TMPDIR"],
];
/// The rank, and how many there are.
const RANKS: [(&str, &str); 3] =
    [("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"), ("SLURM_PROCID", "SLURM_NTASKS"), ("PMI_RANK", "PMI_SIZE")];

/// The place of this process in its job.
#[derive(Debug, Clone)]
pub(super) struct LaunchedJob {
    name: String,
    rank: usize,
    ranks: usize,
}

impl LaunchedJob {
    /// `None` if the launcher is not known.
    pub(super) fn find() -> Option<Self> {
        Self::told_by(&|name| std::env::var(name).ok().filter(|value| !value.is_empty()))
    }

    fn told_by(variable: &dyn Fn(&str) -> Option<String>) -> Option<Self> {
        let all = |names: &&[&str]| names.iter().map(|name| variable(name)).collect::<Option<Vec<_>>>();
        let name = NAMES.iter().find_map(all)?.join("/");
        let (rank, ranks) = RANKS.iter().find_map(|(rank, ranks)| Some((variable(rank)?, variable(ranks)?)))?;
        let (rank, ranks) = (rank.parse().ok()?, ranks.parse().ok()?);
        (rank < ranks).then_some(Self { name, rank, ranks })
    }

    /// Whose log this process begins for a file, in the words of the layer `log`: another job each time that the ranks open the
    /// file.
    pub(super) fn member(&self, file: &Path) -> String {
        static OPENED: Mutex<Option<HashMap<PathBuf, u64>>> = Mutex::new(None);
        let mut opened = OPENED.lock().unwrap_or_else(PoisonError::into_inner);
        let count = opened.get_or_insert_default().entry(file.to_path_buf()).or_default();
        *count += 1;
        let half = |salt: u8| {
            let mut hasher = DefaultHasher::new();
            (salt, &self.name, file, *count).hash(&mut hasher);
            hasher.finish()
        };
        format!("{:016x}{:016x}/{}/{}", half(0), half(1), self.rank, self.ranks)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn ranks_of_a_job_have_one_name_for_each_opening() {
        let told = |rank: &'static str| {
            move |name: &str| match name {
                "OMPI_MCA_orte_precondition_transports" => Some("0123-4567".to_owned()),
                "OMPI_COMM_WORLD_RANK" => Some(rank.to_owned()),
                "OMPI_COMM_WORLD_SIZE" => Some("2".to_owned()),
                _ => None,
            }
        };
        let job = LaunchedJob::told_by(&told("1")).unwrap();
        let (first, second) = (job.member(Path::new("/a")), job.member(Path::new("/a")));
        assert!(first.ends_with("/1/2") && first.len() == 36 && first != second);
        assert!(LaunchedJob::told_by(&told("2")).is_none());
        assert!(LaunchedJob::told_by(&|_| None).is_none());
    }
}
