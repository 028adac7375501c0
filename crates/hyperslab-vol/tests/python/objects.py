"""Names and places in a file that belong to one object after another: each read must be of the object that has them now.

    python objects.py FOLDER    every case, for several layouts

Each case asserts what it reads while the file is open, and once more after it was closed and opened again.
"""

import os
import random
import shutil
import subprocess
import sys
import time

import h5py
import numpy as np

N = 3000
LAYOUTS = {
    "contiguous": {},
    "chunked": {"chunks": (700,)},
    "packed": {"chunks": (700,), "compression": "gzip"},
    "small": {"chunks": (700,), "maxshape": (None,)},
}
CASES = []


def case(function):
    CASES.append(function)
    return function


def values(seed, kind="<i4"):
    return (np.arange(N) * 7 + seed * 1_000_003).astype(kind)


def make(file, name, seed, layout, kind="<i4"):
    dataset = file.create_dataset(name, (N,), kind, **LAYOUTS[layout])
    dataset[...] = values(seed, kind)
    return dataset


def look(file, expected, kind="<i4"):
    """Reads each by a handle of its own, which is closed then, twice: the second time from what may have been kept."""
    for _ in range(2):
        for name, seed in expected.items():
            found = file[name][...]
            assert np.array_equal(found, values(seed, kind)), f"{name}: {found[:3]}, not {values(seed, kind)[:3]}"


def without_connector(code):
    clean = {key: value for key, value in os.environ.items() if not key.startswith(("HDF5_", "HYPERSLAB_"))}
    done = subprocess.run([sys.executable, "-c", code], env=clean | {"HDF5_USE_FILE_LOCKING": "FALSE"}, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


@case
def same_name(path, layout):
    with h5py.File(path, "w") as file:
        make(file, "a", 1, layout)
        look(file, {"a": 1})
        del file["a"]
        make(file, "a", 2, layout)
        look(file, {"a": 2})
        del file["a"]
        file["a"] = values(3)
        look(file, {"a": 3})
    return {"a": 3}


@case
def same_name_after_reads_only(path, layout):
    with h5py.File(path, "w") as file:
        make(file, "a", 1, layout)
    with h5py.File(path, "r+") as file:
        look(file, {"a": 1})
        del file["a"]
        make(file, "b", 2, layout)
        look(file, {"b": 2})
        make(file, "a", 3, layout)
        look(file, {"a": 3, "b": 2})
    return {"a": 3, "b": 2}


@case
def same_space(path, layout):
    """What is deleted gives its header and its place to the next of its size, whatever its name and type."""
    with h5py.File(path, "w") as file:
        for turn in range(6):
            make(file, f"x{turn}", turn, layout)
            look(file, {f"x{turn}": turn})
            del file[f"x{turn}"]
            make(file, f"y{turn}", turn + 10, layout, "<f4")
            look(file, {f"y{turn}": turn + 10}, "<f4")
            del file[f"y{turn}"]
        make(file, "end", 99, layout)
    return {"end": 99}


@case
def deleted_while_open(path, layout):
    with h5py.File(path, "w") as file:
        old = make(file, "a", 1, layout)
        look(file, {"a": 1})
        del file["a"]
        new = make(file, "a", 2, layout)
        old[5:10] = 0
        assert np.array_equal(new[...], values(2)), "the new one"
        assert np.array_equal(old[10:], values(1)[10:]), "the deleted one"
        old.id.close()
        make(file, "b", 3, layout)
        look(file, {"a": 2, "b": 3})
    return {"a": 2, "b": 3}


@case
def moved(path, layout):
    with h5py.File(path, "w") as file:
        make(file, "a", 1, layout)
        make(file, "b", 2, layout)
        look(file, {"a": 1, "b": 2})
        file.move("a", "c")
        file.move("b", "a")
        look(file, {"a": 2, "c": 1})
        file.move("c", "b")
        look(file, {"a": 2, "b": 1})
        file["b"][:] = values(5)
        look(file, {"a": 2, "b": 5})
    return {"a": 2, "b": 5}


@case
def moved_while_open(path, layout):
    with h5py.File(path, "w") as file:
        one, two = make(file, "a", 1, layout), make(file, "b", 2, layout)
        look(file, {"a": 1, "b": 2})
        file.move("a", "c")
        file.move("b", "a")
        file.move("c", "b")
        one[...] = values(3)
        two[...] = values(4)
        look(file, {"a": 4, "b": 3})
    return {"a": 4, "b": 3}


@case
def groups_moved(path, layout):
    with h5py.File(path, "w") as file:
        make(file, "g/x", 1, layout)
        make(file, "h/x", 2, layout)
        look(file, {"g/x": 1, "h/x": 2})
        file.move("g", "t")
        file.move("h", "g")
        file.move("t", "h")
        look(file, {"g/x": 2, "h/x": 1})
        del file["g"]
        make(file, "g/x", 3, layout)
        look(file, {"g/x": 3, "h/x": 1})
    return {"g/x": 3, "h/x": 1}


@case
def hard_links(path, layout):
    with h5py.File(path, "w") as file:
        make(file, "a", 1, layout)
        file["b"] = file["a"]
        look(file, {"a": 1, "b": 1})
        file["a"][...] = values(2)
        look(file, {"b": 2, "a": 2})
        file["b"][...] = values(3)
        look(file, {"a": 3, "b": 3})
        del file["a"]
        make(file, "a", 4, layout)
        look(file, {"a": 4, "b": 3})
        file["b"][...] = values(5)
        look(file, {"a": 4, "b": 5})
    return {"a": 4, "b": 5}


@case
def alias_of_a_group(path, layout):
    """A handle keeps a path by which nothing is found any more."""
    with h5py.File(path, "w") as file:
        make(file, "g/x", 1, layout)
        file["h"] = file["g"]
        old = file["h/x"]
        assert np.array_equal(old[...], values(1))
        del file["g/x"]
        make(file, "y", 2, layout)
        make(file, "g/x", 3, layout)
        old[...] = values(4)
        look(file, {"h/x": 3, "g/x": 3, "y": 2})
        assert np.array_equal(old[...], values(4))
        old.id.close()
        make(file, "z", 5, layout)
        look(file, {"h/x": 3, "y": 2, "z": 5})
    return {"h/x": 3, "y": 2, "z": 5}


@case
def soft_links(path, layout):
    with h5py.File(path, "w") as file:
        make(file, "a", 1, layout)
        make(file, "b", 2, layout)
        file["s"] = h5py.SoftLink("/a")
        look(file, {"s": 1})
        del file["s"]
        file["s"] = h5py.SoftLink("/b")
        look(file, {"s": 2, "a": 1})
    return {"s": 2, "a": 1}


@case
def never_linked(path, layout):
    """Some fields of a dataset that never gets a name, and goes with its handle."""
    pair = np.dtype([("x", "<i4"), ("y", "<i4")])
    with h5py.File(path, "w") as file:
        nameless = file.create_dataset(None, (N,), pair, **LAYOUTS[layout])
        nameless["x"] = values(7)
        nameless.id.close()
        make(file, "a", 1, layout)
        make(file, "b", 2, layout)
        look(file, {"a": 1, "b": 2})
    return {"a": 1, "b": 2}


@case
def file_replaced(path, layout):
    """While it is open for reading, another process puts another file in its place."""
    other = f"{path}.new"
    with h5py.File(path, "w") as file:
        make(file, "a", 1, layout)
    first = h5py.File(path, "r")
    look(first, {"a": 1})
    code = f"import h5py, numpy as np\nwith h5py.File({other!r}, 'w') as f: f['a'] = (np.arange({N}) * 7 + 2 * 1_000_003).astype('<i4')"
    without_connector(code)
    os.rename(other, path)
    second = h5py.File(path, "r")
    look(second, {"a": 2})
    look(first, {"a": 1})
    first.close()
    second.close()
    return {"a": 2}


@case
def file_overwritten(path, layout):
    """The same, with the bytes of another file: by truncation, with the same size and structure."""
    other = f"{path}.new"
    for target, seed in ((path, 1), (other, 2)):
        with h5py.File(target, "w") as file:
            make(file, "a", seed, layout.replace("packed", "chunked"))
    with h5py.File(path, "r") as first:
        look(first, {"a": 1})
        shutil.copyfile(other, path)
        with h5py.File(path, "r") as second:
            look(second, {"a": 2})
    with h5py.File(path, "r") as first:
        look(first, {"a": 2})
        time.sleep(0.15)
        with h5py.File(path, "r") as second:
            look(second, {"a": 2})
            shutil.copyfile(other, path)
            look(first, {"a": 2})
    return {"a": 2}


@case
def random_names(path, layout):
    """Many names made, moved, linked and deleted in turn, against what they must be."""
    choice = random.Random(f"{layout} 25")
    known, seed = {}, 0
    with h5py.File(path, "w") as file:
        for _ in range(150):
            seed += 1
            doing, name = choice.randrange(6), f"n{choice.randrange(5)}"
            other = f"n{choice.randrange(5)}"
            if name not in known:
                make(file, name, seed, layout)
                known[name] = [seed]
            elif doing == 0:
                del file[name]
                del known[name]
            elif doing == 1 and other not in known:
                file.move(name, other)
                known[other] = known.pop(name)
            elif doing == 2 and other not in known:
                file[other] = file[name]
                known[other] = known[name]
            elif doing == 3:
                file[name][...] = values(seed)
                known[name][0] = seed
            else:
                look(file, {name: known[name][0]})
        look(file, {name: seed[0] for name, seed in known.items()})
    return {name: seed[0] for name, seed in known.items()}


if __name__ == "__main__":
    folder = sys.argv[1]
    only = sys.argv[2:]
    for function in CASES:
        if only and function.__name__ not in only:
            continue
        for layout in LAYOUTS:
            path = f"{folder}/{function.__name__}-{layout}.h5"
            print(function.__name__, layout, flush=True)
            expected = function(path, layout)
            with h5py.File(path, "r") as file:
                look(file, expected)
