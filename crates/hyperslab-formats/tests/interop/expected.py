"""What arrays and attributes hold, computed with numpy alone."""

import json
import sys

import numpy as np


def dtype_of(written):
    """The numpy dtype of a manifest: a string, or a compound as {size, fields}."""
    if isinstance(written, str):
        return np.dtype(written)
    return np.dtype(
        {
            "names": [field["name"] for field in written["fields"]],
            "formats": [dtype_of(field["type"]) for field in written["fields"]],
            "offsets": [field["offset"] for field in written["fields"]],
            "itemsize": written["size"],
        }
    )


def values(dtype, k):
    """The elements with the row-major numbers `k`."""
    if dtype.names is not None:
        out = np.zeros(k.shape, dtype)
        for i, name in enumerate(dtype.names):
            out[name] = values(dtype[name], k + i)
        return out
    if dtype.kind == "b":
        return k % 3 == 0
    if dtype.kind in "iu":
        return ((k * 7 + 3) % 100).astype(dtype)
    if dtype.kind == "f":
        return (k * 0.5 - 3).astype(dtype)
    if dtype.kind == "S":
        texts = [f"s{n}".encode()[: dtype.itemsize] for n in k.ravel().tolist()]
        return np.array(texts, dtype).reshape(k.shape)
    if dtype.kind == "V":
        raw = [bytes((n + j) % 256 for j in range(dtype.itemsize)) for n in k.ravel().tolist()]
        return np.frombuffer(b"".join(raw), dtype).reshape(k.shape)
    raise ValueError(f"no values for {dtype}")


def expected(case):
    """The whole array of a case: the fill value, and data where it was written."""
    dtype, shape = dtype_of(case["dtype"]), tuple(case["shape"])
    numbers = np.arange(int(np.prod(shape, dtype=np.int64)), dtype=np.int64).reshape(shape)
    whole = values(dtype, numbers)
    if case["written"] is None:
        return whole
    out = np.empty(shape, dtype)
    out[...] = fill(case)
    box = tuple(slice(start, start + count) for start, count in zip(*case["written"]))
    out[box] = whole[box]
    return out


def fill(case):
    """The fill value of a case."""
    dtype = dtype_of(case["dtype"])
    if case["fill"] is None:
        return np.zeros((), dtype)[()]
    return values(dtype, np.array(case["fill"], np.int64))[()]


def same(found, wanted):
    """Whether two arrays hold the same, padding apart."""
    found, wanted = np.asarray(found), np.asarray(wanted)
    if found.shape != wanted.shape:
        return False
    if wanted.dtype.names is not None:
        if found.dtype.names is None:  # kept as raw bytes
            found = np.frombuffer(found.tobytes(), wanted.dtype).reshape(wanted.shape)
        return found.dtype.names == wanted.dtype.names and all(
            same(found[name], wanted[name]) for name in wanted.dtype.names
        )
    if wanted.dtype.kind == "V":
        return found.tobytes() == wanted.tobytes()
    return bool(np.all(found == wanted))


class Report:
    """Collects what is wrong and what could not be tried."""

    def __init__(self):
        self.wrong = []

    def check(self, name, what, found, wanted):
        if found != wanted:
            self.wrong.append(f"{name}: {what} is {found!r}, expected {wanted!r}")

    def skip(self, name, reason):
        print(f"skip\t{name}\t{' '.join(str(reason).split())}")

    def finish(self):
        for line in self.wrong:
            print(line, file=sys.stderr)
        sys.exit(1 if self.wrong else 0)


def manifest(path):
    with open(path, encoding="utf-8") as file:
        return json.load(file)
