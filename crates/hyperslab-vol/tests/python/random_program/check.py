"""Holds files against the world that they should be."""

import h5py
import numpy as np

from . import values
from .world import Dataset, Group, References, expect


def attributes(world, number, thing):
    for name, value in world.objects[number].attributes.items():
        found = thing.attrs[name]
        if isinstance(value, h5py.Empty):
            assert isinstance(found, h5py.Empty), f"attribute {name} of {thing.name} is {found!r}"
        elif isinstance(value, str):
            assert found == value, f"attribute {name} of {thing.name} is {found!r} and not {value!r}"
        else:
            expect(value, found, f"attribute {name} of {thing.name}")
    ours = [name for name in thing.attrs if name.startswith("attribute")]
    assert sorted(ours) == sorted(world.objects[number].attributes), f"attributes of {thing.name}: {ours}"


def references(world, number, thing):
    model = world.objects[number]
    found = thing[...]
    assert found.shape == (len(model.targets),)
    for reference, target in zip(found, model.targets):
        if target is None:
            assert not reference, "a null reference leads somewhere"
            continue
        aim, box = target
        home = world.home(aim)
        if home is None:
            continue
        named = thing.file[home[1]]
        assert thing.file[reference] == named, f"a reference to {home[1]} leads elsewhere"
        if box is not None:
            start, stop = h5py.h5r.get_region(reference, thing.id).get_select_bounds()
            assert [list(start), list(stop)] == [[a for a, _, _ in box], [b - 1 for _, b, _ in box]], "another region"


def one(world, number, thing):
    """An object through one handle."""
    model = world.objects[number]
    if isinstance(model, References):
        references(world, number, thing)
    elif isinstance(model, Dataset) and model.shape is None:
        assert thing.shape is None and isinstance(thing[()], h5py.Empty)
    elif isinstance(model, Dataset):
        assert thing.shape == model.shape, f"{thing.name} has shape {thing.shape} and not {model.shape}"
        assert thing.dtype == values.KINDS[model.kind].dtype, f"{thing.name} has type {thing.dtype}"
        expect(world.elements(number), thing[()], f"{thing.name} ({model.kind}, {model.layout}, {model.filters})")
        for axis, scales in enumerate(thing.dims if model.scales else []):
            wanted = [scale for at, scale in model.scales if at == axis and world.home(scale)]
            assert len(scales) >= len(wanted), f"{thing.name} has lost a scale"
    attributes(world, number, thing)


def everything(world, opened):
    """All objects by all ways that lead to them; `opened` gives an h5py file for a name."""
    for name, links in world.links.items():
        file = opened(name)
        for path, link in sorted(links.items()):
            number = world.resolve(name, path)
            if number is None:
                continue
            assert path in file, f"{name}: {path} is gone"
            one(world, number, file[path])
            if link[0] == "hard" and isinstance(world.objects[number], Dataset):
                file[path].id.get_storage_size()
        found = set()
        file.visititems(lambda path, thing: found.add("/" + path))
        hard = {}
        for path, link in links.items():
            if link[0] == "hard" and path != "/":
                hard.setdefault(link[1], set()).add(path)
        # An object with several paths is visited once.
        for number, paths in hard.items():
            assert len(found & paths) == 1, f"{name}: of {sorted(paths)} {sorted(found & paths)} were visited"
        assert len(found) == len(hard), f"{name}: {len(found)} objects were visited and not {len(hard)}"
        for group in world.groups(name):
            children = {path.rsplit("/", 1)[1] for path in links if path.rsplit("/", 1)[0] == group and path != "/"}
            assert set(file[group or "/"].keys()) == children, f"{name}: links of {group or '/'}"
