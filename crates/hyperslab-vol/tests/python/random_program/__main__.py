"""Random programs on HDF5 files, and what their files must hold in the end.

    python -m random_program run FOLDER SEED...     one program after the other, each in a folder of its own
    python -m random_program check FOLDER SEED...   holds the files against what the programs noted
    python -m random_program replay FOLDER FILE     the operations that FILE lists, as JSON
    python -m random_program verify FOLDER          holds the files of one program against what it noted
"""

import json
import os
import pickle
import random
import sys
import traceback

import h5py

from . import check, creation, structure, transfers
from .world import Group, World

LENGTH = 60
READS = transfers.READS + structure.READS
WRITES = creation.CREATIONS + transfers.WRITES + structure.WRITES
BY_NAME = {do.__name__: do for _, _, do in READS + WRITES}


def make_start(rng):
    files = {}
    for name in ("a", "b")[: rng.choice([1, 2, 2])]:
        options = {"creation": {}}
        if rng.random() < 0.6:
            options["libver"] = rng.choice(["earliest", "latest", ["v108", "v110"], ["earliest", "v114"]])
        if rng.random() < 0.2:
            options["creation"]["track_order"] = True
        style = rng.random()
        if style < 0.06:
            options |= {"driver": "core", "special": True}
        elif style < 0.1:
            options |= {"driver": "stdio", "special": True}
        elif style < 0.18:
            options["creation"] |= {"fs_strategy": "page", "fs_page_size": 4096, "fs_persist": rng.random() < 0.5}
        elif style < 0.22:
            options["creation"] |= {"alignment_threshold": 100, "alignment_interval": 512}
        elif style < 0.26:
            options["rdcc_nbytes"] = rng.choice([0, 1000])
        elif style < 0.4:
            options["creation"]["userblock_size"] = rng.choice([512, 4096])
        files[name] = options
    return {"do": "start", "files": files}


def apply(world, op):
    if op["do"] == "start":
        world.options = op["files"]
        for name in world.options:
            world.links[name] = {}
            world.open(name, "w")
            world.new(Group(), name, "/")
    elif op["do"] == "do_dataset" or "number" not in op or op["number"] is None or creates(op):
        BY_NAME[op["do"]](world, op)
    elif op["number"] in world.objects and world.places(op["number"]):
        BY_NAME[op["do"]](world, op)


def creates(op):
    return op["do"] in ("do_dataset", "do_null", "do_virtual", "do_references", "do_group", "do_copy")


def choose(world, rng):
    while True:
        known = READS if world.readonly else READS + WRITES
        _, make, do = rng.choices(known, [weight for weight, _, _ in known])[0]
        op = make(world, rng)
        if op is not None:
            return {"do": do.__name__, **op}


def finish(world, folder):
    do_last = world.next % 4
    if do_last:
        check.everything(world, lambda name: world.file(name))
    world.close()
    with open(os.path.join(folder, "world.pickle"), "wb") as file:
        pickle.dump(world, file)


def run(folder, seed):
    """One program. Its operations are in operations.json as they are begun."""
    os.makedirs(folder, exist_ok=True)
    rng, world = random.Random(seed), World(folder)
    with open(os.path.join(folder, "operations.json"), "w") as log:
        for at in range(LENGTH):
            op = make_start(rng) if at == 0 else choose(world, rng)
            # As it will be read back: no tuples.
            op = json.loads(json.dumps(op))
            log.write(json.dumps(op) + "\n")
            log.flush()
            try:
                apply(world, op)
            except BaseException as error:
                raise RuntimeError(f"operation {at} ({op['do']}) of seed {seed}: {error}") from error
    finish(world, folder)


def replay(folder, path):
    world = World(folder)
    with open(path) as file:
        operations = [json.loads(line) for line in file]
    for op in operations:
        apply(world, op)
    finish(world, folder)


def verify(folder):
    with open(os.path.join(folder, "world.pickle"), "rb") as file:
        world = pickle.load(file)
    files = {name: h5py.File(world.path(name), "r") for name in world.links}
    check.everything(world, files.__getitem__)
    for file in files.values():
        file.close()


def main():
    what, folder, *rest = sys.argv[1:]
    if what == "replay":
        return replay(folder, rest[0])
    if what == "verify":
        return verify(folder)
    wrong = False
    for seed in map(int, rest):
        own = os.path.join(folder, str(seed))
        try:
            run(own, seed) if what == "run" else verify(own)
        except Exception:
            wrong = True
            print(f"FAILED seed {seed}\n{traceback.format_exc()}", flush=True)
            break
        print(f"passed seed {seed}", flush=True)
    sys.exit(wrong)


if __name__ == "__main__":
    main()
