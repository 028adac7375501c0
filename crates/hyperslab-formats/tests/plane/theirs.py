"""h5py writes files for the data plane to read: theirs.py FOLDER. Prints a line of JSON for every array."""

import json
import os
import sys
import zlib

import h5py
import numpy as np
from expected import values

try:
    import hdf5plugin
except ImportError:
    hdf5plugin = None

FOLDER = sys.argv[1]


def told(dtype):
    """A dtype as in a manifest."""
    if dtype.names is None:
        return dtype.str
    fields = [{"name": n, "offset": dtype.fields[n][1], "type": told(dtype.fields[n][0])} for n in dtype.names]
    return {"size": dtype.itemsize, "fields": fields}


def tell(path, name, data, reason=None, optional=False, write=True):
    beside = f"{path}.{name.replace('/', '_')}.expected"
    data = np.ascontiguousarray(data)
    with open(beside, "wb") as file:
        file.write(data.tobytes())
    print(
        json.dumps(
            {
                "file": path,
                "name": name,
                "dtype": told(data.dtype),
                "shape": data.shape,
                "expected": beside,
                "reason": reason,
                "optional": optional,
                "write": write,
            }
        )
    )


def data_of(dtype, shape):
    return values(np.dtype(dtype), np.arange(int(np.prod(shape, dtype=np.int64)), dtype=np.int64).reshape(shape))


def array(path, file, name, dtype, shape, **options):
    reason, optional = options.pop("reason", None), options.pop("optional", False)
    data = data_of(dtype, shape)
    file.create_dataset(name, data=data, **options)
    tell(path, name, data, reason, optional)


def filters():
    yield "plain", {}
    yield "deflate", {"compression": "gzip", "compression_opts": 6}
    yield "shuffle and deflate", {"compression": "gzip", "shuffle": True}
    yield "fletcher32", {"fletcher32": True}
    yield "all three", {"compression": "gzip", "shuffle": True, "fletcher32": True}
    yield "lzf", {"compression": "lzf"}
    yield "scale-offset", {"scaleoffset": 0, "reason": "filter scale-offset (6)"}
    if hdf5plugin is None:
        return
    yield "zstd", dict(hdf5plugin.Zstd())
    yield "shuffle and zstd", dict(hdf5plugin.Zstd(clevel=9), shuffle=True)
    yield "lz4", dict(hdf5plugin.LZ4())
    yield "bitshuffle", dict(hdf5plugin.Bitshuffle())
    yield "bitshuffle with zstd", dict(hdf5plugin.Bitshuffle(cname="zstd"))
    yield "blosc", dict(hdf5plugin.Blosc())
    yield "blosc2", dict(hdf5plugin.Blosc2())
    yield "bzip2", dict(hdf5plugin.BZip2(), optional=True)


def files():
    for libver in ["earliest", "latest"]:
        yield f"{libver}", {"libver": libver}
        yield f"{libver} with a user block", {"libver": libver, "userblock_size": 512}
        yield f"{libver} in pages", {"libver": libver, "fs_strategy": "page", "fs_page_size": 4096}


def skipped_filters(path, file):
    """Every filter left out in some chunk, as the mask says."""
    data = data_of("<i4", (12, 10))
    created = file.create_dataset(
        "skipped", (12, 10), "<i4", chunks=(3, 10), shuffle=True, compression="gzip", fletcher32=False
    )
    for number in range(4):
        plain = np.ascontiguousarray(data[3 * number : 3 * number + 3])
        mask = number  # bit 0: no shuffle, bit 1: no deflate
        stored = plain.tobytes()
        if not mask & 1:
            stored = np.frombuffer(stored, np.uint8).reshape(-1, 4).T.tobytes()
        if not mask & 2:
            stored = zlib.compress(stored)
        created.id.write_direct_chunk((3 * number, 0), stored, mask)
    tell(path, "skipped", data)


def write():
    for name, options in files():
        path = os.path.join(FOLDER, f"{name}.h5")
        with h5py.File(path, "w", **options) as file:
            for dtype in ["<i4", ">f8", ">u2", "|S5", "|V3"]:
                array(path, file, f"contiguous {dtype[1:]} {dtype[0] == '>'}", dtype, (9, 8))
            for filter, how in filters():
                for dtype in ["<i4", ">i8", "<f8"]:
                    if filter == "scale-offset" and dtype == "<f8":
                        continue
                    array(path, file, f"{filter}/{dtype[1:]} chunked", dtype, (11, 7), chunks=(4, 3), **how)
                for grows in [(None, 7), (11, None), (None, None), (20, 20)]:
                    at = "_".join(str(n) for n in grows)
                    more = dict(how)
                    if grows == (11, None) and name.startswith("latest"):
                        more.pop("optional", None)
                        more["reason"] = "another dimension than the first"
                        if how.get("optional"):
                            continue  # libhdf5 cannot read it either
                    array(path, file, f"{filter}/grows {at}", "<i4", (11, 7), chunks=(4, 3), maxshape=grows, **more)
                array(path, file, f"{filter}/one chunk", "<u4", (11, 7), chunks=(11, 7), **how)
            structure = np.dtype({"names": ["a", "b"], "formats": ["<f4", ">i8"], "offsets": [4, 8], "itemsize": 20})
            array(path, file, "structures", structure, (6, 5), chunks=(4, 3), compression="gzip", shuffle=True)
            array(path, file, "many", "<i2", (64, 64), chunks=(2, 3), compression="gzip")
            skipped_filters(path, file)


if __name__ == "__main__":
    print(json.dumps({"plugins": hdf5plugin is not None}))
    write()
