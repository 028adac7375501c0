"""numpy's indices as slabs of an array, and what is left to do in memory."""

from __future__ import annotations

import operator
from dataclasses import dataclass, field
from typing import Any, Callable

import numpy as np


@dataclass
class Plan:
    """Slabs to read, in row-major order into ``read_shape``, and what makes the result of that."""

    #: For each slab and dimension: start, stride, count, block.
    slabs: np.ndarray
    read_shape: tuple[int, ...]
    _steps: list[Callable[[np.ndarray], Any]] = field(default_factory=list)

    def finish(self, read: np.ndarray) -> Any:
        """What was asked for, of what was read."""
        for step in self._steps:
            read = step(read)
        return read


def plan(index: Any, shape: tuple[int, ...]) -> Plan:
    """The plan for ``array[index]``. Raises ``IndexError`` as numpy does."""
    entries = index if isinstance(index, tuple) else (index,)
    mask = _whole_mask(entries, shape)
    if mask is not None:
        return _masked(mask)
    entries = _expand(entries, len(shape))
    steps: list[Callable[[np.ndarray], Any]] = []
    axes: list[np.ndarray] = []
    extents: list[int] = []
    dropped: list[int] = []
    inserted: list[int] = []
    position = 0
    dimension = 0
    for entry in entries:
        if entry is None:
            inserted.append(position)
            position += 1
            continue
        extent = shape[dimension]
        if isinstance(entry, slice):
            start, stop, step = entry.indices(extent)
            count = len(range(start, stop, step))
            if step < 0 and count:
                start, step = start + (count - 1) * step, -step
                steps.append(_flip(dimension))
            axes.append(np.array([[start, max(step, 1), count, 1]] if count else np.empty((0, 4)), np.uint64))
            extents.append(count)
            position += 1
        elif np.ndim(entry) == 0 and not isinstance(entry, (bool, np.bool_)):
            at = _inside(operator.index(entry), extent, dimension)
            axes.append(np.array([[at, 1, 1, 1]], np.uint64))
            extents.append(1)
            dropped.append(dimension)
        else:
            wanted, order = _list(entry, extent, dimension)
            axes.append(_ranges(wanted))
            extents.append(len(wanted))
            if order is not None:
                steps.append(_reorder(order, dimension))
            position += 1
        dimension += 1
    if dropped:
        steps.append(lambda read: read[tuple(0 if axis in dropped else slice(None) for axis in range(read.ndim))])
    elif not shape:
        steps.append(lambda read: read[()])
    for axis in inserted:
        steps.append(lambda read, axis=axis: np.expand_dims(read, axis))
    return Plan(_product(axes), tuple(extents), steps)


def _expand(entries: tuple[Any, ...], rank: int) -> list[Any]:
    """Replaces the ellipsis, and adds what is missing at the end."""
    given = sum(1 for entry in entries if entry is not None and entry is not Ellipsis)
    if given > rank:
        raise IndexError(f"{given} indices for an array of {rank} dimensions")
    if sum(1 for entry in entries if entry is Ellipsis) > 1:
        raise IndexError("more than one ellipsis")
    full = [slice(None)] * (rank - given)
    at = next((n for n, entry in enumerate(entries) if entry is Ellipsis), len(entries))
    return [*entries[:at], *full, *entries[at + 1 :]]


def _inside(at: int, extent: int, dimension: int) -> int:
    if not -extent <= at < extent:
        raise IndexError(f"index {at} is outside of dimension {dimension} with {extent} elements")
    return at % extent


def _list(entry: Any, extent: int, dimension: int) -> tuple[np.ndarray, np.ndarray | None]:
    """Rising indices to read, and, if they were not that already, which of them each result is."""
    indices = np.asarray(entry)
    if indices.ndim != 1:
        raise IndexError(f"an index list has one dimension, not {indices.ndim}")
    if indices.dtype == bool:
        if len(indices) != extent:
            raise IndexError(f"a mask of {len(indices)} for dimension {dimension} with {extent} elements")
        return np.flatnonzero(indices), None
    if indices.size == 0:
        return np.empty(0, np.int64), None
    if indices.dtype.kind not in "iu":
        raise IndexError(f"indices are integers, slices, masks, ... or None, not {indices.dtype}")
    indices = indices.astype(np.int64, copy=False)
    if indices.min() < -extent or indices.max() >= extent:
        wrong = indices[(indices < -extent) | (indices >= extent)][0]
        raise IndexError(f"index {wrong} is outside of dimension {dimension} with {extent} elements")
    indices = np.where(indices < 0, indices + extent, indices)
    if (np.diff(indices) > 0).all():
        return indices, None
    return np.unique(indices, return_inverse=True)


def _ranges(indices: np.ndarray) -> np.ndarray:
    """Runs of neighbours among rising indices, as ranges."""
    if not len(indices):
        return np.empty((0, 4), np.uint64)
    first = np.flatnonzero(np.concatenate([[True], np.diff(indices) != 1]))
    lengths = np.diff(np.concatenate([first, [len(indices)]]))
    ranges = np.ones((len(first), 4), np.uint64)
    ranges[:, 0], ranges[:, 3] = indices[first], lengths
    ranges[:, 1] = lengths
    return ranges


def _product(axes: list[np.ndarray]) -> np.ndarray:
    """Every combination of the ranges of each dimension."""
    if not axes:
        return np.zeros((1, 0, 4), np.uint64)
    grids = np.meshgrid(*(np.arange(len(ranges)) for ranges in axes), indexing="ij")
    slabs = np.stack([ranges[grid.ravel()] for ranges, grid in zip(axes, grids)], axis=1)
    return np.ascontiguousarray(slabs)


def _whole_mask(entries: tuple[Any, ...], shape: tuple[int, ...]) -> np.ndarray | None:
    if len(entries) != 1 or len(shape) < 2:
        return None
    mask = entries[0]
    if not isinstance(mask, np.ndarray) or mask.dtype != bool or mask.ndim < 2:
        return None
    if mask.shape != shape:
        raise IndexError(f"a mask of shape {mask.shape} for an array of shape {shape}")
    return mask


def _masked(mask: np.ndarray) -> Plan:
    """The box around what a mask selects is read, and the mask applied in memory."""
    if not mask.any():
        empty = np.zeros((0, mask.ndim, 4), np.uint64)
        return Plan(empty, (0,) * mask.ndim, [lambda read: read.reshape(-1)])
    bounds = []
    for axis in range(mask.ndim):
        others = tuple(other for other in range(mask.ndim) if other != axis)
        at = np.flatnonzero(mask.any(axis=others))
        bounds.append((int(at[0]), int(at[-1]) + 1))
    inner = mask[tuple(slice(*bound) for bound in bounds)]
    box = np.array([[[start, 1, stop - start, 1] for start, stop in bounds]], np.uint64)
    return Plan(box, inner.shape, [lambda read: read[inner]])


def _flip(axis: int) -> Callable[[np.ndarray], np.ndarray]:
    return lambda read: np.flip(read, axis)


def _reorder(order: np.ndarray, axis: int) -> Callable[[np.ndarray], np.ndarray]:
    return lambda read: np.take(read, order, axis)
