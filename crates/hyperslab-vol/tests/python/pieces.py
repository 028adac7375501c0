"""Selections of many pieces, and datasets that grow, against numpy: PYTHON pieces.py FOLDER SEED COUNT. Prints what went around
libhdf5 at the end; a wrong element is an error."""
import sys

import h5py
import numpy as np

folder, seed, count = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
LAYOUTS = [
    {},
    {"chunks": True},
    {"chunks": True, "compression": "gzip", "compression_opts": 1},
    {"chunks": True, "compression": "lzf", "shuffle": True, "fletcher32": True},
]


def layout(random, shape):
    kind = dict(LAYOUTS[random.integers(0, len(LAYOUTS))])
    if kind:
        kind["chunks"] = tuple(int(random.integers(1, extent + 1)) for extent in shape)
    if random.integers(0, 2):
        kind["fillvalue"] = 7
    return kind


def numbers(random, shape, dtype):
    return random.integers(-100, 100, shape).astype(dtype)


def selected(random, shape, space):
    """Many pieces, selected in a space; returns their coordinates in the order of memory."""
    total = int(np.prod(shape))
    if random.integers(0, 2):
        flat = random.choice(total, int(random.integers(1, min(total, 3000) + 1)), replace=False)
        if random.integers(0, 2):
            flat = np.sort(flat)
        places = np.stack(np.unravel_index(flat, shape), axis=-1)
        space.select_elements(places)
        return places
    space.select_none()
    chosen = np.zeros(shape, dtype=bool)
    for _ in range(int(random.integers(2, 200))):
        start = [int(random.integers(0, extent)) for extent in shape]
        block = [int(random.integers(1, min(extent - first, 4) + 1)) for extent, first in zip(shape, start)]
        space.select_hyperslab(tuple(start), tuple(block), op=h5py.h5s.SELECT_OR)
        chosen[tuple(slice(first, first + extent) for first, extent in zip(start, block))] = True
    return np.argwhere(chosen)


def program(number):
    random = np.random.default_rng(number)
    shape = tuple(int(extent) for extent in random.integers(1, 60, int(random.integers(1, 4))))
    dtype = random.choice(["<i4", "<f8", ">i2", "<u1"])
    kind = layout(random, shape)
    grows = bool(kind) and bool(random.integers(0, 2))
    path = f"{folder}/pieces-{number}.h5"
    with h5py.File(path, "w") as file:
        limits = (None, *shape[1:]) if grows else None
        data = file.create_dataset("x", shape, dtype, maxshape=limits, **kind)
        model = np.full(shape, kind.get("fillvalue", 0), dtype)
        if random.integers(0, 2):
            model[...] = data[...] = numbers(random, shape, dtype)
        for step in range(25):
            action = random.integers(0, 7)
            space = data.id.get_space()
            # Another type in memory now and then.
            memory = random.choice([dtype, "<i8", "<f4"]) if step % 3 == 0 else dtype
            if action < 2:
                places = selected(random, shape, space)
                new = numbers(random, len(places), memory) % 100 if dtype == "<u1" else numbers(random, len(places), memory)
                data.id.write(h5py.h5s.create_simple(new.shape), space, new)
                model[tuple(places.T)] = new.astype(dtype)
            elif action < 4:
                places = selected(random, shape, space)
                out = np.empty(len(places), memory)
                data.id.read(h5py.h5s.create_simple(out.shape), space, out)
                expected = model[tuple(places.T)].astype(memory)
                assert np.array_equal(out, expected), (number, step, "pieces read")
            elif action == 4 and grows:
                # Mostly grows, sometimes shrinks: what was cut off is gone.
                rows = int(random.integers(1, shape[0] + 40) if random.integers(0, 4) == 0 else shape[0] + random.integers(1, 20))
                data.resize(rows, axis=0)
                new = np.full((rows, *shape[1:]), kind.get("fillvalue", 0), dtype)
                kept = min(rows, shape[0])
                new[:kept] = model[:kept]
                model, shape = new, (rows, *shape[1:])
            elif action == 5:
                first = int(random.integers(0, shape[0]))
                new = numbers(random, (min(5, shape[0] - first), *shape[1:]), dtype)
                data[first : first + 5] = new
                model[first : first + 5] = new
            else:
                [lambda: None, file.flush, lambda: data.id.refresh()][int(random.integers(0, 3))]()
                assert np.array_equal(data[...], model), (number, step, "all read")
    with h5py.File(path, "r") as file:
        assert np.array_equal(file["x"][...], model), (number, "read again")


for number in range(seed, seed + count):
    program(number)
print("all as it should be")
