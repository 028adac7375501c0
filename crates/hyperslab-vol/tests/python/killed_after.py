"""A program that is killed right after a call has returned: what the call wrote must be in the file, or in the log.

    python killed_after.py list
    python killed_after.py write FOLDER WAY     writes in that way, and ends by SIGKILL with all datasets open
    python killed_after.py close FOLDER WAY     the same, each dataset closed when it is no longer used
    python killed_after.py look FOLDER WAY...   says how many files lack something as they are
    python killed_after.py check FOLDER WAY...  what must be in the files after `hyperslab recover`

A way is a function of a file that is open for writing; it returns when its last write has.
"""

import os
import signal
import sys

import h5py
import numpy as np

N = 5000
WAYS = {}


def way(expected):
    """A way to write, and what the file must hold then."""

    def known(function):
        WAYS[function.__name__] = (function, expected)
        return function

    return known


def ramp(start=0, kind="<i4", count=N):
    return (np.arange(count) % 30_000 + start).astype(kind)


PAIR = np.dtype([("x", "<i4"), ("y", "<f8")])


def pairs(x, y):
    both = np.zeros(N, PAIR)
    both["x"], both["y"] = x, y
    return both


@way({"a": ramp()})
def contiguous(file):
    file.create_dataset("a", (N,), "<i4")[...] = ramp()


@way({"a": ramp()})
def chunked(file):
    file.create_dataset("a", (N,), "<i4", chunks=(700,))[...] = ramp()


@way({"a": np.where(np.arange(N) < 100, ramp(), 0)})
def some_chunks(file):
    file.create_dataset("a", (N,), "<i4", chunks=(700,))[:100] = ramp()[:100]


@way({"a": ramp()})
def with_data(file):
    file.create_dataset("a", data=ramp())


@way({"a": ramp()})
def assigned(file):
    file["a"] = ramp()


@way({"g/h/a": ramp(), "b": ramp(1)})
def assigned_in_groups(file):
    file["b"] = ramp(1)
    file["g/h/a"] = ramp()


@way({"g/a": ramp(2)})
def group_linked_later(file):
    group = file.create_group(None)
    dataset = group.create_dataset("a", (N,), "<i4")
    dataset[...] = ramp()
    file["g"] = group
    dataset[...] = ramp(2)


@way({"a": ramp(2)})
def written_again_after_its_link(file):
    dataset = file.create_dataset(None, (N,), "<i4")
    dataset[...] = ramp()
    file["a"] = dataset
    dataset[...] = ramp(2)


@way({"a": ramp(kind="<f4")})
def converted(file):
    file.create_dataset("a", (N,), "<f4")[...] = ramp(kind="<f8")


@way({"a": np.concatenate([ramp(kind="<f4")[:10], np.full(N - 20, 3, "<f4"), ramp(kind="<f4")[-10:]])})
def converted_in_part(file):
    dataset = file.create_dataset("a", (N,), "<f4")
    dataset[...] = ramp(kind="<f8")
    file.flush()
    dataset[10:-10] = np.full(N - 20, 3, "<i8")


@way({"a": ramp(kind=">i2").astype("<i4")})
def other_byte_order(file):
    file.create_dataset("a", (N,), "<i4")[...] = ramp(kind=">i2")


@way({"a": 42.5, "b": 7})
def scalars(file):
    file["b"] = 7
    file.create_dataset("a", (), "<f8")[()] = 42.5


@way({"a": 42})
def assigned_scalar(file):
    file["a"] = 42


@way({"g/a": b"some text"})
def assigned_text(file):
    file["g/a"] = "some text"


@way({"a": pairs(ramp(), 0)})
def one_field(file):
    file.create_dataset("a", (N,), PAIR)["x"] = ramp()


@way({"a": pairs(ramp(), ramp(kind="<f8"))})
def fields(file):
    dataset = file.create_dataset("a", (N,), PAIR, chunks=(900,))
    dataset["y"] = ramp(kind="<f8")
    dataset["x"] = ramp()


@way({"a": ramp(count=400_000)})
def larger_than_the_limit(file):
    file.create_dataset("a", (400_000,), "<i4")[...] = ramp(count=400_000)


@way({"a": ramp(count=400_000), "b": ramp(count=400_000)})
def more_than_the_limit(file):
    for name in "ab":
        dataset = file.create_dataset(name, (400_000,), "<i4", chunks=(50_000,))
        for at in range(0, 400_000, 10_000):
            dataset[at : at + 10_000] = ramp(count=400_000)[at : at + 10_000]


@way({"a": ramp()})
def compressed(file):
    file.create_dataset("a", (N,), "<i4", chunks=(700,), compression="gzip", shuffle=True)[...] = ramp()


@way({"a": np.concatenate([ramp(5)[:1000], ramp()[1000:]])})
def compressed_again(file):
    dataset = file.create_dataset("a", (N,), "<i4", chunks=(700,), compression="gzip")
    dataset[...] = ramp()
    file.flush()
    for at in range(0, 1000, 100):
        dataset[at : at + 100] = ramp(5)[at : at + 100]


@way({"a": ramp(count=100)})
def compact(file):
    create = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
    create.set_layout(h5py.h5d.COMPACT)
    space = h5py.h5s.create_simple((100,))
    dataset = h5py.Dataset(h5py.h5d.create(file.id, b"a", h5py.h5t.STD_I32LE, space, create))
    dataset[...] = ramp(count=100)


@way({"a": [b"one", b"three", b"five" * 100]})
def strings(file):
    dataset = file.create_dataset("a", (3,), h5py.string_dtype())
    dataset[...] = ["one", "three", "five" * 100]


@way({"a": ramp().reshape(-1, 50)})
def appended(file):
    dataset = file.create_dataset("a", (0, 50), "<i4", maxshape=(None, 50), chunks=(8, 50))
    for at in range(N // 50):
        dataset.resize(at + 1, axis=0)
        dataset[at] = ramp().reshape(-1, 50)[at]


@way({"a": ramp()[:1000]})
def shrunk(file):
    dataset = file.create_dataset("a", (N,), "<i4", maxshape=(None,), chunks=(300,))
    dataset[...] = ramp(9)
    dataset.resize((1000,))
    dataset[...] = ramp()[:1000]


@way({"b": ramp(3), "a": ramp(4)})
def moved(file):
    dataset = file.create_dataset("a", (N,), "<i4")
    dataset[...] = ramp()
    file.move("a", "b")
    dataset[...] = ramp(3)
    file["a"] = ramp(4)


@way({"a": ramp(3)})
def deleted_and_made_again(file):
    file.create_dataset("a", (N,), "<i4")[...] = ramp()
    del file["a"]
    file.create_dataset("a", (N,), "<i4")[...] = ramp(3)


@way({"a": ramp(), "b": ramp()})
def copied(file):
    file.create_dataset("a", (N,), "<i4")[...] = ramp()
    file.copy("a", "b")


@way({"a": ramp(), "a@units": "m", "@title": "x" * 50})
def attributes(file):
    file.create_dataset("a", (N,), "<i4")[...] = ramp()
    file["a"].attrs["units"] = "km"
    file.attrs["title"] = "x" * 50
    file["a"].attrs["units"] = "m"


@way({"a": ramp(8), "b": ramp(2)})
def by_a_hard_link(file):
    file.create_dataset("a", (N,), "<i4")[...] = ramp()
    file["c"] = file["a"]
    file["c"][...] = ramp(8)
    file["b"] = ramp(2)


@way({"a": ramp().reshape(50, 100)})
def chunks_as_they_are(file):
    dataset = file.create_dataset("a", (50, 100), "<i4", chunks=(10, 100), compression="gzip")
    for at in range(0, 50, 10):
        dataset.id.write_direct_chunk((at, 0), ramp().reshape(50, 100)[at : at + 10].tobytes(), 1)


@way({"a": ramp(kind=np.dtype("<c16"))})
def complex_numbers(file):
    file.create_dataset("a", (N,), "<c16")[...] = ramp(kind="<c16")


@way({"a": ramp(6), "b": ramp()})
def beside_a_filter_that_is_not_known(file):
    file.create_dataset("b", (N,), "<i4", chunks=(700,), scaleoffset=0)[...] = ramp()
    file.create_dataset("a", (N,), "<i4")[...] = ramp(6)


@way({"a": ramp()[::-1]})
def many_small_writes(file):
    dataset = file.create_dataset("a", (N,), "<i4")
    for at in range(0, N, 10):
        dataset[at : at + 10] = ramp()[::-1][at : at + 10]


def write(folder, name, open_still):
    function, _ = WAYS[name]
    kept, create = [], h5py.Group.create_dataset
    if open_still:

        def keeping(*arguments, **words):
            kept.append(create(*arguments, **words))
            return kept[-1]

        h5py.Group.create_dataset = keeping
    keep = h5py.File(f"{folder}/{name}.h5", "w")
    function(keep)
    os.kill(os.getpid(), signal.SIGKILL)


def differs(folder, name):
    """What a file lacks, in words; nothing if it has everything."""
    try:
        with h5py.File(f"{folder}/{name}.h5", "r") as file:
            for key, value in WAYS[name][1].items():
                path, _, attribute = key.partition("@")
                if (path or "/") not in file:
                    return f"{path} is missing"
                found = file[path or "/"].attrs.get(attribute) if attribute else file[path][()]
                if not np.array_equal(np.asarray(found, getattr(value, "dtype", None)), value):
                    return f"{key} is {np.asarray(found).ravel()[:3]}, not {np.asarray(value).ravel()[:3]}"
    except (OSError, RuntimeError, KeyError) as error:
        return f"it cannot be read: {error}"


if __name__ == "__main__":
    what, *rest = sys.argv[1:]
    if what == "list":
        print(*WAYS)
    elif what in ("write", "close"):
        write(*rest, what == "write")
    else:
        folder, *names = rest
        found = {name: differs(folder, name) for name in names}
        wrong = {name: why for name, why in found.items() if why}
        for name, why in wrong.items():
            print(f"{name}: {why}")
        if what == "look":
            print(f"{len(wrong)} of {len(names)} need a recovery")
        sys.exit(1 if what == "check" and wrong else 0)
