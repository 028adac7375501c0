//! Which driver of libhdf5 reaches the file.

use super::options::{DriverChoice, Options};
use super::ranks::Changes;
use hyperslab_core::{Communicator, Error, Result};

/// A driver of libhdf5. The number is the handle of the MPI communicator.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Driver {
    /// POSIX calls of one process.
    Default,
    Mpio(i32),
    Subfiling(i32),
}

impl Driver {
    /// The driver for a file that these ranks share.
    pub(super) fn choose(options: &Options, comm: &dyn Communicator) -> Result<Self> {
        let handle = comm.mpi_handle().filter(|_| cfg!(feature = "parallel-hdf5"));
        let alone = comm.size() == 1 || comm.one_process();
        match (options.driver, handle) {
            (DriverChoice::Auto, _) if alone => Ok(Self::Default),
            (DriverChoice::Auto | DriverChoice::Mpio, Some(handle)) => Ok(Self::Mpio(handle)),
            (DriverChoice::Subfiling, Some(handle)) => Ok(Self::Subfiling(handle)),
            (DriverChoice::Auto, None) if cfg!(feature = "parallel-hdf5") => {
                Err(Error::unsupported("open", "ranks in several processes need MPI to share an HDF5 file")
                    .hint("start the ranks with mpirun, or use thread ranks"))
            }
            (DriverChoice::Auto, None) => {
                Err(Error::unsupported("open", "ranks in several processes need parallel HDF5, which this build lacks")
                    .hint("use thread ranks, or a build with the feature parallel-hdf5"))
            }
            (DriverChoice::Mpio | DriverChoice::Subfiling, None) => {
                Err(Error::unsupported("open", "driver=mpio and driver=subfiling need ranks of an MPI job")
                    .hint("start the ranks with mpirun, or use driver=auto"))
            }
        }
    }

    /// Who changes files that are reached like this.
    pub(super) fn changes(self) -> Changes {
        if self == Self::Default { Changes::FirstRank } else { Changes::EveryRank }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use hyperslab_comm::Solo;

    #[test]
    fn one_rank_needs_no_mpi_unless_it_asks() {
        let mut options = Options::default();
        assert_eq!(Driver::choose(&options, &*Solo::shared()).unwrap(), Driver::Default);
        for wanted in [DriverChoice::Mpio, DriverChoice::Subfiling] {
            options.driver = wanted;
            assert!(Driver::choose(&options, &*Solo::shared()).is_err());
        }
    }
}
