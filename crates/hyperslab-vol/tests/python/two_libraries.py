"""Two libhdf5 in one process, h5py's and netCDF4's, which take turns with the same and with different files.

    python two_libraries.py FOLDER
"""

import os
import sys

os.environ["HDF5_USE_FILE_LOCKING"] = "FALSE"

import h5py
import netCDF4
import numpy as np

folder = sys.argv[1]
N = 30_000


def values(at):
    return np.arange(at, at + N, dtype="i4")


ours = h5py.File(f"{folder}/h5py.h5", "w")
theirs = netCDF4.Dataset(f"{folder}/netcdf.nc", "w")
theirs.createDimension("x", N)
for at in range(5):
    ours.create_dataset(f"packed{at}", data=values(at), chunks=(1000,), compression="gzip", shuffle=True)
    ours.create_dataset(f"plain{at}", data=values(at))
    variable = theirs.createVariable(f"packed{at}", "i4", ("x",), zlib=True, chunksizes=(1000,))
    variable[:] = values(at)
    theirs.createVariable(f"plain{at}", "i4", ("x",))[:] = values(at)
    assert np.array_equal(ours[f"packed{at}"][...], variable[:])
ours.close()
theirs.close()

# Each reads and changes what the other has written and closed.
for turn in range(4):
    with netCDF4.Dataset(f"{folder}/h5py.h5", "r") as file:
        for at in range(5):
            for name in ("packed", "plain"):
                found = file[f"{name}{at}"][:]
                assert np.array_equal(found[turn:], values(at)[turn:]) and (found[:turn] == -1).all(), (name, at, turn)
    with h5py.File(f"{folder}/h5py.h5", "r+") as file:
        for dataset in file.values():
            dataset[turn] = -1
    with h5py.File(f"{folder}/netcdf.nc", "r") as file:
        for at in range(5):
            for name in ("packed", "plain"):
                found = file[f"{name}{at}"][:]
                assert np.array_equal(found[turn:], values(at)[turn:]) and (found[:turn] == -2).all(), (name, at, turn)
    with netCDF4.Dataset(f"{folder}/netcdf.nc", "a") as file:
        for name in file.variables:
            file[name][turn] = -2

# Both keep a file open, and leave it to the end of the process.
ours = h5py.File(f"{folder}/left.h5", "w")
ours["a"] = values(0)
theirs = netCDF4.Dataset(f"{folder}/left.nc", "w")
theirs.createDimension("x", N)
theirs.createVariable("a", "i4", ("x",))[:] = values(0)
