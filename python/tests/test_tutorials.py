"""The pages of docs/tutorials: their blocks run as they stand, in order, in a folder of their own."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import hyperslab

PAGES = Path(__file__).resolve().parents[2] / "docs" / "tutorials"
BLOCK = re.compile(r"^```(sh|python)([^\n]*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
NEEDS = {"xarray": ["xarray", "netCDF4", "zarr"]}


@pytest.fixture
def environment(tmp_path):
    """What an installed package has: the program on the path, and xarray's engine by its entry point."""
    described = tmp_path / "site" / "hyperslab-0.dist-info"
    described.mkdir(parents=True)
    (described / "METADATA").write_text("Metadata-Version: 2.1\nName: hyperslab\nVersion: 0\n")
    (described / "entry_points.txt").write_text(
        "[xarray.backends]\nhyperslab = hyperslab._xarray:HyperslabEntrypoint\n"
    )
    folders = [str(Path(sys.executable).parent), str(hyperslab.program().parent)]
    return os.environ | {
        "PATH": os.pathsep.join([*folders, os.environ.get("PATH", "")]),
        "PYTHONPATH": os.pathsep.join([str(tmp_path / "site"), str(Path(hyperslab.__file__).parents[1])]),
        "HYPERSLAB_CACHE": str(tmp_path / "cache"),
    }


@pytest.mark.parametrize("page", sorted(PAGES.glob("*.md")), ids=lambda page: page.stem)
def test_pages_are_true(page, environment, tmp_path):
    for module in NEEDS.get(page.stem, []) + ["h5py"]:
        pytest.importorskip(module)
    blocks = BLOCK.findall(page.read_text())
    ran = 0
    work = tmp_path / "work"
    work.mkdir()
    for language, words, text in blocks:
        if "skip" in words:
            continue
        named = re.search(r"file=(\S+)", words)
        if named:
            (work / named[1]).write_text(text)
            continue
        command = [sys.executable, "-c", text] if language == "python" else ["bash", "-e", "-c", text]
        done = subprocess.run(command, cwd=work, env=environment, capture_output=True, text=True, timeout=300)
        assert done.returncode == 0, f"{text}\n{done.stdout}\n{done.stderr}"
        ran += 1
    assert ran or page.stem in ("README", "rust"), "nothing was run"


def test_pages_are_listed():
    listed = re.findall(r"\]\(([\w-]+\.md)\)", (PAGES / "README.md").read_text())
    assert sorted([*listed, "README.md"]) == sorted(page.name for page in PAGES.glob("*.md"))
