"""Fields of elements, written one after another: python fields.py FOLDER.

The connector may hold some until all are there. Whoever looks at the file meanwhile in one of the ways that HDF5 has must see them.
"""

import os
import subprocess
import sys
import tempfile
import threading

import h5py
import numpy as np

N = 60_000
DTYPE = np.dtype([("a", "<f8"), ("b", "<i2"), ("c", "<f4")])
PADDED = np.dtype({"names": ["a", "b", "c"], "formats": ["<f8", "<i2", "<f4"], "offsets": [0, 8, 12], "itemsize": 24})


def table(seed=1, dtype=DTYPE, count=N):
    array = np.zeros(count, dtype)
    for at, name in enumerate(dtype.names):
        array[name] = np.random.default_rng(seed + at).integers(0, 1000, count)
    return array


def put(dataset, array, names):
    for name in names:
        dataset[name] = array[name]


LOOK = """
import sys, h5py, numpy as np
for path, names in zip(sys.argv[1::2], sys.argv[2::2]):
    found, wanted = h5py.File(path)["x"][...], np.load(path + ".npy")
    for name in found.dtype.names:
        assert np.array_equal(found[name], wanted[name] if name in names else 0 * wanted[name]), (path, name)
"""
LATER = []


def look(words):
    """Python without the connector, perhaps while the file is open here."""
    clean = {key: value for key, value in os.environ.items() if not key.startswith(("HDF5_", "HYPERSLAB_"))}
    clean["HDF5_USE_FILE_LOCKING"] = "FALSE"
    done = subprocess.run([sys.executable, "-c", LOOK, *words], capture_output=True, text=True, env=clean, timeout=60)
    assert done.returncode == 0, done.stderr


def expect(path, array, names, now=False):
    """A plain process finds these fields in `x`, now or in the end, and zeros in the others."""
    np.save(path + ".npy", array)
    words = [path, "".join(names)]
    look(words) if now else LATER.extend(words)


def child(work):
    pid = os.fork()
    if pid == 0:
        try:
            work()
            os._exit(0)
        finally:
            os._exit(1)
    assert os.waitpid(pid, 0)[1] == 0, "a child of the process saw other elements"


def check_child(dataset, array, names):
    found = dataset[...]
    assert all(np.array_equal(found[name], array[name]) for name in names)


def all_orders(path):
    array = table()
    for at, names in enumerate(("abc", "cba", "bac", "aab", "abcabc", "acbca")):
        for words in ({}, {"chunks": (7000,)}, {"chunks": (7000,), "compression": "gzip"}):
            own = f"{path}-{at}-{len(words)}"
            with h5py.File(own, "w") as file:
                put(file.create_dataset("x", array.shape, DTYPE, **words), array, names)
            expect(own, array, names)


def gaps_between_fields(path):
    array = table(dtype=PADDED)
    with h5py.File(path, "w") as file:
        put(file.create_dataset("x", array.shape, PADDED), array, "bca")
    expect(path, array, "abc")


def other_elements_come_between(path):
    array = table()
    with h5py.File(path, "w") as file:
        x = file.create_dataset("x", array.shape, DTYPE)
        for name, start, stop in [("a", 0, N), ("b", 0, N // 2), ("b", N // 2, N), ("c", 10, N), ("c", 0, 10)]:
            x[start:stop, name] = array[name][start:stop]
            other = np.random.default_rng(start).integers(0, N)
            x[other] = array[other]
            assert x[other] == array[other]
        assert np.array_equal(x[...], array)
    expect(path, array, "abc")


def opened_for_each_field(path):
    array = table()
    with h5py.File(path, "w") as file:
        file.create_dataset("x", array.shape, DTYPE)
        file["y"] = file["x"]
        for name, way in zip("cab", "xyx"):
            file[way][name] = array[name]
        assert np.array_equal(file["y"][...], array)
        file["x"]["a"] = array["a"] + 1
    array["a"] += 1
    expect(path, array, "abc")


def two_handles(path):
    array = table()
    with h5py.File(path, "w") as file, h5py.File(path, "r+") as again:
        x = file.create_dataset("x", array.shape, DTYPE)
        put(x, array, "a")
        assert np.array_equal(again["x"]["a"], array["a"])
        put(again["x"], array, "b")
        put(x, array, "c")
        assert np.array_equal(again["x"][...], array)
    expect(path, array, "abc")


def flushed(path):
    array = table()
    with h5py.File(path, "w") as file:
        x = file.create_dataset("x", array.shape, DTYPE)
        put(x, array, "ca")
        file.flush()
        expect(path, array, "ac", now=True)
        put(x, array, "b")
        x.flush()
        expect(path, array, "abc", now=True)


def place_is_known(path):
    """A program that has asked where the elements are may look there itself."""
    array = table()
    with h5py.File(path, "w") as file:
        x = file.create_dataset("x", array.shape, DTYPE)
        put(x, array, "a")
        offset = x.id.get_offset()
        if offset is None:
            return
        for names in ("a", "b", "c"):
            put(x, array, names)
            with open(path, "rb", buffering=0) as raw:
                raw.seek(offset)
                found = np.frombuffer(raw.read(array.nbytes), DTYPE)
            # In other modes only what was flushed is sure to be there.
            assert "mode=codec;" not in os.environ.get("HDF5_VOL_CONNECTOR", "") or np.array_equal(found[names], array[names])


def copied_moved_deleted(path):
    array = table()
    with h5py.File(path, "w") as file:
        x = file.create_dataset("first", array.shape, DTYPE)
        put(x, array, "ab")
        file.copy("first", "copy")
        put(x, array, "c")
        file.move("first", "x")
        gone = file.create_dataset("gone", array.shape, DTYPE)
        put(gone, array, "a")
        del file["gone"]
        del gone
        new = file.create_dataset("new", array.shape, DTYPE)
        put(new, array, "abc")
        found = file["copy"][...]
        assert np.array_equal(found["a"], array["a"]) and np.array_equal(found["b"], array["b"]) and not found["c"].any()
        assert np.array_equal(file["x"][...], array) and np.array_equal(new[...], array)
    expect(path, array, "abc")


def virtual_view(path):
    array = table()
    with h5py.File(path, "w") as file:
        x = file.create_dataset("x", array.shape, DTYPE)
        layout = h5py.VirtualLayout(array.shape, DTYPE)
        layout[...] = h5py.VirtualSource(".", "x", array.shape, dtype=DTYPE)
        file.create_virtual_dataset("view", layout)
        for names in ("a", "ab", "abc"):
            put(x, array, names[-1])
            check_child(file["view"], array, names)
    expect(path, array, "abc")


def resized(path):
    array = table()
    with h5py.File(path, "w") as file:
        x = file.create_dataset("x", array.shape, DTYPE, chunks=(5000,), maxshape=(None,))
        x[...] = np.zeros(N, DTYPE)
        put(x, array, "ab")
        x.resize((N // 3,))
        x.resize((N,))
        check_child(x[: N // 3], array[: N // 3], "ab")
        assert x[N // 3] == np.zeros(1, DTYPE)[0]
        put(x, array, "bca")
    expect(path, array, "abc")


def forked(path):
    array = table()
    with h5py.File(path, "w") as file:
        x = file.create_dataset("x", array.shape, DTYPE)
        put(x, array, "a")
        child(lambda: check_child(x, array, "a"))
        put(x, array, "b")
        thread = threading.Thread(target=lambda: child(lambda: None))
        thread.start()
        thread.join()
        put(x, array, "c")
        child(lambda: check_child(x, array, "abc"))
    expect(path, array, "abc")


def large(path):
    """So many that a thread makes memory ready for those that follow, which may never come."""
    array = table(count=25 * N)
    memory = tempfile.TemporaryDirectory(dir="/dev/shm" if os.path.isdir("/dev/shm") else None)
    for at, names in enumerate(("abc", "cba", "a", "bc")):
        # A file that is kept in memory, and perhaps one that is not.
        for own in (f"{path}-{at}", f"{memory.name}/{at}.h5"):
            with h5py.File(own, "w") as file:
                x = file.create_dataset("x", array.shape, DTYPE)
                if len(names) < 3:
                    x[...] = np.zeros_like(array)  # or it may get what was there before
                gone = file.create_dataset("gone", array.shape, DTYPE)
                put(gone, array, "b")
                del gone, file["gone"]
                for name in names:
                    put(x, array, name)
                    if at == 1:
                        child(lambda: check_child(x, array, name))
            expect(own, array, names, now=True)
            os.remove(own)


def left_open(path):
    """The end of a process closes its files."""
    code = f"import sys; sys.path.insert(0, {os.path.dirname(os.path.abspath(__file__))!r})\nfrom fields import *\n"
    code += f"file = h5py.File({path!r}, 'w')\nx = file.create_dataset('x', (N,), DTYPE)\nput(x, table(), 'ca')\n"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    expect(path, table(), "ac")


CASES = [
    all_orders, gaps_between_fields, other_elements_come_between, opened_for_each_field, two_handles, flushed, place_is_known,
    copied_moved_deleted, virtual_view, resized, forked, large,
    left_open,
]

if __name__ == "__main__":
    for case in CASES:
        print(case.__name__, flush=True)
        case(os.path.join(sys.argv[1], case.__name__ + ".h5"))
    look(LATER)
