"""Element types, contents and selections. Everything follows from small numbers, so that a program is its seed."""

import numpy as np

DTYPES = {
    "f8": np.dtype("<f8"),
    "f4": np.dtype("<f4"),
    "i4": np.dtype("<i4"),
    "i2be": np.dtype(">i2"),
    "u1": np.dtype("u1"),
    "s8": np.dtype("S8"),
    "pair": np.dtype([("a", "<i4"), ("b", "<f8")]),
}


def contents(dtype, shape, seed):
    """An array of this type; other seeds give other elements, none of which is a fill value."""
    dtype = DTYPES[dtype]
    count = int(np.prod(shape))
    numbers = (np.arange(count, dtype="i8") * 7 + seed * 31) % 97 + 1 + seed % 20
    if dtype.names:
        out = np.zeros(count, dtype)
        for position, name in enumerate(dtype.names):
            out[name] = numbers + position
    elif dtype.kind == "S":
        out = np.array([b"v%d" % number for number in numbers], dtype)
    else:
        out = numbers.astype(dtype)
    return out.reshape(shape)


def selection(slices):
    """Slices from their starts, stops and steps; all of it if there are none."""
    return tuple(slice(*one) for one in slices) if slices else Ellipsis


def strings(count, seed):
    """Text of variable length."""
    return ["x" * ((index + seed) % 5) + str(seed) for index in range(count)]
