"""Two files for the HDF5 tools, with something of everything: python for_tools.py FOLDER"""

import sys

import h5py
import numpy as np

for name, change in (("all", 0), ("other", 1)):
    with h5py.File(f"{sys.argv[1]}/{name}.h5", "w") as file:
        numbers = np.arange(2000, dtype="<i4").reshape(40, 50)
        numbers[3, 4] += change
        packed = file.create_dataset("packed", data=numbers, chunks=(16, 16), compression="gzip", shuffle=True, maxshape=(None, 50))
        packed.attrs["units"] = "m"
        file.create_dataset("plain", data=numbers.astype(">f8") / 3)
        file.create_dataset("checked", data=numbers, chunks=(10, 10), fletcher32=True)
        file.create_dataset("empty", (5,), "f4", chunks=(5,), fillvalue=2.5)
        file.create_dataset("text", data=["one", "two", "three"])
        file.create_dataset("lists", (2,), h5py.vlen_dtype("i4"))
        file["lists"][0] = [1, 2, 3]
        file.create_dataset("records", data=np.array([(1, 2.5, b"x")], [("a", "i4"), ("b", "f8"), ("c", "S3")]))
        file.create_dataset("references", data=np.array([packed.ref], h5py.ref_dtype))
        file["group/link"] = h5py.SoftLink("/packed")
        file["group/hard"] = file["plain"]
        file["type"] = np.dtype("i2")
        file.create_dataset("scalar", data=7 + change)
        file.create_dataset("null", data=h5py.Empty("f4"))
