"""What the connector did so far, in this process and in those that it started (docs/connector.md, Statistics)."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Iterable

_VERSION = 1


@dataclass(frozen=True)
class Side:
    """Reads, or writes."""

    calls: int = 0
    bytes: int = 0
    accelerated_calls: int = 0
    accelerated_bytes: int = 0
    seconds: float = 0.0

    def __sub__(self, before: "Side") -> "Side":
        return Side(*(getattr(self, name) - getattr(before, name) for name in self.__dataclass_fields__))

    def words(self) -> str:
        total = f"{size(self.bytes)} in {count(self.calls, 'call')}, {self.seconds:.2f} s"
        if self.accelerated_calls == 0:
            return f"{total}: none around libhdf5"
        if self.accelerated_calls == self.calls:
            return f"{total}: all around libhdf5"
        # Rounded down, so that not all is never said to be all.
        share = f" ({100 * self.accelerated_bytes // self.bytes} % of the bytes)" if self.bytes else ""
        return f"{total}: {count(self.accelerated_calls, 'call')} around libhdf5{share}"


@dataclass(frozen=True)
class Stats:
    """Sums over processes. ``print`` it, or look at it in a notebook."""

    processes: int = 0
    files: int = 0
    datasets: int = 0
    written: Side = Side()
    read: Side = Side()
    background_seconds: float = 0.0
    hidden_seconds: float = 0.0
    errors: int = 0
    #: Why calls were left to libhdf5, with their number and bytes.
    fell_back: dict[str, tuple[int, int]] = field(default_factory=dict)
    #: Data whose write had returned and that could not be written.
    unwritten: tuple[dict[str, Any], ...] = ()

    def __sub__(self, before: "Stats") -> "Stats":
        """What happened between two moments."""
        fell_back = {}
        for why, (calls, size_) in self.fell_back.items():
            earlier = before.fell_back.get(why, (0, 0))
            if calls > earlier[0]:
                fell_back[why] = (calls - earlier[0], size_ - earlier[1])
        return Stats(
            self.processes,
            self.files - before.files,
            self.datasets - before.datasets,
            self.written - before.written,
            self.read - before.read,
            self.background_seconds - before.background_seconds,
            self.hidden_seconds - before.hidden_seconds,
            self.errors - before.errors,
            fell_back,
            tuple(entry for entry in self.unwritten if entry not in before.unwritten),
        )

    def as_dict(self) -> dict[str, Any]:
        """Numbers only, one level deep: a row for pandas."""
        row: dict[str, Any] = {
            name: getattr(self, name)
            for name in ("processes", "files", "datasets", "background_seconds", "hidden_seconds", "errors")
        }
        for name in ("written", "read"):
            side = getattr(self, name)
            row |= {f"{name}_{key}": getattr(side, key) for key in side.__dataclass_fields__}
        return row

    def __str__(self) -> str:
        if self.files == 0 and self.written.calls == 0 and self.read.calls == 0:
            return "hyperslab: no HDF5 file was opened with the connector"
        lines = [f"hyperslab: {count(self.files, 'file')}, {count(self.datasets, 'dataset')}"]
        for name, side in (("written", self.written), ("read", self.read)):
            if side.calls:
                lines.append(f"  {name:<8} {side.words()}")
        if self.fell_back:
            lines.append("  left to libhdf5")
            for why, (calls, size_) in sorted(self.fell_back.items(), key=lambda entry: -entry[1][1])[:6]:
                lines.append(f"    {count(calls, 'call')}, {size(size_)}: {why}")
        if self.background_seconds > 0.01:
            lines.append(
                f"  in the background {self.background_seconds:.2f} s of I/O, of which the program did not wait for"
                f" {self.hidden_seconds:.2f} s"
            )
        for entry in self.unwritten:
            lines.append(f"  DATA NOT WRITTEN: {entry.get('file')}, {entry.get('dataset')}, {entry.get('why')}")
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        import html

        return f"<pre>{html.escape(str(self))}</pre>"


def stats() -> Stats:
    """Sums over what files did since ``enable``, as far as the connector has written it down: at each close and flush of a
    file, and about ten times a second while transfers go on."""
    from . import _connector

    folder = _connector._statistics
    if folder is None:
        return Stats()
    records: dict[tuple[int, int, int], dict[str, Any]] = {}
    for path in sorted(Path(folder).glob("*.json")):
        for record in _records(path):
            # Of two records of one libhdf5 the later one counts.
            records[record.get("pid", 0), record.get("started", 0), record.get("slot", 0)] = record
    return _sum(records.values())


def _records(path: Path) -> Iterable[dict[str, Any]]:
    try:
        lines = path.read_text(errors="replace").splitlines()
    except OSError:
        return
    for line in lines:
        try:
            record = json.loads(line)
        except ValueError:
            # It is being written at this moment.
            continue
        if isinstance(record, dict) and record.get("hyperslab_connector_stats") == _VERSION:
            yield record


def _sum(records: Iterable[dict[str, Any]]) -> Stats:
    records = list(records)
    fell_back: dict[str, tuple[int, int]] = {}
    for entry in (entry for record in records for entry in record["fell_back"]):
        calls, size_ = fell_back.get(entry["why"], (0, 0))
        fell_back[entry["why"]] = (calls + entry["calls"], size_ + entry["bytes"])

    def total(key: str) -> Any:
        return sum(record[key] for record in records)

    def side(key: str) -> Side:
        return Side(*(sum(record[key][name] for record in records) for name in Side.__dataclass_fields__))

    return Stats(
        len({record["pid"] for record in records}),
        total("files"),
        total("datasets"),
        side("write"),
        side("read"),
        total("background_seconds"),
        total("hidden_seconds"),
        total("errors"),
        fell_back,
        tuple(entry for record in records for entry in record["unwritten"]),
    )


def size(bytes_: int) -> str:
    """Bytes as people write them: 1.50 MiB."""
    value, unit = float(bytes_), "B"
    for larger in ("KiB", "MiB", "GiB", "TiB"):
        if value < 1024:
            break
        value, unit = value / 1024, larger
    return f"{bytes_} B" if unit == "B" else f"{value:.2f} {unit}"


def count(number: int, word: str) -> str:
    return f"{number} {word}" if number == 1 else f"{number} {word}s"
