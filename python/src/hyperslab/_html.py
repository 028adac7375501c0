"""Files and arrays as notebooks show them. Every word that comes from a file is escaped."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ._reader import Array, Group

# Rows of a table; more are counted.
_MOST = 50


def of_group(group: "Group") -> str:
    """A table of the group's arrays, those of groups in it too."""
    start = f"{group.name}/" if group.name else ""
    names = [name for name in group._file_._all if name in group._file_._arrays and name.startswith(start)]
    rows = "".join(_row(group._file_, name, name[len(start) :]) for name in names[:_MOST])
    more = f"<p>and {len(names) - _MOST} more</p>" if len(names) > _MOST else ""
    where = escape(str(group._file_.path)) + (f": {escape(group.name)}" if group.name else "")
    head = "".join(f"<th style='text-align:left'>{word}</th>" for word in ("array", "type", "shape", "chunks", "size"))
    return f"<b>{where}</b><table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>{more}{_attributes(group)}"


def of_array(array: "Array") -> str:
    """What there is to know of an array."""
    filters = ", ".join(_filter(one) for one in array.filters) or "none"
    facts = {
        "type": array.dtype,
        "shape": " × ".join(map(str, array.shape)) or "one value",
        "dimensions": ", ".join(array.dims) if array.dims else None,
        "chunks": " × ".join(map(str, array.chunks)) if array.chunks else "none",
        "filters": filters,
        "size": _size(array.nbytes),
    }
    rows = "".join(
        f"<tr><th style='text-align:left'>{name}</th><td style='text-align:left'>{escape(str(value))}</td></tr>"
        for name, value in facts.items()
        if value is not None
    )
    return f"<b>{escape(array.name)}</b><table><tbody>{rows}</tbody></table>{_attributes(array)}"


def _row(file: Any, name: str, shown: str) -> str:
    try:
        array = file[name]
        cells = [shown, array.dtype, " × ".join(map(str, array.shape)) or "one value"]
        cells += [" × ".join(map(str, array.chunks)) if array.chunks else "", _size(array.nbytes)]
    except Exception as error:  # an array of a kind that is not read must not hide the others
        cells = [shown, f"cannot be read: {error}", "", "", ""]
    return "<tr>" + "".join(f"<td style='text-align:left'>{escape(str(cell))}</td>" for cell in cells) + "</tr>"


def _attributes(of: Any) -> str:
    lines = [f"<li>{escape(name)}: {escape(_shortened(value))}</li>" for name, value in list(of.attrs.items())[:_MOST]]
    return f"<details><summary>{len(of.attrs)} attributes</summary><ul>{''.join(lines)}</ul></details>" if lines else ""


def _shortened(value: Any) -> str:
    text = str(value)
    return text if len(text) <= 200 else text[:199] + "…"


def _filter(said: Any) -> str:
    return said if isinstance(said, str) else ", ".join(map(str, said)) if isinstance(said, dict) else str(said)


def _size(number: float) -> str:
    for unit in ("bytes", "KiB", "MiB", "GiB"):
        if number < 1024:
            return f"{number:.0f} bytes" if unit == "bytes" else f"{number:.2f} {unit}"
        number /= 1024
    return f"{number:.2f} TiB"
