"""A table that grows row by row, in chunks of one row."""
import h5py, numpy

with h5py.File("log.h5", "w") as f:
    d = f.create_dataset("log", (0, 64), maxshape=(None, 64), dtype="f8", chunks=(1, 64))
    row = numpy.arange(64, dtype="f8")
    for i in range(4000):
        d.resize(i + 1, axis=0)
        d[i] = row
with h5py.File("log.h5") as f:
    print(f["log"][:].sum())
