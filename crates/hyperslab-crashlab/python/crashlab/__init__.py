"""Random HDF5 programs, what they must leave behind, and how files are held against it."""
