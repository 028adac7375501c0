"""Types of elements: their values, their stored and null forms, and how they are compared."""

import h5py
import numpy as np


class Kind:
    """One type of elements. `group` is what operations ask for: number, plain, compound, variable, reference."""

    def __init__(self, name, dtype, group, make, fill=None, null=None):
        self.name, self.dtype, self.group = name, dtype, group
        self.make, self.fill_of, self.null = make, fill, null

    def values(self, seed, shape):
        """Random elements; the same for the same seed."""
        shape = tuple(shape)
        found = self.make(np.random.default_rng(seed), int(np.prod(shape, dtype=int)))
        if self.dtype.kind == "O":
            array = np.empty(len(found), self.dtype)
            array[:] = found
            return array.reshape(shape)
        # The view keeps what h5py notes beside a type.
        return np.ascontiguousarray(found).astype(self.dtype).view(self.dtype).reshape(shape)

    def fill(self, seed):
        """A fill value, for kinds that can have one."""
        return None if self.fill_of is None else self.fill_of(np.random.default_rng(seed))

    def blank(self, shape, fill=None):
        """What is read where nothing was written."""
        array = np.zeros(tuple(shape), self.dtype)
        if self.dtype.kind == "O":
            flat = array.reshape(-1)
            for at in range(flat.size):
                flat[at] = self.null if fill is None else fill
        elif fill is not None:
            array[...] = fill
        return array


def numbers(dtype):
    dtype = np.dtype(dtype)

    def make(rng, count):
        if dtype.kind == "f":
            style = rng.integers(3)
            if style == 0:
                return rng.standard_normal(count)
            if style == 1:
                return np.cumsum(rng.standard_normal(count)) % 1000
            return rng.choice([0.0, -0.0, 1.5, np.inf, -np.inf, np.nan, 65504, 6e-8, -3e4, 1e30], count)
        if dtype.kind == "c":
            return rng.standard_normal(count) + 1j * rng.standard_normal(count)
        limits = np.iinfo(dtype)
        if rng.integers(2):
            return rng.integers(0, 100, count)
        return rng.integers(limits.min, limits.max, count, dtype=dtype.newbyteorder("="), endpoint=True)

    with np.errstate(all="ignore"):
        return Kind(dtype.str, dtype, "number", quiet(make, dtype), fill=lambda rng: dtype.type(int(rng.integers(1, 99))))


def quiet(make, dtype):
    """Values that do not fit become infinite without a word."""

    def made(rng, count):
        with np.errstate(all="ignore"):
            return np.asarray(make(rng, count)).astype(dtype)

    return made


def records(rng, count, dtype):
    array = np.zeros(count, dtype)
    for name in dtype.names:
        field = dtype.fields[name][0]
        base, shape = (field.subdtype or (field, ()))
        total = count * int(np.prod(shape, dtype=int))
        if base.names:
            array[name] = records(rng, total, base).reshape((count, *shape))
        elif base.kind == "O":
            array[name] = [text(rng) for _ in range(count)]
        elif base.kind == "S":
            array[name] = words(rng, count, base.itemsize)
        else:
            array[name] = rng.integers(0, 100, total).reshape((count, *shape))
    return array


def text(rng):
    return ("é" * int(rng.integers(3)) + "abcdefghij" * 3)[: int(rng.integers(0, 30))].encode()


def words(rng, count, size):
    letters = np.frombuffer(b"abcdefgh", "S1")
    picked = rng.choice(letters, (count, size)).reshape(count, size)
    return np.array([b"".join(row[: int(rng.integers(size + 1))]) for row in picked], f"S{size}")


def arrays(rng, count):
    # Lists of one length would be taken for rows.
    return [rng.integers(-9, 9, at if at < 2 else int(rng.integers(0, 5))).astype("<i4") for at in range(count)]


FLAT = np.dtype([("a", "<i4"), ("b", "<f8"), ("c", "u1")])
NESTED = np.dtype([("a", "<i4"), ("b", ">f8", (2,)), ("c", [("x", "u1"), ("y", "<f4")]), ("s", "S5")])
WITH_TEXT = np.dtype([("a", "<i2"), ("t", h5py.string_dtype())])
ENUM = h5py.enum_dtype({"RED": 0, "GREEN": 1, "BLUE": 42}, basetype="i2")
BLOB = np.dtype("V7")
TIME = h5py.opaque_dtype(np.dtype("<M8[us]"))

KINDS = {
    kind.name: kind
    for kind in [
        *(numbers(order + code) for code in ("i2", "i4", "i8", "u2", "u4", "u8", "f2", "f4", "f8") for order in "<>"),
        *(numbers(code) for code in ("i1", "u1", "<c8", ">c16")),
        Kind("bool", np.dtype(bool), "plain", lambda rng, n: rng.integers(2, size=n).astype(bool)),
        Kind("enum", ENUM, "plain", lambda rng, n: rng.choice([0, 1, 42], n)),
        Kind("blob", BLOB, "plain", lambda rng, n: np.frombuffer(rng.bytes(7 * n), BLOB)),
        Kind("time", TIME, "plain", lambda rng, n: rng.integers(0, 10**15, n).astype("<M8[us]")),
        Kind("S6", np.dtype("S6"), "plain", lambda rng, n: words(rng, n, 6)),
        Kind("utf8", h5py.string_dtype("utf-8", 9), "plain", lambda rng, n: words(rng, n, 9)),
        Kind("flat", FLAT, "compound", lambda rng, n: records(rng, n, FLAT)),
        Kind("nested", NESTED, "compound", lambda rng, n: records(rng, n, NESTED)),
        Kind("with_text", WITH_TEXT, "record", lambda rng, n: records(rng, n, WITH_TEXT), null=b""),
        Kind("text", h5py.string_dtype(), "variable", lambda rng, n: [text(rng) for _ in range(n)], null=b""),
        Kind("ascii", h5py.string_dtype("ascii"), "variable", lambda rng, n: [b"x" * int(rng.integers(9)) for _ in range(n)], null=b""),
        Kind("lists", h5py.vlen_dtype(np.dtype("<i4")), "variable", lambda rng, n: arrays(rng, n), null=np.array([], "<i4")),
    ]
}


def record_blank(array):
    """Null text in a new array of records."""
    if array.dtype.names and "t" in array.dtype.names:
        array["t"] = b""
    return array


def convert(values, dtype):
    """Numbers in another type, by the library's own rules, which know limits that numpy does not."""
    values, dtype = np.asarray(values), np.dtype(dtype)
    if values.dtype == dtype:
        return values.copy()
    size = max(values.dtype.itemsize, dtype.itemsize)
    buffer = np.zeros(values.size * size, "u1")
    buffer[: values.nbytes] = np.frombuffer(values.tobytes(), "u1")
    h5py.h5t.convert(h5py.h5t.py_create(values.dtype), h5py.h5t.py_create(dtype), values.size, buffer)
    return np.frombuffer(buffer[: values.size * dtype.itemsize].tobytes(), dtype).reshape(values.shape)


def same(expected, actual):
    """Whether two arrays hold the same elements: to the bit, text and lists by content."""
    expected, actual = np.asarray(expected), np.asarray(actual)
    if expected.shape != actual.shape:
        return False
    if expected.dtype.names:
        return all(same(expected[name], actual[name]) for name in expected.dtype.names)
    if expected.dtype.kind == "O":
        return all(same_object(a, b) for a, b in zip(expected.reshape(-1), actual.reshape(-1)))
    if expected.dtype.kind == "V" and expected.dtype.fields is None:
        return expected.tobytes() == actual.tobytes()
    if expected.dtype.kind in "fc":
        # Which not-a-number it is may change where a type is converted.
        gone = np.isnan(expected)
        if not np.array_equal(gone, np.isnan(actual)):
            return False
        expected, actual = expected[~gone], actual[~gone]
    return np.ascontiguousarray(expected.astype(actual.dtype)).tobytes() == np.ascontiguousarray(actual).tobytes()


def same_object(a, b):
    if isinstance(a, np.ndarray) or isinstance(b, np.ndarray):
        return np.array_equal(np.asarray(a), np.asarray(b))
    a, b = (x.encode() if isinstance(x, str) else x for x in (a, b))
    return (a or b"") == (b or b"")
