"""Many small arrays with attributes."""
import h5py, numpy

with h5py.File("small.h5", "w") as f:
    for i in range(400):
        g = f.create_group(f"g{i}")
        g.create_dataset("v", data=numpy.arange(100))
        g.attrs["number"] = i
with h5py.File("small.h5") as f:
    print(sum(int(f[f"g{i}/v"][5]) for i in range(400)))
