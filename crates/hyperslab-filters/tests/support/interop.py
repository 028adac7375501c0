"""Chunks that h5py and hdf5plugin write, and chunks of ours that they read. Usage: write FILE, or read FILE PLAIN."""

import random
import sys

import h5py
import hdf5plugin
import numpy as np


def data(kind, dtype, shape):
    count = int(np.prod(shape))
    rng = np.random.default_rng(count)
    dtype = np.dtype(dtype)
    if kind == "noise" or dtype.kind in "SV":
        raw = rng.integers(0, 256 if kind == "noise" else 3, count * dtype.itemsize, dtype="u1")
        return np.frombuffer(raw.tobytes(), dtype).reshape(shape)
    if kind == "zeros":
        return np.zeros(shape, dtype)
    if kind == "same":
        return np.full(shape, 77, dtype)
    curve = np.sin(np.arange(count) * 0.001) * 100 + rng.random(count) * 0.01
    return curve.astype(dtype).reshape(shape)


KINDS = ["smooth", "smooth", "smooth", "noise", "zeros", "same"]
TYPES = ["u1", "<i2", "<f4", "<f4", "<f8", "<c16", "S3", "V12"]
SHAPES = [(1,), (7,), (1000,), (4099,), (37, 53), (150, 257), (5, 7, 11, 3), (1, 2, 3, 1, 2), (40, 1, 129)]


def filters():
    for level in range(10):
        for shuffle in (False, True):
            yield dict(compression="gzip", compression_opts=level, shuffle=shuffle, fletcher32=level % 2 == 0)
    yield dict(shuffle=True)
    yield dict(fletcher32=True)
    yield dict(shuffle=True, fletcher32=True)
    for shuffle in (False, True):
        yield dict(compression="lzf", shuffle=shuffle)
        yield dict(compression="lzf", shuffle=shuffle, fletcher32=True)
    for block in (0, 64, 1000, 65536):
        for shuffle in (False, True):
            yield dict(hdf5plugin.LZ4(nbytes=block), shuffle=shuffle)
    for level in (1, 3, 9, 19):
        yield dict(hdf5plugin.Zstd(clevel=level), shuffle=level != 9, fletcher32=level == 3)
    for elements in (0, 8, 1024):
        yield dict(hdf5plugin.Bitshuffle(nelems=elements, cname="none"))
        yield dict(hdf5plugin.Bitshuffle(nelems=elements, cname="lz4"))
        yield dict(hdf5plugin.Bitshuffle(nelems=elements, cname="zstd", clevel=5))
    for codec in ("blosclz", "lz4", "lz4hc", "snappy", "zlib", "zstd"):
        if codec == "snappy" and not hdf5plugin.get_config().build_config.cpp11:
            continue
        for level in (0, 1, 5, 7, 9):
            for sorting in (0, 1, 2):
                yield dict(hdf5plugin.Blosc(cname=codec, clevel=level, shuffle=sorting))
            for sorting in (0, 1, 2, 3) if codec != "snappy" else ():
                yield dict(hdf5plugin.Blosc2(cname=codec, clevel=level, filters=sorting), fletcher32=level == 7)


def stacks():
    """Orders of filters that h5py's arguments cannot ask for."""
    blosc, blosc2 = (32001, (0, 0, 0, 0, 5, 1, 1)), (32026, (0, 0, 0, 0, 5, 1, 5))
    small_blocks = (32026, (0, 4096, 0, 0, 5, 1, 1))
    yield [3, blosc2]
    yield [3, (32015, (3,)), 3]
    yield [(1, (6,)), (32015, (3,))]
    yield [2, (32004, (0,)), (1, (1,)), 3]
    yield [blosc, (32000, ())]
    yield [small_blocks]
    yield [(32008, (0, 0, 0, 0, 0)), (1, (6,))]


def cases():
    draw = random.Random(7)
    number = 0
    for wish in filters():
        for _ in range(5):
            yield number, draw.choice(KINDS), draw.choice(TYPES), draw.choice(SHAPES), wish
            number += 1
        # Large enough for several blocks, but the highest levels take long.
        if 9 not in np.atleast_1d(wish.get("compression_opts", 0)):
            yield number, "smooth", "<f4", (1 << 17,) if number % 2 else (256, 512), wish
            number += 1
    for stack in stacks():
        for shape in ((1000,), (64, 65), (5, 300, 9)):
            for kind in ("smooth", "noise"):
                yield number, kind, "<f4", shape, stack
                number += 1


def create(file, name, dtype, shape, wish):
    if isinstance(wish, dict):
        return file.create_dataset(name, shape=shape, dtype=dtype, chunks=shape, **wish)
    plist = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
    plist.set_chunk(shape)
    for step in wish:
        if step == 2:
            plist.set_shuffle()
        elif step == 3:
            plist.set_fletcher32()
        else:
            plist.set_filter(step[0], h5py.h5z.FLAG_OPTIONAL, step[1])
    space = h5py.h5s.create_simple(shape)
    kind = h5py.h5t.py_create(np.dtype(dtype), logical=True)
    return h5py.Dataset(h5py.h5d.create(file.id, name.encode(), kind, space, plist))


def memory_file():
    return h5py.File("memory", "w", driver="core", backing_store=False)


def write(path):
    with open(path, "wb") as out:
        for number, kind, dtype, shape, wish in cases():
            with memory_file() as file:
                array = create(file, "a", dtype, shape, wish)
                plain = data(kind, dtype, shape)
                array[...] = plain
                file.flush()
                plist = array.id.get_create_plist()
                stated = [plist.get_filter(i) for i in range(plist.get_nfilters())]
                stated = ";".join(f"{s[0]} {s[1] & 1} {','.join(map(str, s[2]))}" for s in stated)
                mask, stored = array.id.read_direct_chunk((0,) * len(shape))
                plain = plain.tobytes()
                words = [number, f"{kind} {dtype} {shape} {wish}", stated, mask, len(plain), len(stored)]
                out.write(("\t".join(map(str, words)) + "\n").encode())
                out.write(plain)
                out.write(stored)


def read(path):
    # A file that is closed in between: libhdf5 forgets the mask of a chunk that it wrote directly and still has open.
    wrong = count = 0
    with open(path, "rb") as ours, h5py.File(path + ".h5", "w") as file:
        for number, kind, dtype, shape, wish in cases():
            words = ours.readline().decode().split("\t")
            assert int(words[0]) == number
            array = create(file, str(number), dtype, shape, wish)
            array.id.write_direct_chunk((0,) * len(shape), ours.read(int(words[2])), int(words[1]))
    with h5py.File(path + ".h5") as file:
        for number, kind, dtype, shape, wish in cases():
            what = f"{number} {kind} {dtype} {shape} {wish}"
            try:
                same = file[str(number)][...].tobytes() == data(kind, dtype, shape).tobytes()
            except Exception as error:
                same, what = False, f"{what}: {error}"
            if not same:
                wrong += 1
                print("WRONG", what)
            count += 1
    print("read", count)
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    {"write": write, "read": read}[sys.argv[1]](sys.argv[2])
