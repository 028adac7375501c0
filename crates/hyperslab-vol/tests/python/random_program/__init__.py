"""Random programs that use HDF5 in every way that h5py has, with a model of what must be in the files."""
