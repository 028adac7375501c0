//! The HDF5 data plane: elements between memory and a file whose layout is known.
