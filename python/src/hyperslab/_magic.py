"""``%hyperslab`` and ``%%hyperslab`` for notebooks."""

from __future__ import annotations

import time
from typing import Any

from . import _connector, _stats


def register(shell: Any) -> None:
    shell.register_magic_function(lambda line: _line(line), "line", "hyperslab")
    shell.register_magic_function(lambda line, cell: _cell(shell, line, cell), "cell", "hyperslab")


def _line(line: str) -> None:
    """``%hyperslab [MODE|off]``: enables a mode from here on, or says what was done so far."""
    words = line.split()
    if words == ["off"]:
        _connector.disable()
        print("hyperslab: off for files opened from now on")
    elif words:
        connector = _connector.enable(*_arguments(words)[0], **_arguments(words)[1])
        print(f"hyperslab: mode {connector.mode} for files opened from now on")
    else:
        print(_stats.stats())


def _cell(shell: Any, line: str, cell: str) -> None:
    """``%%hyperslab [MODE] [KEY=VALUE...]``: runs the cell with the connector, then says what that did."""
    arguments, settings = _arguments(line.split())
    connector = _connector.enable(*arguments, **settings)
    before, begin = _stats.stats(), time.perf_counter()
    try:
        result = shell.run_cell(cell)
    finally:
        # Files that stay open are counted up to now.
        _connector.flush()
        connector.__exit__()
    print(f"{_stats.stats() - before}\n  the cell took {time.perf_counter() - begin:.2f} s")
    result.raise_error()


def _arguments(words: list[str]) -> tuple[list[str], dict[str, str]]:
    settings = dict(word.split("=", 1) for word in words if "=" in word)
    modes = [word for word in words if "=" not in word]
    if len(modes) > 1:
        raise ValueError(f"one mode at most, such as codec+async; there are {' '.join(modes)}")
    return modes, settings
