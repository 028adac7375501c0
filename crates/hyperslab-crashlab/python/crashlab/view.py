"""Reads a whole file with plain h5py, as the same flat form that the model has."""

import h5py
import numpy as np


def read(path):
    """Path to (identity, kind, attributes, data). Raises whatever HDF5 raises."""
    flat, known = {}, {}

    def identity(item):
        return known.setdefault(h5py.h5o.get_info(item.id).addr, len(known))

    def walk(path, item):
        attributes = {name: plain(item.attrs[name]) for name in item.attrs}
        if isinstance(item, h5py.Dataset):
            text = h5py.check_string_dtype(item.dtype)
            if text is not None and text.length is None:
                data = tuple(element.decode() if element else "" for element in item[()])
                flat[path] = (identity(item), "strings", attributes, data)
            else:
                flat[path] = (identity(item), "dataset", attributes, np.asarray(item[()], item.dtype))
            return
        flat[path or "/"] = (identity(item), "group", attributes, None)
        for name in item:
            child = item.get(name, getlink=True)
            if isinstance(child, h5py.SoftLink):
                flat[path + "/" + name] = (None, "soft", {}, child.path.lstrip("/"))
            else:
                walk(path + "/" + name, item[name])

    with h5py.File(path, "r") as file:
        walk("", file)
    return flat


def plain(value):
    """An attribute's value as the program gave it."""
    if isinstance(value, np.ndarray):
        return value.tolist()
    return value.item() if isinstance(value, np.generic) else value
