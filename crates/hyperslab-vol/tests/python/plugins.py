"""hdf5plugin's filters: python plugins.py write|check FOLDER"""

import sys

import h5py
import hdf5plugin
import numpy as np

FILTERS = {
    "zstd": hdf5plugin.Zstd(clevel=5),
    "lz4": hdf5plugin.LZ4(),
    "blosc": hdf5plugin.Blosc(cname="zstd", clevel=5, shuffle=hdf5plugin.Blosc.SHUFFLE),
    "blosc2": hdf5plugin.Blosc2(cname="zstd", clevel=5, filters=hdf5plugin.Blosc2.SHUFFLE),
    "bitshuffle": hdf5plugin.Bitshuffle(cname="lz4"),
    "bzip2": hdf5plugin.BZip2(),
    "zfp": hdf5plugin.Zfp(reversible=True),
    "fcidecomp": hdf5plugin.FciDecomp(),
    "sz3": hdf5plugin.SZ3(absolute=0.01),
}
KINDS = {"f4": "f4", "i2": "i2", "u1": "u1", "f8": ">f8"}


def values(kind):
    return (np.sin(np.arange(300 * 200) / 500) * 100 + 100).reshape(300, 200).astype(kind)


def names():
    for name in FILTERS:
        for kind in KINDS:
            if (name == "zfp" and kind not in ("f4",)) or (name == "sz3" and kind != "f4") or (name == "fcidecomp" and kind not in ("i2", "u1")):
                continue
            yield f"{name}-{kind}", FILTERS[name], KINDS[kind]


def write(folder):
    with h5py.File(f"{folder}/plugins.h5", "w") as file:
        for name, words, kind in names():
            dataset = file.create_dataset(name, (300, 200), kind, chunks=(64, 200), **words)
            dataset[...] = values(kind)
            dataset[5:70, 20:40] = values(kind)[100:165, 20:40]
            compare(file, name, kind)


def compare(file, name, kind):
    expected = values(kind)
    expected[5:70, 20:40] = values(kind)[100:165, 20:40]
    found = file[name][...]
    assert np.allclose(found, expected, atol=0.05 if name.startswith("sz3") else 0, rtol=0), name
    assert np.array_equal(file[name][60:70, 3::7], found[60:70, 3::7]), name


def check(folder):
    with h5py.File(f"{folder}/plugins.h5") as file:
        for name, _, kind in names():
            compare(file, name, kind)


if __name__ == "__main__":
    {"write": write, "check": check}[sys.argv[1]](sys.argv[2])
