"""Commands of the program as functions."""

from __future__ import annotations

import json
import os
import tempfile
from pathlib import Path
from typing import Any

from ._program import capture


def bench(
    workflow: str | os.PathLike[str] | dict[str, Any] | None = None,
    *options: str,
    directory: str | os.PathLike[str] | None = None,
    **keywords: Any,
) -> dict[str, Any]:
    """Runs ``hyperslab bench`` and gives back its results.json (docs/results-format.md) as a dictionary.

    ``workflow`` is the path of an h5bench JSON file, such a file as a dictionary, or the name of an application kernel;
    without it the small built-in workflow runs. ``options`` go to the command as they are (``"blocks=20"``), and
    ``keywords`` become its options: ``format="hdf5,zarr"``, ``repeat=3``, ``verify=True``. Data lie in a temporary
    directory unless ``directory`` says otherwise.

    >>> results = hyperslab.bench("vpic", format="posix", verify=True)    # doctest: +SKIP
    >>> pandas.json_normalize(results["cases"])                           # doctest: +SKIP
    """
    with tempfile.TemporaryDirectory(prefix="hyperslab-bench-") as folder:
        out = Path(folder, "out")
        arguments = ["bench"]
        if isinstance(workflow, dict):
            path = Path(folder, "workflow.json")
            path.write_text(json.dumps(workflow))
            arguments.append(str(path))
        elif workflow is not None:
            arguments.append(os.fspath(workflow))
        arguments += options
        for name, value in keywords.items():
            flag = "--" + name.replace("_", "-")
            if value is True:
                arguments.append(flag)
            elif value is not None and value is not False:
                arguments += [flag, str(value)]
        arguments += ["--directory", str(directory or Path(folder, "data")), "--out", str(out)]
        capture(arguments)
        return json.loads((out / "results.json").read_text())


def recover(*paths: str | os.PathLike[str], list_only: bool = False, check: bool = False) -> str:
    """Brings files back that a killed program was writing in mode ``log`` or ``safe``, and says what was done.

    Raises ``ProgramFailed`` if something cannot be recovered. ``list_only`` changes nothing, ``check`` reads every chunk
    afterwards.
    """
    if not paths:
        raise TypeError("recover() needs a file or a directory")
    flags = ["--list"] * list_only + ["--check"] * check
    return capture(["recover", *flags, *(os.fspath(path) for path in paths)])


def doctor(*programs: str | os.PathLike[str]) -> str:
    """What works on this machine, and whether programs (by default this Python) load the connector."""
    import sys

    chosen = [os.fspath(path) for path in programs] or [sys.executable]
    return capture(["doctor", *chosen], may_fail=True)
