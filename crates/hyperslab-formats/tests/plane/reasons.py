"""h5py writes what the data plane must leave to libhdf5: reasons.py FOLDER. All arrays hold 0, 1, 2, ... as <i4."""

import ctypes
import glob
import os
import sys

import h5py
import numpy as np

FOLDER = sys.argv[1]
NUMBERS = np.arange(60, dtype="<i4").reshape(10, 6)


def external(file):
    file.create_dataset("external", data=NUMBERS, external=[(os.path.join(FOLDER, "raw.bin"), 0, 240)])


def virtual(file):
    with h5py.File(os.path.join(FOLDER, "source.h5"), "w") as source:
        source["numbers"] = NUMBERS
    layout = h5py.VirtualLayout((10, 6), "<i4")
    layout[...] = h5py.VirtualSource(os.path.join(FOLDER, "source.h5"), "numbers", (10, 6))
    file.create_virtual_dataset("virtual", layout)


def terminated(file):
    """Strings that end in NUL: the same bytes as ours, yet another type."""
    kind = h5py.h5t.C_S1.copy()
    kind.set_size(4)
    kind.set_strpad(h5py.h5t.STR_NULLTERM)
    space = h5py.h5s.create_simple((60,))
    created = h5py.h5d.create(file.id, b"terminated", kind, space)
    created.write(h5py.h5s.ALL, h5py.h5s.ALL, np.array([f"{n}".encode() for n in range(60)], "S4"), kind)


def whole_edges(file):
    """Chunks at the edge without filters; h5py has no word for it, its libhdf5 has."""
    folder = os.path.join(os.path.dirname(os.path.dirname(h5py.__file__)), "h5py.libs")
    library = ctypes.CDLL(glob.glob(os.path.join(folder, "libhdf5-*"))[0])
    library.H5Pset_chunk_opts.argtypes = [ctypes.c_int64, ctypes.c_uint]
    properties = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
    properties.set_chunk((4, 4))
    properties.set_deflate(3)
    if library.H5Pset_chunk_opts(properties.id, 2) < 0:
        raise OSError("H5Pset_chunk_opts failed")
    space = h5py.h5s.create_simple((10, 6))
    created = h5py.h5d.create(file.id, b"edges", h5py.h5t.STD_I32LE, space, properties)
    created.write(h5py.h5s.ALL, h5py.h5s.ALL, NUMBERS)


with h5py.File(os.path.join(FOLDER, "theirs.h5"), "w", libver="latest") as file:
    file.create_dataset("scale-offset", data=NUMBERS, chunks=(4, 4), scaleoffset=0)
    file.create_dataset("grows", data=NUMBERS, chunks=(4, 4), maxshape=(10, None))
    for make in [external, virtual, terminated, whole_edges]:
        try:
            make(file)
        except (OSError, IndexError, AttributeError) as error:
            print(f"{make.__name__}\t{error}")
