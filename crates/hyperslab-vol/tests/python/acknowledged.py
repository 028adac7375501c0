"""A program that is killed.

    python acknowledged.py write FOLDER          writes rows for ever and says one byte for each that was acknowledged
    python acknowledged.py check FOLDER COUNT    what must be in the file after so many
"""

import os
import sys

import h5py
import numpy as np

ROWS, COLUMNS = 40, 2000
LAYOUTS = {
    "contiguous": {},
    "chunked": {"chunks": (7, 300)},
    "packed": {"chunks": (7, 300), "compression": "gzip", "shuffle": True},
}


def row(number):
    return np.arange(number * 10_000, number * 10_000 + COLUMNS, dtype="<i8")


def place(number):
    """The dataset and the row of the write with this number."""
    names = list(LAYOUTS)
    return names[number % len(names)], (number // len(names)) % ROWS


def write(folder):
    file = h5py.File(f"{folder}/killed.h5", "w")
    datasets = {name: file.create_dataset(name, (ROWS, COLUMNS), "<i8", fill_time="alloc", **words) for name, words in LAYOUTS.items()}
    for dataset in datasets.values():
        dataset[...] = -1
    file.flush()
    number = 0
    while True:
        name, at = place(number)
        datasets[name][at] = row(number)
        os.write(1, b".")
        number += 1
        if number % 75 == 74:
            file.flush()


def check(folder, count):
    with h5py.File(f"{folder}/killed.h5", "r") as file:
        for name in LAYOUTS:
            expected = np.full((ROWS, COLUMNS), -1, "<i8")
            for number in range(max(0, count - ROWS * len(LAYOUTS)), count):
                if place(number)[0] == name:
                    expected[place(number)[1]] = row(number)
            found = file[name][...]
            # The next write may be there, whole, in part or not at all.
            next_name, next_at = place(count)
            if next_name == name:
                there = (found[next_at] == row(count)) | (found[next_at] == expected[next_at])
                assert there.all(), f"{name}: row {next_at} is from neither write {count} nor before"
                found[next_at] = expected[next_at]
            wrong = np.flatnonzero((found != expected).any(axis=1))
            assert wrong.size == 0, f"{name} after {count} writes: rows {wrong} are wrong: {found[wrong[0]][:3]} and not {expected[wrong[0]][:3]}"


if __name__ == "__main__":
    what, folder, *rest = sys.argv[1:]
    write(folder) if what == "write" else check(folder, int(rest[0]))
