"""What the files should hold: objects, links and open handles."""

import os

import h5py
import numpy as np

from . import values
from .values import KINDS


class Group:
    def __init__(self):
        self.attributes = {}


class Dataset:
    """A dataset and its elements. `layout` is contiguous, compact, chunked, external, virtual or null."""

    def __init__(self, kind, shape, layout, **more):
        self.kind, self.layout, self.attributes = kind, layout, {}
        self.maxshape, self.chunks = more.get("maxshape"), more.get("chunks")
        self.filters, self.fill = more.get("filters") or {}, more.get("fill")
        self.never_filled, self.sources = more.get("never_filled", False), more.get("sources")
        self.scales = []
        self.array = None
        if shape is not None:
            self.array = values.record_blank(KINDS[kind].blank(shape, self.fill))

    @property
    def shape(self):
        return None if self.array is None else self.array.shape

    def resize(self, shape):
        """Elements that are cut off are gone: growing again shows the fill value."""
        old, self.array = self.array, values.record_blank(KINDS[self.kind].blank(shape, self.fill))
        common = tuple(slice(0, min(a, b)) for a, b in zip(old.shape, shape))
        self.array[common] = old[common]


class References:
    """A dataset of references to objects and, in the second, to boxes of datasets; each is `None` or (object, box)."""

    def __init__(self, regions, targets):
        self.regions, self.targets, self.attributes = regions, targets, {}


class World:
    """All of the program's files."""

    def __init__(self, folder):
        self.folder = folder
        self.options = {}
        self.links = {}
        self.objects = {}
        self.readonly = False
        self.next = 0
        self.handles = {}
        self.kept = {}

    def __getstate__(self):
        state = dict(self.__dict__)
        state["handles"], state["kept"] = {}, {}
        return state

    # Files

    def path(self, name):
        return os.path.join(self.folder, f"{name}.h5")

    def plain(self, name):
        """Whether the file is opened in the usual way, so that other handles and files may lead to it."""
        return not self.options[name].get("special")

    def open(self, name, mode):
        options = self.options[name]
        words = {key: options[key] for key in ("driver", "libver", "rdcc_nbytes") if key in options}
        if isinstance(words.get("libver"), list):
            words["libver"] = tuple(words["libver"])
        if mode in ("w", "x"):
            words |= options["creation"]
        file = h5py.File(self.path(name), mode, **words)
        self.handles.setdefault(name, []).append(file)
        return file

    def close(self):
        for files in self.handles.values():
            for file in files:
                file.close()
        self.handles, self.kept = {}, {}

    def file(self, name, via=0):
        """An open handle."""
        files = [file for file in self.handles[name] if file]
        return files[via % len(files)]

    # Objects and links

    def new(self, thing, file, path):
        """Notes a new object under a number that is never used again."""
        number = self.next
        self.next += 1
        self.objects[number] = thing
        self.links[file][path] = ("hard", number)
        return number

    def resolve(self, file, path, depth=0):
        """The number of the object there."""
        link = self.links.get(file, {}).get(path)
        if link is None or depth > 8:
            return None
        if link[0] == "hard":
            return link[1]
        if link[0] == "soft":
            return self.resolve(file, link[1], depth + 1)
        return self.resolve(link[1], link[2], depth + 1)

    def places(self, number):
        """All ways to an object: file and path."""
        found = ((file, path) for file, links in self.links.items() for path in links)
        return [place for place in found if self.resolve(*place) == number]

    def home(self, number):
        """The file an object lies in, and one of its hard paths; `None` if it has none left."""
        for file, links in self.links.items():
            for path, link in links.items():
                if link == ("hard", number):
                    return file, path
        return None

    def alive(self, *types):
        """Numbers of all objects of these types that can be reached by a hard link."""
        reached = {link[1] for links in self.links.values() for link in links.values() if link[0] == "hard"}
        return sorted(number for number in reached if isinstance(self.objects[number], types))

    def get(self, number, via=0):
        """The h5py object, by a handle that was kept or anew by any way that leads to it."""
        kept = [thing for thing in self.kept.get(number, []) if thing]
        if kept and via % 3 == 0:
            return kept[via % len(kept)]
        places = self.places(number)
        file, path = places[via % len(places)]
        thing = self.file(file, via)[path]
        if via % 4 == 1:
            self.kept.setdefault(number, []).append(thing)
        return thing

    def elements(self, number):
        """What a dataset should hold; that of a virtual one follows from others."""
        thing = self.objects[number]
        if thing.layout != "virtual":
            return thing.array
        found = thing.array.copy()
        for file, path, box, start, count in thing.sources:
            source = self.resolve(file, path)
            if source is not None:
                found[start : start + count] = self.elements(source)[tuple(slice(*part) for part in box)].reshape(-1)
        return found

    def groups(self, file):
        """Paths of all groups, the root as ''."""
        links = self.links[file].items()
        return ["", *(path for path, link in links if link[0] == "hard" and isinstance(self.objects[link[1]], Group) and path != "/")]


def expect(expected, actual, what):
    """Fails unless both hold the same elements."""
    if not values.same(expected, actual):
        expected, actual = np.asarray(expected), np.asarray(actual)
        hint = f"shapes {expected.shape} and {actual.shape}"
        if expected.shape == actual.shape and expected.size:
            differ = [i for i, (a, b) in enumerate(zip(expected.reshape(-1), actual.reshape(-1))) if not values.same(a, b)]
            if differ:
                first = differ[0]
                at = tuple(int(i) for i in np.unravel_index(first, expected.shape)) if expected.shape else ()
                hint = f"{len(differ)} of {expected.size}, first at {at}: {expected.reshape(-1)[first]!r} expected, {actual.reshape(-1)[first]!r} found"
        raise AssertionError(f"{what}: wrong elements: {hint}")
