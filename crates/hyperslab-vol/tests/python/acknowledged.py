"""A program that is killed.

    python acknowledged.py write FOLDER LIBVER   writes rows for ever and says one byte for each that was acknowledged
    python acknowledged.py check FOLDER COUNT    what must be in the file after so many
"""

import os
import sys

import h5py
import numpy as np

ROWS, COLUMNS = 40, 2000
PAIR = np.dtype([("a", "<i8"), ("b", "<i8")])
LAYOUTS = {
    "contiguous": ("<i8", {}),
    "chunked": ("<i8", {"chunks": (7, 300)}),
    "deflated": ("<i8", {"chunks": (7, 300), "compression": "gzip"}),
    "checked": ("<i8", {"chunks": (9, 2000), "compression": "gzip", "shuffle": True, "fletcher32": True}),
    # Some fields at a time, and every time through another handle.
    "fields": (PAIR, {"chunks": (7, 300), "compression": "lzf"}),
}
NAMES = list(LAYOUTS)


def row(number):
    """Some rows are harder to compress than others, so that chunks change their size."""
    values = np.arange(number * 10_000, number * 10_000 + COLUMNS, dtype="<i8")
    hard = np.arange(COLUMNS) % 8 < number % 9
    values[hard] *= 0x1E3779B97F4A7C15
    return values


def place(number):
    """The dataset, the row and the field of the write with this number."""
    name, turn = NAMES[number % len(NAMES)], number // len(NAMES)
    return name, turn % ROWS, "ab"[turn // ROWS % 2] if name == "fields" else None


def put(rows, number):
    """Makes a write in memory."""
    _, at, field = place(number)
    (rows if field is None else rows[field])[at] = row(number)


def write(folder, libver):
    file = h5py.File(f"{folder}/killed.h5", "w", libver=libver)
    for name, (dtype, words) in LAYOUTS.items():
        dataset = file.create_dataset(name, (ROWS, COLUMNS), dtype, fill_time="alloc", **words)
        dataset[...] = np.full((ROWS, COLUMNS), -1, "<i8").astype(dtype)
    datasets = {name: file[name] for name in NAMES if name != "fields"}
    file.flush()
    number = 0
    while True:
        name, at, field = place(number)
        if field is None:
            datasets[name][at] = row(number)
        else:
            file[name][at, field] = row(number)
        os.write(1, b".")
        number += 1
        if number % 75 == 74:
            file.flush()


def check(folder, count):
    with h5py.File(f"{folder}/killed.h5", "r") as file:
        for name, (dtype, _) in LAYOUTS.items():
            expected = np.full((ROWS, COLUMNS), -1, "<i8").astype(dtype)
            for number in range(max(0, count - 2 * ROWS * len(NAMES)), count):
                if place(number)[0] == name:
                    put(expected, number)
            found = file[name][...]
            # The next write may be there, whole, in part or not at all.
            next_name, next_at, _ = place(count)
            if next_name == name:
                after = expected.copy()
                put(after, count)
                there = (found[next_at] == after[next_at]) | (found[next_at] == expected[next_at])
                assert there.all(), f"{name}: row {next_at} is from neither write {count} nor before"
                found[next_at] = expected[next_at]
            wrong = np.flatnonzero((found != expected).any(axis=1))
            assert wrong.size == 0, f"{name} after {count} writes: rows {wrong} are wrong: {found[wrong[0]][:3]} and not {expected[wrong[0]][:3]}"


if __name__ == "__main__":
    what, folder, rest = sys.argv[1:]
    write(folder, rest) if what == "write" else check(folder, int(rest))
