"""Commands of the program as functions."""

from __future__ import annotations

import html
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

    >>> results = hyperslab.bench("vpic", "particles=64", format="posix", verify=True)
    >>> [(case["stack"], case["verified"]) for case in results["cases"]]
    [('posix', 'yes')]
    """
    with tempfile.TemporaryDirectory(prefix="hyperslab-bench-") as folder:
        out = Path(folder, "out")
        arguments = ["bench", *_input(workflow, folder), *options, *_flags(keywords)]
        arguments += ["--directory", str(directory or Path(folder, "data")), "--out", str(out)]
        capture(arguments)
        return json.loads((out / "results.json").read_text())


def predict(work: str | os.PathLike[str] | dict[str, Any], *options: str, **keywords: Any) -> dict[str, Any]:
    """What ``work`` would take, by ``hyperslab predict --json``: nothing is run.

    ``work`` is a workload file (``*.jsonl``), an h5bench workflow as a path or a dictionary, or the name of a kernel.

    >>> hyperslab.predict("vpic", stack="hdf5,zarr")                      # doctest: +SKIP
    """
    return _said("predict", work, options, keywords)


def advise(work: str | os.PathLike[str] | dict[str, Any], *options: str, **keywords: Any) -> dict[str, Any]:
    """On which stack ``work`` would be fastest, by ``hyperslab advise --json``.

    >>> hyperslab.advise("trace.jsonl", verify=3)                         # doctest: +SKIP
    """
    return _said("advise", work, options, keywords)


def tune(*command: str | os.PathLike[str], **keywords: Any) -> dict[str, Any]:
    """What would make a program faster, by ``hyperslab tune --json``: the program is run, several times.

    >>> hyperslab.tune("python", "script.py")                             # doctest: +SKIP
    """
    if not command:
        raise TypeError("tune() needs a command, such as tune('python', 'script.py')")
    return json.loads(capture(["tune", "--json", *_flags(keywords), "--", *(os.fspath(word) for word in command)]))


class Report:
    """A page about results. A notebook shows it; ``save`` writes it."""

    def __init__(self, page: str):
        self.html = page

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the page to a file."""
        Path(path).write_text(self.html, encoding="utf-8")

    def _repr_html_(self) -> str:
        # Its own document, so that styles of page and notebook do not meet.
        page = html.escape(self.html, quote=True)
        return f'<iframe srcdoc="{page}" style="width:100%;height:40em;border:0" title="Hyperslab report"></iframe>'

    def __repr__(self) -> str:
        return f"<hyperslab report, {len(self.html)} characters of HTML: save(path) writes it>"


def report(*results: str | os.PathLike[str] | dict[str, Any]) -> Report:
    """The page of ``hyperslab report`` about results: files, folders, or dictionaries as ``bench`` gives them back.

    >>> hyperslab.report(hyperslab.bench("vpic", "particles=64", format="posix"))
    <hyperslab report, ... characters of HTML: save(path) writes it>
    """
    if not results:
        raise TypeError("report() needs results of bench()")
    with tempfile.TemporaryDirectory(prefix="hyperslab-report-") as folder:
        page = Path(folder, "report.html")
        inputs = []
        for number, one in enumerate(results):
            if isinstance(one, dict):
                Path(folder, str(number)).mkdir()
                inputs.append(str(Path(folder, str(number), "results.json")))
                Path(inputs[-1]).write_text(json.dumps(one))
            else:
                inputs.append(os.fspath(one))
        capture(["report", *inputs, "--output", str(page)])
        return Report(page.read_text(encoding="utf-8"))


def _said(command: str, work: Any, options: tuple[str, ...], keywords: dict[str, Any]) -> dict[str, Any]:
    with tempfile.TemporaryDirectory(prefix=f"hyperslab-{command}-") as folder:
        keywords.setdefault("dir", str(Path(folder, "data")))
        return json.loads(capture([command, "--json", *_input(work, folder), *options, *_flags(keywords)]))


def _input(work: str | os.PathLike[str] | dict[str, Any] | None, folder: str) -> list[str]:
    """What a command works on, as its argument: a workflow as a dictionary becomes a file in ``folder``."""
    if work is None:
        return []
    if not isinstance(work, dict):
        return [os.fspath(work)]
    path = Path(folder, "workflow.json")
    path.write_text(json.dumps(work))
    return [str(path)]


def _flags(keywords: dict[str, Any]) -> list[str]:
    """Options of a command: ``warm=True`` becomes ``--warm``, ``repeat=3`` becomes ``--repeat 3``."""
    flags = []
    for name, value in keywords.items():
        flag = "--" + name.replace("_", "-")
        if value is True:
            flags.append(flag)
        elif value is not None and value is not False:
            flags += [flag, str(value)]
    return flags


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
    """What works on this machine, and whether programs (by default this Python) load the connector.

    >>> "connector" in hyperslab.doctor()
    True
    """
    import sys

    chosen = [os.fspath(path) for path in programs] or [sys.executable]
    return capture(["doctor", *chosen], may_fail=True)
