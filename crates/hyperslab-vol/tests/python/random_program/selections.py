"""Selections as data: made at random, handed to h5py, and applied to a numpy array."""

import h5py
import numpy as np


def random(rng, shape, boxes_only=False):
    """A selection of an array of this shape, as lists and numbers only."""
    if not shape:
        return ["all"]
    if any(n == 0 for n in shape):
        return ["all"]
    style = rng.random()
    if style < 0.15:
        return ["all"]
    if style < 0.5 or boxes_only:
        return ["box", [dense(rng, n) for n in shape]]
    if style < 0.68:
        return ["box", [strided(rng, n) for n in shape]]
    if style < 0.76:
        axis = rng.randrange(len(shape))
        picks = sorted(rng.sample(range(shape[axis]), min(shape[axis], rng.randint(1, 8))))
        return ["list", axis, picks, [dense(rng, n) for n in shape]]
    if style < 0.84:
        return ["mask", rng.randrange(1 << 30), rng.choice([0.02, 0.3, 0.9])]
    if style < 0.90:
        return ["points", rng.randrange(1 << 30), rng.randint(1, 20)]
    if style < 0.95:
        return ["union", [[dense(rng, n) for n in shape] for _ in range(rng.randint(2, 3))]]
    if style < 0.98:
        return ["blocks", [blocks(rng, n) for n in shape]]
    return ["box", [[0, 0, 1], *[dense(rng, n) for n in shape[1:]]]]


def dense(rng, n):
    start = rng.randrange(n)
    return [start, rng.randint(start + 1, n), 1] if rng.random() < 0.75 else [0, n, 1]


def strided(rng, n):
    start = rng.randrange(n)
    return [start, rng.randint(start + 1, n), rng.randint(1, 4)]


def blocks(rng, n):
    block = rng.randint(1, max(1, min(3, n // 3)))
    stride = block + rng.randint(0, 2)
    most = 1 + (n - block) // stride
    count = rng.randint(1, most)
    return [rng.randint(0, n - (count - 1) * stride - block), stride, count, block]


def fits(selection, shape):
    """Whether it lies within an array of this shape; it was made for one that may have been another."""
    what, *rest = selection
    if what == "all":
        return True
    if what in ("mask", "points"):
        return bool(shape) and all(shape)
    if what == "blocks":
        ends = [start + (count - 1) * stride + block for start, stride, count, block in rest[0]]
        return len(ends) == len(shape) and all(end <= n for end, n in zip(ends, shape))
    boxes = rest[0] if what == "union" else [rest[-1]]
    inside = all(len(box) == len(shape) and all(stop <= n for (_, stop, _), n in zip(box, shape)) for box in boxes)
    return inside and (what != "list" or max(rest[1]) < shape[rest[0]])


def flat(selection, shape):
    """Positions in the flat array, in the order of the elements, and the shape that numpy and h5py give them."""
    positions = np.arange(int(np.prod(shape, dtype=int))).reshape(tuple(shape))
    what, *rest = selection
    if what == "all":
        picked = positions
    elif what == "box":
        picked = positions[tuple(slice(*part) for part in rest[0])]
    elif what == "list":
        axis, picks, box = rest
        picked = positions[tuple(picks if at == axis else slice(*part) for at, part in enumerate(box))]
    elif what == "mask":
        picked = positions[mask(rest, shape)]
    elif what == "points":
        picked = positions[tuple(points(rest, shape).T)]
    elif what == "union":
        chosen = np.zeros(tuple(shape), bool)
        for box in rest[0]:
            chosen[tuple(slice(*part) for part in box)] = True
        picked = positions[chosen]
    else:
        ranges = [np.concatenate([np.arange(block) + start + stride * i for i in range(count)]) for start, stride, count, block in rest[0]]
        picked = positions[np.ix_(*ranges)]
    return picked


def mask(rest, shape):
    chosen = np.random.default_rng(rest[0]).random(tuple(shape)) < rest[1]
    return chosen


def points(rest, shape):
    """Coordinates without a repetition, in no order."""
    total = int(np.prod(shape, dtype=int))
    rng = np.random.default_rng(rest[0])
    picked = rng.choice(total, min(total, rest[1]), replace=False)
    return np.stack(np.unravel_index(picked, tuple(shape)), axis=1)


def low_level(selection):
    """Whether h5py has no words for it above its low level."""
    return selection[0] in ("points", "union")


def for_h5py(selection, shape):
    """What stands between the brackets."""
    what, *rest = selection
    if what == "all":
        return () if not shape else Ellipsis
    if what == "box":
        return tuple(slice(*part) for part in rest[0])
    if what == "list":
        axis, picks, box = rest
        return tuple(picks if at == axis else slice(*part) for at, part in enumerate(box))
    if what == "mask":
        return mask(rest, shape)
    return tuple(h5py.MultiBlockSlice(start, stride, count, block) for start, stride, count, block in rest[0])


def spaces(selection, shape):
    """The spaces in memory and in the file for the low level."""
    what, *rest = selection
    space = h5py.h5s.create_simple(tuple(shape))
    if what == "points":
        space.select_elements(points(rest, shape))
    else:
        for at, box in enumerate(rest[0]):
            start = tuple(part[0] for part in box)
            count = tuple(part[1] - part[0] for part in box)
            space.select_hyperslab(start, count, op=h5py.h5s.SELECT_OR if at else h5py.h5s.SELECT_SET)
    return h5py.h5s.create_simple((space.get_select_npoints(),)), space
