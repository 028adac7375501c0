"""Writes and reads an array at once: there is nothing to gain."""
import h5py, numpy

with h5py.File("whole.h5", "w") as f:
    f.create_dataset("a", data=numpy.arange(4_000_000, dtype="f8").reshape(4000, 1000))
with h5py.File("whole.h5") as f:
    print(f["a"][:].sum())
