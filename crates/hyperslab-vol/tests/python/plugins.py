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
# Those that leave themselves out where they save nothing.
GIVING_UP = {
    "lzf": {"compression": "lzf"},
    "blosc": hdf5plugin.Blosc(cname="lz4", clevel=5),
    "blosc copying": hdf5plugin.Blosc(cname="lz4", clevel=0),
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


        for name, words in GIVING_UP.items():
            file.create_dataset(f"noise {name}", data=noise(), chunks=(4000,), **words)
        for name in GIVING_UP:
            stored = [file[f"noise {name}"].id.get_chunk_info(number) for number in range(3)]
            assert [(one.filter_mask, one.size) for one in stored] == [(1, 16000)] * 3, (name, stored)
            file[f"noise {name}"][5:9] = 7
            assert np.array_equal(file[f"noise {name}"][4:10], np.concatenate([noise()[4:5], [7] * 4, noise()[9:10]]))


def noise():
    return np.random.default_rng(1).integers(0, 1 << 32, 12_000, dtype="u4")


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
        for name in GIVING_UP:
            expected = noise()
            expected[5:9] = 7
            assert np.array_equal(file[f"noise {name}"][...], expected), name


if __name__ == "__main__":
    {"write": write, "check": check}[sys.argv[1]](sys.argv[2])
