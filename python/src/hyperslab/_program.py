"""The ``hyperslab`` program and the HDF5 connector: where they are, and how they are run."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Sequence

_DATA = Path(__file__).resolve().parent / "_data"
_PLUGIN = "libhyperslab_vol.so"


class ProgramMissing(RuntimeError):
    """The program or the connector is not installed."""


class ProgramFailed(RuntimeError):
    """A command of the program ended with an error; ``code`` is its exit code, the message what it printed."""

    def __init__(self, arguments: Sequence[str], code: int, output: str):
        super().__init__(f"hyperslab {' '.join(arguments)} ended with {code}\n{output.strip()}")
        self.code = code
        self.output = output


def program() -> Path:
    """Path of the program: that of ``HYPERSLAB_PROGRAM``, the one that came with this package, or the one on the PATH."""
    named = os.environ.get("HYPERSLAB_PROGRAM")
    if named:
        if not os.access(named, os.X_OK):
            raise ProgramMissing(f"HYPERSLAB_PROGRAM names {named}, which cannot be run")
        return Path(named)
    packaged = _DATA / "bin" / "hyperslab"
    if packaged.exists():
        return packaged
    # The console script of this package leads back here, so it does not count.
    ours = Path(sys.prefix, "bin", "hyperslab").resolve()
    for folder in os.environ.get("PATH", "").split(os.pathsep):
        found = shutil.which("hyperslab", path=folder)
        if found and Path(found).resolve() != ours:
            return Path(found)
    raise ProgramMissing(
        "the program hyperslab is neither in this package nor on the PATH\n"
        "  try: pip install hyperslab (a wheel brings it), cargo xtask install in a checkout, or set HYPERSLAB_PROGRAM"
    )


def plugin_folder() -> Path:
    """The folder of the HDF5 connector, which holds nothing else."""
    at = program().resolve().parent
    for folder in (at.parent / "lib" / "hyperslab", at / "plugin"):
        if (folder / _PLUGIN).exists():
            if ":" in str(folder):
                raise ProgramMissing(f"{folder} has a colon in its name, which HDF5_PLUGIN_PATH cannot hold")
            return folder
    raise ProgramMissing(
        f"the HDF5 connector {_PLUGIN} is neither in {at.parent / 'lib' / 'hyperslab'} nor in {at / 'plugin'}\n"
        "  try: cargo xtask build in a checkout, or install the package again"
    )


def version() -> str:
    """What the program says of its version."""
    return capture(["--version"])


def capture(arguments: Sequence[str], input: str | None = None, may_fail: bool = False) -> str:
    """Runs a command of the program without the connector in it, and gives back its standard output."""
    done = subprocess.run(
        [str(program()), *arguments],
        input=input,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=_plain_environment(),
    )
    if done.returncode != 0 and not may_fail:
        raise ProgramFailed(arguments, done.returncode, done.stderr or done.stdout)
    return done.stdout + (done.stderr if may_fail else "")


def _plain_environment() -> dict[str, str]:
    """This environment without what ``enable`` puts there: the program sets the connector by itself where it wants it."""
    ours = {"HDF5_VOL_CONNECTOR"}
    return {name: value for name, value in os.environ.items() if name not in ours}


def main() -> None:
    """The console script: becomes the program."""
    try:
        path = program()
    except ProgramMissing as error:
        sys.exit(f"hyperslab: {error}")
    os.execv(path, ["hyperslab", *sys.argv[1:]])
