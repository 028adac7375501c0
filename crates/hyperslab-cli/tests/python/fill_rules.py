"""The fill rules of docs/workload-format.md, computed with numpy alone."""

import numpy as np

U32, U64 = np.uint32, np.uint64
WORD = 0xFFFFFFFFFFFFFFFF


def hash_text(text):
    h = 0xCBF29CE484222325
    for byte in text.encode():
        h = (h ^ byte) * 0x00000100000001B3 & WORD
    return h


def mix(x):
    """Of a Python integer."""
    x = (x + 0x9E3779B97F4A7C15) & WORD
    for _ in range(2):
        x = (x ^ (x >> 32)) * 0xD6E8FEB86659FD93 & WORD
    return x ^ (x >> 32)


def mix_all(x):
    """Of an array of uint64."""
    x = x + U64(0x9E3779B97F4A7C15)
    for _ in range(2):
        x = (x ^ (x >> U64(32))) * U64(0xD6E8FEB86659FD93)
    return x ^ (x >> U64(32))


def bits32(i, salt):
    low = (i & U64(0xFFFFFFFF)).astype(U32) ^ U32(salt & 0xFFFFFFFF)
    x = low + (i >> U64(32)).astype(U32) + U32(salt >> 32)
    x = (x ^ (x >> U32(16))) * U32(0x9E3779B1)
    x = (x ^ (x >> U32(15))) * U32(0x85EBCA77)
    return x ^ (x >> U32(16))


def array_salt(seed, name):
    return mix((seed & WORD) ^ hash_text(name))


def values(dtype, fill, salt, i):
    """The elements with the indices `i`; `fill` is a rule, or a list of one per field of a compound."""
    dtype = np.dtype(dtype)
    if dtype.names is not None:
        out = np.zeros(i.shape, dtype)
        for number, name in enumerate(dtype.names):
            rule = fill[number] if isinstance(fill, list) else fill
            out[name] = values(dtype[name], rule, mix(salt ^ hash_text(name)), i)
        return out
    n = i + U64(salt % 4096)
    wide = dtype.itemsize == 8
    if dtype.kind == "f" and fill == "random" and wide:
        return ((mix_all(i ^ U64(salt)) >> U64(11)) / 2.0**53).astype(dtype)
    if dtype.kind == "f" and fill == "random":
        keep = {4: 24, 2: 11}[dtype.itemsize]
        return ((bits32(i, salt) >> U32(32 - keep)).astype("f8") / 2.0**keep).astype(dtype)
    if dtype.kind == "f":
        count = n % U64(32768) if dtype.itemsize == 2 else n
        # 1024 is a power of two: dividing before or after rounding gives the same.
        return (count.astype("f8") / {"index": 1, "ramp": 1024}[fill]).astype(dtype)
    if dtype.kind in "iu":
        bits = n if fill != "random" else mix_all(i ^ U64(salt)) if wide else bits32(i, salt)
        return bits.astype(f"u{dtype.itemsize}").view(f"{dtype.kind}{dtype.itemsize}").astype(dtype)
    raise ValueError(f"no rule here for {dtype}")


def whole(dtype, fill, name, seed, shape, first=0):
    """All elements of an array of `shape` whose first has the index `first`."""
    i = np.arange(first, first + int(np.prod(shape, dtype=np.int64)), dtype=U64).reshape(shape)
    return values(dtype, fill, array_salt(seed, name), i)
