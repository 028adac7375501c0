# The wheel alone: a program that runs, a connector that h5py's libhdf5 loads after it has started.
import subprocess

import h5py
import numpy as np

import hyperslab

data = np.arange(1 << 20, dtype="f4")
with hyperslab.enable():
    with h5py.File("smoke.h5", "w") as file:
        file.create_dataset("x", data=data, chunks=(1 << 16,), compression="gzip", shuffle=True)
said = hyperslab.stats()
assert said.written.accelerated_calls == 1, said
with h5py.File("smoke.h5") as file:
    assert (file["x"][...] == data).all()
assert hyperslab.stats() == said
with hyperslab.open("smoke.h5") as file:
    assert (file["x"][[5, 3]] == data[[5, 3]]).all()
results = hyperslab.bench(format="posix,hdf5,zarr", verify=True)
assert len(results["cases"]) >= 3, results
print(said)
print(subprocess.run(["hyperslab", "--version"], check=True, capture_output=True, text=True).stdout.strip())
