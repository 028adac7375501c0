"""Holds a file against what its program had been promised."""

import numpy as np

from . import model


class Expected:
    """The states of one program, and how far it had come."""

    def __init__(self, states, program, begun, acked):
        self.states, self.program, self.begun, self.acked = states, program, begun, acked
        commits = [number for number in range(acked + 1) if program[number]["op"] in model.COMMITS]
        self.committed = commits[-1] if commits else -1

    @property
    def in_flight(self):
        return self.begun > self.acked

    def after(self, number):
        """The snapshot when an operation has returned."""
        return self.states[number][-1][0]

    def since(self, first):
        """Snapshots from that operation on, those of the one in flight included."""
        last = [snapshot for snapshot, _ in self.states[self.begun]] if self.in_flight else []
        return [self.after(number) for number in range(first, self.acked + 1)] + last

    def is_being_made(self, identity):
        """Whether the operation in flight makes this dataset. Until its elements are written they are what the file had there,
        since libhdf5 allocates without fill values unless it is asked for them."""
        return self.in_flight and all(identity != entry[0] for entry in self.after(self.acked).values())

    def last_write(self, identity):
        """The last operation that had returned and wrote elements of this dataset."""
        for number in range(self.acked, -1, -1):
            if any(written == identity for _, written in self.states[number]):
                return number
        return -1


def same_value(a, b):
    if isinstance(a, np.ndarray) and isinstance(b, np.ndarray):
        return a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()
    return type(a) is type(b) and a == b


def same_structure(view, snapshot):
    """None, or the first difference in names, kinds, attributes and links; elements do not count."""
    for path in sorted(set(view) ^ set(snapshot)):
        return f"{path} is {'missing' if path in snapshot else 'there'}"
    pairs = {}
    for path, (identity, kind, attributes, data) in view.items():
        wanted_identity, wanted_kind, wanted_attributes, wanted = snapshot[path]
        if kind != wanted_kind:
            return f"{path} is a {kind} instead of a {wanted_kind}"
        if kind == "soft":
            if data != wanted:
                return f"{path} points to {data} instead of {wanted}"
            continue
        if attributes != wanted_attributes:
            return f"attributes of {path} are {shortened(attributes)} instead of {shortened(wanted_attributes)}"
        if pairs.setdefault(identity, wanted_identity) != wanted_identity:
            return f"{path} is another object"
    return None


def same_everything(view, snapshot):
    difference = same_structure(view, snapshot)
    if difference:
        return difference
    for path, (_, kind, _, data) in view.items():
        if kind in ("dataset", "strings") and not same_value(data, snapshot[path][3]):
            return f"{path} holds {shortened(data)} instead of {shortened(snapshot[path][3])}"
    return None


def shortened(value):
    text = str(value.ravel()[:12].tolist()) + str(value.shape) if isinstance(value, np.ndarray) else repr(value)
    return text if len(text) < 160 else text[:160] + "..."


def versions(expected, identity, first):
    """Elements of a dataset from an operation on, the newest last."""
    out = []
    for snapshot in expected.since(first):
        for found, kind, _, data in snapshot.values():
            if found == identity and kind in ("dataset", "strings"):
                if not out or out[-1] is not data:
                    out.append(data)
                break
    return out


def elements(expected, identity, data, first, torn):
    """Whether these are elements that the dataset may have: those of one version, or where writes may be `torn` each of any
    version of the same shape or of any shape."""
    candidates = versions(expected, identity, first)
    if any(same_value(data, candidate) for candidate in candidates):
        return True
    if not torn:
        return False
    if isinstance(data, tuple):
        alike = [one for one in candidates if isinstance(one, tuple) and len(one) == len(data)]
        return all(any(text == one[place] for one in alike) for place, text in enumerate(data))
    alike = [one for one in candidates if isinstance(one, np.ndarray) and one.dtype == data.dtype and one.ndim == data.ndim]
    if not any(one.shape == data.shape for one in alike):
        return False
    if torn == "same shape":
        alike = [one for one in alike if one.shape == data.shape]
    names = data.dtype.names or [Ellipsis]
    return all(known(data, alike, name) for name in names)


def known(data, alike, name):
    """Whether each element, or its field, is that of some version."""
    found = np.zeros(data.shape, bool)
    for one in alike:
        common = tuple(slice(0, min(a, b)) for a, b in zip(data.shape, one.shape))
        found[common] |= data[name][common] == one[name][common]
    return bool(found.all())


def exactly(view, expected):
    """Mode safe: the last commit, or the one in flight."""
    allowed = [expected.after(expected.committed)]
    if expected.in_flight and expected.program[expected.begun]["op"] in model.COMMITS:
        allowed.append(expected.after(expected.begun))
    differences = [same_everything(view, snapshot) for snapshot in allowed]
    return None if None in differences else differences[-1]


def some_moment(view, expected):
    """Mode safe below a library that flushes when it likes: one moment since the last commit."""
    differences = [same_everything(view, snapshot) for snapshot in expected.since(max(expected.committed, 0))]
    return None if None in differences else differences[0]


def at_least(view, expected):
    """Mode log: one structure since the last commit, and elements as new as every write that had returned."""
    first = max(expected.committed, 0)
    reasons = []
    for snapshot in reversed(expected.since(first)):
        reason = same_structure(view, snapshot)
        if reason is None:
            reason = newest(view, snapshot, expected, first)
        if reason is None:
            return None
        reasons.append(reason)
    return reasons[0] if len(reasons) == 1 else f"{reasons[0]}; nor as before: {reasons[-1]}"


def newest(view, snapshot, expected, first):
    for path, (_, kind, _, data) in view.items():
        if kind not in ("dataset", "strings"):
            continue
        identity = snapshot[path][0]
        if expected.is_being_made(identity):
            continue
        oldest = max(first, expected.last_write(identity))
        if not elements(expected, identity, data, oldest, "same shape" if expected.in_flight else None):
            now = versions(expected, identity, oldest)
            return f"{path} holds {shortened(data)} instead of {shortened(now[-1]) if now else 'nothing'}"
    there = {entry[0] for entry in snapshot.values()}
    for identity in {entry[0] for entry in expected.after(expected.acked).values() if entry[1] in ("dataset", "strings")}:
        number = expected.last_write(identity)
        if number > expected.committed and identity not in there and not deleted(expected, identity):
            return f"what operation {number} wrote is in no dataset"
    return None


def deleted(expected, identity):
    """Whether the operation in flight takes the dataset away."""
    steps = expected.states[expected.begun] if expected.in_flight else []
    return any(identity not in {entry[0] for entry in snapshot.values()} for snapshot, _ in steps)


def flushed(view, expected):
    """No promise: only what had been flushed and not been touched since must be there; what was, may be of any moment."""
    first = max(expected.committed, 0)
    snapshots = expected.since(first)
    for path, (identity, kind, attributes, _) in snapshots[0].items():
        if any(path not in snapshot or snapshot[path][0] != identity for snapshot in snapshots):
            continue
        if path not in view or view[path][1] != kind:
            return f"{path} is missing"
        for name, value in attributes.items():
            untouched = all(snapshot[path][2].get(name) == value for snapshot in snapshots)
            if untouched and view[path][2].get(name) != value:
                return f"attribute {name} of {path} is missing"
        if kind in ("dataset", "strings") and not elements(expected, identity, view[path][3], first, "any shape"):
            return f"{path} holds {shortened(view[path][3])} instead of {shortened(snapshots[0][path][3])}"
    return None


def judge(view, expected, promise):
    """None if the promise is kept, or what is missing."""
    rules = {"safe": exactly, "moment": some_moment, "log": at_least, "flush": flushed}
    return rules[promise](view, expected)
