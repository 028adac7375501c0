"""Makes fuzz/seeds/hdf5_file: small HDF5 files, one for each way of storing elements that the direct path knows.

    python fuzz/make_hdf5_seeds.py fuzz/seeds/hdf5_file
"""
import os
import sys

import h5py
import numpy as np

FOLDER = sys.argv[1]
NUMBERS = np.arange(60, dtype="<i4").reshape(6, 10)
PAIR = np.dtype([("a", "<f4"), ("b", "<i8")])


def contiguous(f):
    f["x"] = NUMBERS
    f["x"].attrs["unit"] = "m"
    f.create_group("g")["big_endian"] = np.arange(8, dtype=">f8")


def compact(f):
    space, kind = h5py.h5s.create_simple((6,)), h5py.h5t.STD_I16LE
    plist = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
    plist.set_layout(h5py.h5d.COMPACT)
    dataset = h5py.h5d.create(f.id, b"x", kind, space, plist)
    dataset.write(h5py.h5s.ALL, h5py.h5s.ALL, np.arange(6, dtype="<i2"))


def chunked(f):
    f.create_dataset("x", data=NUMBERS, chunks=(4, 4), fillvalue=7)


def resizable(f):
    f.create_dataset("x", data=NUMBERS, chunks=(2, 4), maxshape=(None, 10))
    f.create_dataset("y", data=NUMBERS, chunks=(2, 4), maxshape=(None, None))


def coded(f):
    f.create_dataset("x", data=NUMBERS, chunks=(4, 5), compression="gzip", shuffle=True, fletcher32=True)
    f.create_dataset("y", data=NUMBERS, chunks=(3, 10), compression="lzf")


def holes(f):
    x = f.create_dataset("x", (40, 40), "<f8", chunks=(8, 8), fillvalue=-1.5, compression="gzip")
    x[8:16, 8:16] = 2.0


def records(f):
    f.create_dataset("x", data=np.zeros(12, PAIR), chunks=(5,))
    f["s"] = np.array([b"one", b"two"])


def tree(f):
    for n in range(5):
        f[f"a/b{n}/x"] = np.arange(n + 1, dtype="u1")
    f["soft"] = h5py.SoftLink("/a/b1/x")


for version, bounds in [("old", ("earliest", "v108")), ("new", ("latest", "latest"))]:
    for make in (contiguous, compact, chunked, resizable, coded, holes, records, tree):
        path = os.path.join(FOLDER, f"{make.__name__}-{version}")
        with h5py.File(path, "w", libver=bounds) as f:
            make(f)
