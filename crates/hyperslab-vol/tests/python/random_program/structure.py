"""Operations on extents, names, attributes, handles and files."""

import h5py
import numpy as np

from . import check, selections
from .transfers import group_of, pick
from .values import KINDS
from .world import Dataset, Group, References


def make_resize(world, rng):
    number = pick(world, rng, lambda t: t.maxshape)
    if number is None:
        return None
    thing, shape = world.objects[number], []
    for now, most, chunk in zip(thing.shape, thing.maxshape, thing.chunks):
        wanted = rng.choice([now, now + 1, now + chunk, 2 * now, now // 2, max(0, now - 1), rng.randint(0, now + 5)])
        shape.append(wanted if most is None else min(wanted, most))
    if int(np.prod(shape)) > 2_000_000:
        return None
    return dict(number=number, shape=shape, via=rng.randrange(60))


def do_resize(world, op):
    thing = world.objects[op["number"]]
    if int(np.prod(op["shape"])) <= 4_000_000:
        world.get(op["number"], op["via"]).resize(tuple(op["shape"]))
        thing.resize(op["shape"])


def make_group(world, rng):
    file = rng.choice(sorted(world.links))
    path = f"{rng.choice(world.groups(file))}/group{world.next}"
    return dict(number=world.next, file=file, path=path, track_order=rng.choice([None, True]))


def do_group(world, op):
    if op["path"].rsplit("/", 1)[0] in world.groups(op["file"]):
        world.file(op["file"]).create_group(op["path"], track_order=op["track_order"])
        world.next = op["number"]
        world.new(Group(), op["file"], op["path"])


def make_delete(world, rng):
    places = [(file, path) for file, links in world.links.items() for path in links if path != "/"]
    if not places:
        return None
    file, path = rng.choice(sorted(places))
    if world.links[file][path][0] == "hard" and is_group(world, file, path) and rng.random() < 0.7:
        return None
    return dict(file=file, path=path)


def is_source(world, file, path):
    """Whether a virtual dataset needs it: an open one may or may not see that its source is gone."""
    virtual = [thing for thing in world.objects.values() if isinstance(thing, Dataset) and thing.sources]
    return any(source[:2] == [file, path] for thing in virtual for source in thing.sources)


def is_group(world, file, path):
    link = world.links[file].get(path)
    return link is not None and link[0] == "hard" and isinstance(world.objects[link[1]], Group)


def below(world, file, path):
    return [other for other in world.links[file] if other == path or other.startswith(path + "/")]


def do_delete(world, op):
    if op["path"] in world.links[op["file"]] and not is_source(world, op["file"], op["path"]):
        del world.file(op["file"])[op["path"]]
        for path in below(world, op["file"], op["path"]):
            del world.links[op["file"]][path]


def make_move(world, rng):
    places = [(file, path) for file, links in world.links.items() for path in links if path != "/"]
    if not places:
        return None
    file, path = rng.choice(sorted(places))
    parents = [group for group in world.groups(file) if not (group + "/").startswith(path + "/")]
    world.next += 1
    return dict(file=file, path=path, to=f"{rng.choice(parents)}/moved{world.next - 1}")


def do_move(world, op):
    links = world.links[op["file"]]
    if op["path"] in links and not is_source(world, op["file"], op["path"]) and op["to"].rsplit("/", 1)[0] in world.groups(op["file"]):
        world.file(op["file"]).move(op["path"], op["to"])
        for path in below(world, op["file"], op["path"]):
            links[op["to"] + path[len(op["path"]) :]] = links.pop(path)


def make_copy(world, rng):
    number = pick(world, rng, lambda t: t.layout not in ("virtual", "external") and not t.scales)
    if number is None:
        return None
    file = rng.choice(sorted(world.links))
    return dict(source=number, number=world.next, file=file, path=f"/copy{world.next}", via=rng.randrange(60))


def do_copy(world, op):
    if op["source"] not in world.alive(Dataset):
        return
    source = world.objects[op["source"]]
    home = world.home(op["source"])
    if source.layout == "contiguous" and "userblock_size" in world.options[op["file"]]["creation"]:
        # libhdf5's sieve buffer loses the end of what was copied behind a user block.
        return
    # Of a dataset that is open libhdf5 may copy old elements, or write past a buffer.
    for handle in world.kept.pop(op["source"], []):
        handle.id.close()
    try:
        world.file(home[0], op["via"]).copy(home[1], world.file(op["file"]), op["path"])
    except RuntimeError as error:
        if "less than 2^32" in str(error) or "version out of bounds" in str(error):
            # Files of different versions: libhdf5 does not copy from one to the other.
            return
        raise
    twin = Dataset(
        source.kind, source.shape, source.layout, fill=source.fill, filters=source.filters,
        never_filled=source.never_filled, maxshape=source.maxshape, chunks=source.chunks,
    )
    twin.array, twin.attributes = source.array.copy(), dict(source.attributes)
    world.next = op["number"]
    world.new(twin, op["file"], op["path"])


def make_link(world, rng):
    number = pick(world, rng)
    if number is None:
        return None
    home = world.home(number)
    sort = rng.choice(["hard", "soft", "external"])
    file = home[0] if sort != "external" else rng.choice(sorted(world.links))
    if sort == "external" and (file == home[0] or not (world.plain(file) and world.plain(home[0]))):
        return None
    world.next += 1
    return dict(sort=sort, file=file, path=f"/link{world.next - 1}", to=list(home))


def do_link(world, op):
    target = world.resolve(*op["to"])
    if target is None:
        return
    file = world.file(op["file"])
    if op["sort"] == "hard":
        file[op["path"]] = file[op["to"][1]]
        world.links[op["file"]][op["path"]] = ("hard", target)
    elif op["sort"] == "soft":
        file[op["path"]] = h5py.SoftLink(op["to"][1])
        world.links[op["file"]][op["path"]] = ("soft", op["to"][1])
    else:
        file[op["path"]] = h5py.ExternalLink(world.path(op["to"][0]), op["to"][1])
        world.links[op["file"]][op["path"]] = ("external", *op["to"])


def attribute_value(seed):
    rng = np.random.default_rng(seed)
    sort = rng.integers(7)
    if sort == 0:
        return "text é" * int(rng.integers(1, 30))
    if sort == 1:
        return h5py.Empty("f4")
    if sort == 2:
        return KINDS["flat"].values(seed, (3,))
    if sort == 3:
        return KINDS["text"].values(seed, (4,))
    if sort == 4:
        return rng.standard_normal((int(rng.integers(1, 300)),))
    return KINDS["<i8" if sort == 5 else ">f4"].values(seed, ())


def make_attribute(world, rng):
    number = rng.choice(world.alive(Dataset, Group, References))
    return dict(number=number, name=f"attribute{rng.randrange(4)}", seed=rng.choice([None, rng.randrange(1 << 30), rng.randrange(1 << 30)]), via=rng.randrange(60))


def do_attribute(world, op):
    thing, handle = world.objects[op["number"]], world.get(op["number"], op["via"])
    if op["seed"] is None:
        if thing.attributes.pop(op["name"], None) is not None:
            del handle.attrs[op["name"]]
    else:
        value = attribute_value(op["seed"])
        handle.attrs[op["name"]] = value
        thing.attributes[op["name"]] = value
    check.attributes(world, op["number"], handle)


def make_scale(world, rng):
    suits = lambda t: t.shape and t.layout != "virtual" and not t.scales
    scale, target = pick(world, rng, lambda t: suits(t) and len(t.shape) == 1), pick(world, rng, suits)
    if scale is None or target is None or scale == target or world.home(scale)[0] != world.home(target)[0]:
        return None
    return dict(scale=scale, target=target, axis=rng.randrange(len(world.objects[target].shape)))


def do_scale(world, op):
    if op["scale"] not in world.alive(Dataset) or op["target"] not in world.alive(Dataset):
        return
    if world.objects[op["target"]].scales or any(t.scales and op["target"] in [s for _, s in t.scales] for t in world.objects.values() if isinstance(t, Dataset)):
        return
    if world.objects[op["scale"]].scales:
        return
    scale, target = world.get(op["scale"], 1), world.get(op["target"], 1)
    scale.make_scale("scale")
    target.dims[op["axis"]].attach_scale(scale)
    world.objects[op["target"]].scales.append((op["axis"], op["scale"]))
    assert len(target.dims[op["axis"]]) == 1


def make_flush(world, rng):
    return dict(number=rng.choice([None, pick(world, rng)]), via=rng.randrange(60), file=rng.choice(sorted(world.links)))


def do_flush(world, op):
    if op["number"] is None:
        world.file(op["file"]).flush()
    elif op["number"] in world.alive(Dataset):
        world.get(op["number"], op["via"]).flush()


def make_refresh(world, rng):
    number = pick(world, rng, lambda t: t.layout != "virtual")
    return None if number is None else dict(number=number, via=rng.randrange(60))


def do_refresh(world, op):
    handle = world.get(op["number"], op["via"])
    handle.flush()
    handle.refresh()
    check.one(world, op["number"], handle)


def make_check(world, rng):
    return {}


def do_check(world, op):
    check.everything(world, lambda name: world.file(name))


def make_reopen(world, rng):
    return dict(readonly=rng.random() < 0.2)


def do_reopen(world, op):
    world.close()
    world.readonly = op["readonly"]
    for name in sorted(world.links):
        world.open(name, "r" if op["readonly"] else "r+")


def make_second_handle(world, rng):
    name = rng.choice(sorted(world.links))
    if not world.plain(name):
        return None
    return dict(file=name, close=rng.random() < 0.4)


def do_second_handle(world, op):
    """The same file once more in this process, or one handle less."""
    files = [file for file in world.handles[op["file"]] if file]
    if op["close"] and len(files) > 1:
        files[0].close()
    elif len(files) < 4:
        world.open(op["file"], "r" if world.readonly else "r+")


def make_mistake(world, rng):
    number = pick(world, rng, lambda t: len(t.shape) > 0)
    if number is None:
        return None
    return dict(number=number, sort=rng.choice(["bounds", "shape", "type", "name", "missing", "extent"]), via=rng.randrange(60))


def do_mistake(world, op):
    """What h5py refuses leaves all as it was."""
    handle = world.get(op["number"], op["via"])
    file, rank = handle.file, len(handle.shape)
    where = world.home(op["number"])[1]
    tries = {
        "bounds": lambda: handle[(10**9,) * rank],
        "shape": lambda: handle.write_direct(np.zeros((7,) * 5, handle.dtype)),
        "type": lambda: handle.write_direct(np.zeros(handle.shape, [("not", "f4"), ("this", "f8")])),
        "name": lambda: world.file(world.home(op["number"])[0]).create_dataset(where, data=1),
        "missing": lambda: file["/nothing/here"],
        "extent": lambda: handle.resize((1,) * (rank + 1)),
    }
    if op["sort"] == "type" and (group_of(world.objects[op["number"]]) == "compound" or not all(handle.shape)):
        return
    try:
        tries[op["sort"]]()
    except (TypeError, ValueError, KeyError, OSError, IndexError, RuntimeError):
        return
    if not (op["sort"] == "type" and world.readonly):
        raise AssertionError(f"a mistake went through: {op['sort']}")


READS = [(2, make_check, do_check), (2, make_reopen, do_reopen), (1, make_second_handle, do_second_handle), (1, make_mistake, do_mistake)]
WRITES = [
    (6, make_resize, do_resize),
    (2, make_group, do_group),
    (4, make_delete, do_delete),
    (2, make_move, do_move),
    (2, make_copy, do_copy),
    (3, make_link, do_link),
    (3, make_attribute, do_attribute),
    (1, make_scale, do_scale),
    (2, make_flush, do_flush),
    (1, make_refresh, do_refresh),
]
