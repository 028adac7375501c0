"""Random programs of netCDF4-python, with their model: the same form as `grammar` and `model` have for h5py."""

import random

import numpy as np

FILL = {"f8": 9.969209968386869e36, "i4": -2147483647, "i2": -32767}


def generate(seed, length):
    """The program of this seed."""
    pick = random.Random(seed)
    program = [{"op": "open", "mode": "w"}, {"op": "dimension", "name": "t", "size": None}, {"op": "dimension", "name": "x", "size": 6}]
    variables, records, made = [], 0, 0
    while len(program) < length:
        made += 1
        choice = pick.choice(["variable", "write", "write", "append", "append", "attribute", "flush", "reopen"])
        if choice == "variable" or not variables:
            name = f"v{made}"
            variables.append((name, pick.choice([True, False])))
            program.append({"op": "variable", "name": name, "type": pick.choice(sorted(FILL)), "record": variables[-1][1],
                            "zlib": pick.choice([True, False])})
        elif choice in ("write", "append"):
            name, record = pick.choice(variables)
            first = (records if choice == "append" or not records else pick.randrange(records)) if record else None
            records = max(records, first + 1) if record else records
            program.append({"op": "put", "name": name, "first": first, "seed": made})
        elif choice == "attribute":
            where = pick.choice([None] + [name for name, _ in variables])
            program.append({"op": "attribute", "name": where, "attribute": pick.choice(["a", "b"]), "value": f"text {made}"})
        elif choice == "flush":
            program.append({"op": "flush"})
        else:
            program += [{"op": "close"}, {"op": "open", "mode": "a"}]
    return program + ([{"op": "close"}] if pick.random() < 0.8 else [])


def values(kind, seed):
    return (np.arange(6) * 3 + seed).astype(kind)


class Runner:
    """Runs operations."""

    def __init__(self, path):
        self.path, self.file = path, None

    def run(self, op):
        import netCDF4

        kind = op["op"]
        if kind == "open":
            self.file = netCDF4.Dataset(self.path, op["mode"], format="NETCDF4")
        elif kind == "close":
            self.file.close()
        elif kind == "flush":
            self.file.sync()
        elif kind == "dimension":
            self.file.createDimension(op["name"], op["size"])
        elif kind == "variable":
            dimensions = ("t", "x") if op["record"] else ("x",)
            self.file.createVariable(op["name"], op["type"], dimensions, zlib=op["zlib"])
        elif kind == "put":
            variable = self.file[op["name"]]
            variable[op["first"] if op["first"] is not None else Ellipsis] = values(variable.dtype, op["seed"])
        elif kind == "attribute":
            (self.file if op["name"] is None else self.file[op["name"]]).setncattr(op["attribute"], op["value"])


def states(program):
    """As `model.states`."""
    out, attributes, dimensions, variables, records = [], {}, {}, {}, 0

    def snapshot():
        flat = {"/": (0, "group", dict(attributes), None)}
        for name, size in dimensions.items():
            flat["/dimension " + name] = ("d" + name, "dataset", {}, np.array(records if size is None else size))
        for name, (kind, record, own, data) in variables.items():
            if record and len(data) < records:
                more = np.full((records - len(data), 6), FILL[kind], kind)
                data = np.concatenate([data, more])
            flat["/" + name] = (name, "dataset", dict(own), data)
        return flat

    for op in program:
        kind, written = op["op"], None
        if kind == "dimension":
            dimensions[op["name"]] = op["size"]
        elif kind == "variable":
            shape = (0, 6) if op["record"] else (6,)
            variables[op["name"]] = (op["type"], op["record"], {}, np.full(shape, FILL[op["type"]], op["type"]))
        elif kind == "put":
            type_, record, own, data = variables[op["name"]]
            written = op["name"]
            if record:
                records = max(records, op["first"] + 1)
                grown = np.full((max(len(data), op["first"] + 1), 6), FILL[type_], type_)
                grown[: len(data)] = data
                grown[op["first"]] = values(type_, op["seed"])
                data = grown
            else:
                data = values(type_, op["seed"])
            variables[op["name"]] = (type_, record, own, data)
        elif kind == "attribute":
            own = attributes if op["name"] is None else variables[op["name"]][2]
            if op["name"] is not None:
                type_, record, own, data = variables[op["name"]]
                variables[op["name"]] = (type_, record, {**own, op["attribute"]: op["value"]}, data)
            else:
                attributes[op["attribute"]] = op["value"]
        out.append([(snapshot(), written)])
    return out


def read(path):
    """As `view.read`, by netCDF4."""
    import netCDF4

    with netCDF4.Dataset(path) as file:
        file.set_auto_mask(False)
        flat = {"/": (0, "group", {name: file.getncattr(name) for name in file.ncattrs()}, None)}
        for name, dimension in file.dimensions.items():
            flat["/dimension " + name] = ("d" + name, "dataset", {}, np.array(len(dimension)))
        for name, variable in file.variables.items():
            own = {one: variable.getncattr(one) for one in variable.ncattrs()}
            flat["/" + name] = (name, "dataset", own, np.asarray(variable[...]))
    return flat


