"""Writes rows and reads columns of a matrix that is stored by rows."""
import h5py, numpy

block = numpy.random.default_rng(0).random((100, 4000), dtype="f4")
with h5py.File("matrix.h5", "w") as f:
    x = f.create_dataset("x", (2000, 4000), "f4", chunks=(1, 4000))
    for i in range(0, 2000, 100):
        x[i:i + 100] = block
with h5py.File("matrix.h5") as f:
    x = f["x"]
    print(sum(float(x[:, j].sum()) for j in range(0, 4000, 40)))
