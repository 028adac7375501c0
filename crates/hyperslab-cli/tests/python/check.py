"""Checks containers against what must be in them, as a list of jobs says:  check.py JOBS.json

Expected values come from fill_rules.py, which follows docs/workload-format.md. Prints what is wrong and fails, or prints
how many jobs were done.
"""

import json
import sys

import numpy as np

import containers
import fill_rules

PROPERTIES = [
    ("x", "<f4", "random"),
    ("y", "<f4", "random"),
    ("z", "<f4", "ramp"),
    ("px", "<f4", "random"),
    ("py", "<f4", "random"),
    ("pz", "<f4", "ramp"),
    ("id_1", "<i4", "index"),
    ("id_2", "<f4", "index"),
]


def written(job):
    """Which elements of an array were written: all, or of each rank's rows blocks at regular distances."""
    shape = job["shape"]
    part = job.get("written")
    if part is None:
        return np.ones(shape, bool)
    inside = np.ones((1,) * len(shape), bool)
    rows = shape[0] // part["ranks"]
    for d, (stride, count, block) in enumerate(zip(part["stride"], part["count"], part["block"])):
        extent = rows if d == 0 else shape[d]
        line = np.zeros(extent, bool)
        for number in range(count):
            line[number * stride : number * stride + block] = True
        if d == 0:
            line = np.tile(line, part["ranks"])
        inside = inside & line.reshape([-1 if e == d else 1 for e in range(len(shape))])
    return inside


def expected(job, name, dtype, fill):
    """The whole array: bands of rows, each with its seed; what was not written is zero."""
    shape, bands, row = job["shape"], [], 0
    for rows, seed in job.get("seeds", [[shape[0], 1]]):
        per_row = int(np.prod(shape[1:], dtype=np.int64))
        bands.append(fill_rules.whole(dtype, fill, name, seed, [rows] + shape[1:], row * per_row))
        row += rows
    out = np.concatenate(bands)
    out[~written(job)] = np.zeros((), dtype)
    return out


def particle_arrays(job):
    """Name, type and rule of each array of a job of particles."""
    out = []
    for step in range(job["steps"]):
        group = f"Timestep_{step}"
        if job["layout"] == "compound":
            dtype = np.dtype([(name, kind) for name, kind, _ in PROPERTIES])
            out.append((f"{group}/particles", dtype, [fill for _, _, fill in PROPERTIES]))
            continue
        for name, kind, fill in PROPERTIES:
            alone = job["layout"] == "arrays"
            out.append((f"{group}/{name}", np.dtype(kind if alone else [(name, kind)]), fill if alone else [fill]))
    return out


def other_arrays(job):
    """The arrays of a job that names them."""
    for array in job["arrays"]:
        dtype = array["dtype"]
        dtype = np.dtype([(name, kind) for name, kind in dtype] if isinstance(dtype, list) else dtype)
        yield array, dtype


def check_values(job, found, name, want, problems):
    if found.dtype != want.dtype:
        problems.append(f"{name} has type {found.dtype}, expected {want.dtype}")
    elif found.shape != want.shape:
        problems.append(f"{name} has shape {found.shape}, expected {want.shape}")
    elif found.tobytes() != want.tobytes():
        wrong = np.argwhere(found != want)
        place = tuple(wrong[0].tolist()) if len(wrong) else "some bit"
        problems.append(f"{name} is wrong in {len(wrong)} places, first at {place}")


def check_layout(job, container, name, problems):
    """Chunks, filters, limits and places, as far as the job speaks of them."""
    about = container.layout(name)
    for key in ("chunks", "maxshape", "filters"):
        if key in job and about[key] != job[key]:
            problems.append(f"{name}: {key} is {about[key]}, expected {job[key]}")


def particles(job):
    problems = []
    container = containers.open(job["format"], job["path"])
    arrays = particle_arrays(job)
    if container.names() != sorted(name for name, _, _ in arrays):
        problems.append(f"the arrays are {container.names()}")
    if job.get("part") and not container.part():
        problems.append("hyperslab_part does not say that elements were left out")
    if "seed_attribute" in job and container.seed() != job["seed_attribute"]:
        problems.append(f"hyperslab_seed is {container.seed()}, expected {job['seed_attribute']}")
    for name, dtype, fill in arrays:
        check_values(job, container.read(name), name, expected(job, name, dtype, fill), problems)
        check_layout(job, container, name, problems)
    if "align" in job:
        remainders = {offset % job["align"] for name, _, _ in arrays for offset in container.offsets(name)}
        if (remainders == {0}) != job["aligned"]:
            problems.append(f"remainders of offsets by {job['align']} are {sorted(remainders)[:9]}")
    container.close()
    return problems


def named(job):
    """Arrays of any names, all random, all written except where `written` says which blocks."""
    problems = []
    container = containers.open("hdf5", job["path"])
    if container.names() != sorted(array["name"] for array in job["arrays"]):
        problems.append(f"the arrays are {container.names()}")
    for array, dtype in other_arrays(job):
        want = fill_rules.whole(dtype, "random", array["name"], 1, array["shape"])
        if "blocks" in array:
            inside = np.zeros(array["shape"], bool)
            for box in array["blocks"]:
                inside[tuple(slice(start, stop) for start, stop in box)] = True
            want[~inside] = np.zeros((), dtype)
        check_values(job, container.read(array["name"]), array["name"], want, problems)
        check_layout(array, container, array["name"], problems)
    for name, count in job.get("attributes", {}).items():
        texts = [bytes(value.view("u1")).rstrip(b"\0").decode() for value in container.attributes(name).values()]
        if sorted(texts) != sorted(f"Value of attribute {n}" for n in range(count)):
            problems.append(f"the attributes of {name} are {texts}")
    container.close()
    return problems


def same(job):
    """Two files hold the same arrays, and neither is without."""
    first, second = (containers.open("hdf5", path) for path in job["paths"])
    problems = [] if first.names() and first.names() == second.names() else ["the arrays differ"]
    for name in first.names() if not problems else []:
        check_values(job, first.read(name), name, second.read(name), problems)
        check_layout(first.layout(name), second, name, problems)
    first.close()
    second.close()
    return problems


def main():
    with open(sys.argv[1]) as file:
        jobs = json.load(file)
    failed = 0
    for job in jobs:
        problems = {"particles": particles, "named": named, "same": same}[job["kind"]](job)
        for problem in problems[:5]:
            print(f"{job['label']}: {problem}", file=sys.stderr)
        failed += bool(problems)
    print(f"{len(jobs) - failed} of {len(jobs)} are right")
    sys.exit(1 if failed else 0)


main()
