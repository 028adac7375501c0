"""Operations that move elements."""

import os
import traceback
import zlib

import h5py
import numpy as np

from . import selections, values
from .values import KINDS
from .world import Dataset, expect

SIMPLE = ("number", "plain", "compound")


def pick(world, rng, suits=lambda thing: True):
    """A dataset with elements that suits."""
    found = [n for n in world.alive(Dataset) if world.objects[n].shape is not None and suits(world.objects[n])]
    return rng.choice(found) if found else None


def writable(thing):
    return thing.layout != "virtual"


def group_of(thing):
    return KINDS[thing.kind].group


def boxes_only(thing):
    return group_of(thing) not in SIMPLE or thing.layout == "virtual"


def store(world, number, handle, selection, array):
    """Writes by the words that h5py has for the selection, and notes it."""
    thing = world.objects[number]
    positions = selections.flat(selection, thing.shape)
    if selections.low_level(selection):
        memory, space = selections.spaces(selection, thing.shape)
        handle.id.write(memory, space, np.ascontiguousarray(array))
    elif not thing.shape:
        handle[()] = array[()]
    else:
        handle[selections.for_h5py(selection, thing.shape)] = array
    note(thing, positions, array)


def note(thing, positions, array):
    if array.dtype != thing.array.dtype and array.dtype.kind in "iuf":
        array = values.convert(array, thing.array.dtype)
    thing.array.reshape(-1)[positions] = array


def load(world, number, handle, selection, dtype=None, field=None):
    """Reads by the words that h5py has for the selection, and compares."""
    thing = world.objects[number]
    expected = world.elements(number).reshape(-1)[selections.flat(selection, thing.shape)]
    if selections.low_level(selection):
        memory, space = selections.spaces(selection, thing.shape)
        actual = np.zeros(memory.get_simple_extent_dims(), handle.dtype)
        handle.id.read(memory, space, actual)
    else:
        where = selections.for_h5py(selection, thing.shape)
        if dtype is not None:
            actual, expected = handle.astype(dtype)[where], values.convert(expected, dtype)
        elif field is not None:
            actual, expected = handle.fields(field)[where], expected[field]
        else:
            actual = handle[where]
    expect(expected, actual, f"{handle.name}{selection} as {dtype or field or 'it is'}")


def make_write(world, rng):
    number = pick(world, rng, writable)
    if number is None:
        return None
    thing = world.objects[number]
    selection = selections.random(rng, thing.shape, boxes_only(thing))
    return dict(number=number, selection=selection, seed=rng.randrange(1 << 30), via=rng.randrange(60))


def do_write(world, op):
    thing = world.objects[op["number"]]
    if not selections.fits(op["selection"], thing.shape):
        return
    positions = selections.flat(op["selection"], thing.shape)
    if thing.kind == "lists" and positions.size < 2:
        # h5py takes a single list for elements.
        return
    array = KINDS[thing.kind].values(op["seed"], positions.shape)
    store(world, op["number"], world.get(op["number"], op["via"]), op["selection"], array)


def make_write_converted(world, rng):
    number = pick(world, rng, lambda t: writable(t) and group_of(t) == "number" and KINDS[t.kind].dtype.kind != "c" and t.shape)
    if number is None:
        return None
    selection = selections.random(rng, world.objects[number].shape)
    dtype = rng.choice(["<i1", "<u2", "<i4", ">i4", "<i8", "<u8", "<f4", ">f8", "<f2"])
    return dict(number=number, selection=selection, seed=rng.randrange(1 << 30), via=rng.randrange(60), dtype=dtype)


def do_write_converted(world, op):
    thing = world.objects[op["number"]]
    if not selections.fits(op["selection"], thing.shape) or selections.low_level(op["selection"]):
        return
    positions = selections.flat(op["selection"], thing.shape)
    array = KINDS[np.dtype(op["dtype"]).str].values(op["seed"], positions.shape)
    if thing.array.dtype.kind in "iu" and array.dtype.kind == "f":
        # No rule says which integer a not-a-number becomes.
        array[np.isnan(array)] = 7
    store(world, op["number"], world.get(op["number"], op["via"]), op["selection"], array)


def make_write_many(world, rng):
    number = pick(world, rng, lambda t: writable(t) and group_of(t) in SIMPLE and t.shape and t.array.size)
    if number is None:
        return None
    shape = world.objects[number].shape
    some = [["box", [selections.dense(rng, n) for n in shape]] for _ in range(rng.randint(5, 60))]
    return dict(number=number, selections=some, seed=rng.randrange(1 << 30), via=rng.randrange(60))


def do_write_many(world, op):
    for at, selection in enumerate(op["selections"]):
        do_write(world, dict(op, selection=selection, seed=op["seed"] + at))


def make_broadcast(world, rng):
    number = pick(world, rng, lambda t: writable(t) and group_of(t) in ("number", "plain") and len(t.shape) > 0 and t.array.size)
    if number is None:
        return None
    shape = world.objects[number].shape
    box = [selections.strided(rng, n) for n in shape]
    keep = rng.randint(0, len(shape))
    return dict(number=number, box=box, keep=keep, seed=rng.randrange(1 << 30), via=rng.randrange(60))


def do_broadcast(world, op):
    """One value, or a row for all rows: h5py moves the same selection along by an offset."""
    thing = world.objects[op["number"]]
    selection = ["box", op["box"]]
    if not selections.fits(selection, thing.shape):
        return
    positions = selections.flat(selection, thing.shape)
    shape = positions.shape[len(positions.shape) - op["keep"] :]
    array = KINDS[thing.kind].values(op["seed"], shape)
    handle = world.get(op["number"], op["via"])
    handle[selections.for_h5py(selection, thing.shape)] = array if array.shape else array[()]
    note(thing, positions, np.broadcast_to(array, positions.shape))


def make_write_field(world, rng):
    number = pick(world, rng, lambda t: writable(t) and group_of(t) == "compound" and t.shape and t.array.size)
    if number is None:
        return None
    shape = world.objects[number].shape
    selection = selections.random(rng, shape, boxes_only=True)
    field = rng.choice(["a", "b", "c" if world.objects[number].kind == "flat" else "s"])
    return dict(number=number, selection=selection, field=field, seed=rng.randrange(1 << 30), via=rng.randrange(60))


def do_write_field(world, op):
    thing, field = world.objects[op["number"]], op["field"]
    if not selections.fits(op["selection"], thing.shape):
        return
    positions = selections.flat(op["selection"], thing.shape)
    array = KINDS[thing.kind].values(op["seed"], positions.shape)[field]
    handle = world.get(op["number"], op["via"])
    where = selections.for_h5py(op["selection"], thing.shape)
    where = where if isinstance(where, tuple) else (where,)
    handle[(*where, field)] = np.ascontiguousarray(array)
    thing.array.reshape(-1)[field][positions] = array


def fields_of(thing):
    return list(KINDS[thing.kind].dtype.names)


def make_write_fields(world, rng):
    number = pick(world, rng, lambda t: writable(t) and group_of(t) == "compound" and t.shape and t.array.size)
    if number is None:
        return None
    thing = world.objects[number]
    some = [["all"], *(selections.random(rng, thing.shape, boxes_only=True) for _ in range(2))]
    steps = []
    for _ in range(rng.randint(1, 3)):
        names = fields_of(thing)
        rng.shuffle(names)
        where = rng.choice([0, 0, 1, 2])
        for name in names[: rng.choice([1, len(names), len(names)])]:
            steps.append(["fields", where, [name]])
            if rng.random() < 0.25:
                steps.append(random_step(rng, thing))
    return dict(number=number, selections=some, steps=steps, seed=rng.randrange(1 << 30), via=rng.randrange(60))


def random_step(rng, thing):
    """Something that comes between the fields of the same elements."""
    where = rng.randrange(3)
    names = rng.sample(fields_of(thing), rng.randint(1, 2))
    whats = ["fields", "fields", "element", "read", "read", "read_field", "space", "flush", "fork", "anew", "anew"]
    return [rng.choice(whats), where, names]


def do_write_fields(world, op):
    """Fields one after another, as programs do that have a column each; and what may come between."""
    thing, via = world.objects[op["number"]], op["via"]
    for at, (what, where, names) in enumerate(op["steps"]):
        selection = op["selections"][where]
        if not selections.fits(selection, thing.shape):
            continue
        handle = world.get(op["number"], via)
        if what == "fields":
            write_fields(thing, handle, selection, names, op["seed"] + at)
        elif what == "element":
            do_write(world, dict(op, selection=selection, seed=op["seed"] + at, via=via))
        elif what == "read":
            load(world, op["number"], handle, selection)
        elif what == "read_field":
            load(world, op["number"], handle, selection, field=names)
        elif what == "space":
            handle.id.get_storage_size()
        elif what == "flush":
            handle.file.flush()
        elif what == "fork":
            in_a_child(lambda: load(world, op["number"], handle, selection))
        else:
            # Another handle, perhaps of another file handle, and perhaps none in between.
            via = via * 7 + 1
            del handle


def write_fields(thing, handle, selection, names, seed):
    positions = selections.flat(selection, thing.shape)
    array = KINDS[thing.kind].values(seed, positions.shape)
    where = selections.for_h5py(selection, thing.shape)
    where = where if isinstance(where, tuple) else (where,)
    if len(names) == 1 and names != ["c"]:
        handle[(*where, names[0])] = np.ascontiguousarray(array[names[0]])
    else:
        # h5py has no words for a field that is a structure itself, nor for several without gaps between them.
        packed = np.empty(positions.shape, [(name, array.dtype.fields[name][0]) for name in names])
        for name in names:
            packed[name] = array[name]
        space = h5py._hl.selections.select(thing.shape, where).id
        handle.id.write(h5py.h5s.create_simple(positions.shape), space, packed)
    for name in names:
        thing.array.reshape(-1)[name][positions] = array[name]


def in_a_child(work):
    """What a forked process sees of it."""
    child = os.fork()
    if child == 0:
        try:
            work()
        except BaseException:
            traceback.print_exc()
            os._exit(1)
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0, "a child of the process sees other elements"


def make_read(world, rng):
    number = pick(world, rng)
    if number is None:
        return None
    thing = world.objects[number]
    selection = selections.random(rng, thing.shape, boxes_only(thing))
    dtype = field = None
    if group_of(thing) == "number" and KINDS[thing.kind].dtype.kind == "i" and rng.random() < 0.3:
        dtype = rng.choice(["<i2", ">i4", "<i8", "<f4", "<f8"])
    if group_of(thing) == "number" and KINDS[thing.kind].dtype.kind == "f" and rng.random() < 0.3:
        dtype = rng.choice(["<f4", ">f8", "<f8"])
    if group_of(thing) == "compound" and thing.shape and rng.random() < 0.5:
        field = rng.choice([["a"], ["b"], ["c", "a"]])
    if (dtype or field) and selections.low_level(selection):
        selection = ["all"]
    return dict(number=number, selection=selection, via=rng.randrange(60), dtype=dtype, field=field)


def do_read(world, op):
    if selections.fits(op["selection"], world.objects[op["number"]].shape):
        load(world, op["number"], world.get(op["number"], op["via"]), op["selection"], op["dtype"], op["field"])


def make_direct(world, rng):
    number = pick(world, rng, lambda t: writable(t) and group_of(t) == "number" and len(t.shape) > 0 and t.array.size)
    if number is None:
        return None
    box = [selections.dense(rng, n) for n in world.objects[number].shape]
    margin = [[rng.randint(0, 2), rng.randint(0, 2), rng.randint(1, 2)] for _ in box]
    return dict(number=number, box=box, margin=margin, seed=rng.randrange(1 << 30), write=rng.random() < 0.5, via=rng.randrange(60))


def do_direct(world, op):
    """From and to a part of a larger array in memory, perhaps with gaps."""
    thing, selection = world.objects[op["number"]], ["box", op["box"]]
    if not selections.fits(selection, thing.shape) or (op["write"] and world.readonly):
        return
    handle = world.get(op["number"], op["via"])
    counts = [stop - start for start, stop, _ in op["box"]]
    within = tuple(slice(before, before + count * step, step) for count, (before, _, step) in zip(counts, op["margin"]))
    outer = [before + count * step + after for count, (before, after, step) in zip(counts, op["margin"])]
    where = selections.for_h5py(selection, thing.shape)
    memory = KINDS[thing.kind].values(op["seed"], outer)
    if op["write"]:
        handle.write_direct(memory, within, where)
        thing.array[where] = memory[within]
    else:
        expected = memory.copy()
        expected[within] = thing.array[where]
        handle.read_direct(memory, where, within)
        expect(expected, memory, f"read_direct of {handle.name}")


def raw_form(thing):
    """The filters whose stored form is made here, or `None`."""
    names = thing.filters.get("h5py", {}) if thing.filters else {}
    known = set(names) <= {"compression", "compression_opts", "shuffle"} and names.get("compression") in (None, "gzip")
    return dict(names) if known and not thing.filters.get("plugin") else None


def make_raw_chunk(world, rng):
    suits = lambda t: t.layout == "chunked" and group_of(t) == "number" and raw_form(t) is not None and t.array.size
    number = pick(world, rng, suits)
    if number is None:
        return None
    thing = world.objects[number]
    at = [rng.randrange((n + c - 1) // c) * c for n, c in zip(thing.shape, thing.chunks)]
    return dict(number=number, at=at, seed=rng.randrange(1 << 30), write=rng.random() < 0.5, via=rng.randrange(60))


def do_raw_chunk(world, op):
    """A chunk in its stored form, past the filters."""
    thing = world.objects[op["number"]]
    if any(at >= n for at, n in zip(op["at"], thing.shape)) or (op["write"] and world.readonly):
        return
    handle, form = world.get(op["number"], op["via"]), raw_form(thing)
    part = tuple(slice(at, min(at + c, n)) for at, c, n in zip(op["at"], thing.chunks, thing.shape))
    inner = tuple(slice(0, s.stop - s.start) for s in part)
    size = KINDS[thing.kind].dtype.itemsize
    if op["write"]:
        array = KINDS[thing.kind].values(op["seed"], thing.chunks)
        # What is past the edge of the dataset shows when it grows, so it is what libhdf5 would put there.
        padded = KINDS[thing.kind].blank(thing.chunks, thing.fill)
        padded[inner] = array[inner]
        stored = padded.tobytes()
        if form.get("shuffle"):
            stored = np.frombuffer(stored, "u1").reshape(-1, size).T.tobytes()
        if form.get("compression"):
            stored = zlib.compress(stored, 1)
        handle.id.write_direct_chunk(tuple(op["at"]), stored)
        thing.array[part] = padded[inner]
    elif handle.id.get_chunk_info_by_coord(tuple(op["at"])).byte_offset is not None:
        mask, stored = handle.id.read_direct_chunk(tuple(op["at"]))
        assert mask == 0
        if form.get("compression"):
            stored = zlib.decompress(stored)
        if form.get("shuffle"):
            stored = np.frombuffer(stored, "u1").reshape(size, -1).T.tobytes()
        array = np.frombuffer(stored, KINDS[thing.kind].dtype).reshape(thing.chunks)
        expect(thing.array[part], array[inner], f"read_direct_chunk of {handle.name} at {op['at']}")


def make_walk_chunks(world, rng):
    number = pick(world, rng, lambda t: t.layout == "chunked" and t.array.size)
    return None if number is None else dict(number=number, via=rng.randrange(60))


def do_walk_chunks(world, op):
    handle = world.get(op["number"], op["via"])
    array = world.elements(op["number"])
    for where in handle.iter_chunks():
        expect(array[where], handle[where], f"{handle.name}[{where}]")
    sizes = [handle.id.get_chunk_info(at).size for at in range(handle.id.get_num_chunks())]
    assert sum(sizes) == handle.id.get_storage_size(), f"{handle.name}: chunks of {sizes} in {handle.id.get_storage_size()}"
    seen = []
    handle.id.chunk_iter(lambda chunk: seen.append(chunk.size) and None)
    assert sum(seen) == sum(sizes)


READS = [(14, make_read, do_read), (3, make_direct, do_direct), (2, make_raw_chunk, do_raw_chunk), (2, make_walk_chunks, do_walk_chunks)]
WRITES = [
    (18, make_write, do_write),
    (4, make_write_converted, do_write_converted),
    (4, make_write_many, do_write_many),
    (4, make_broadcast, do_broadcast),
    (4, make_write_field, do_write_field),
    (5, make_write_fields, do_write_fields),
]
