"""Notebooks, run headless by nbclient: magics, pages, and a kernel that is shut down in the middle."""

from pathlib import Path

import numpy as np
import pytest

nbformat = pytest.importorskip("nbformat")
nbclient = pytest.importorskip("nbclient")
h5py = pytest.importorskip("h5py")
pytest.importorskip("ipykernel")

import hyperslab
from jupyter_client.manager import start_new_kernel


@pytest.fixture
def kernel(tmp_path, monkeypatch):
    """A folder where kernels find the package as these tests do."""
    monkeypatch.setenv("PYTHONPATH", str(Path(hyperslab.__file__).parents[1]))
    monkeypatch.setenv("HYPERSLAB_PROGRAM", str(hyperslab.program()))
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path / "ipython"))
    monkeypatch.setenv("JUPYTER_RUNTIME_DIR", str(tmp_path / "runtime"))
    return tmp_path


def client(folder, *cells):
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in cells])
    return nbclient.NotebookClient(notebook, timeout=120, kernel_name="python3", resources={"metadata": {"path": str(folder)}})


def text_of(cell):
    return "".join(output.get("text", "") + str(output.get("data", "")) for output in cell["outputs"])


def test_a_notebook_runs_headless(kernel):
    made = client(
        kernel,
        "%load_ext hyperslab\nimport h5py, numpy as np, hyperslab",
        "%%hyperslab codec threads=2\nwith h5py.File('a.h5', 'w') as file:\n"
        "    file.create_dataset('x', data=np.arange(1 << 20), chunks=(1 << 16,), compression='gzip')",
        "file = hyperslab.open('a.h5')\nfile",
        "file['x']",
        "hyperslab.report(hyperslab.bench('vpic', 'particles=64', format='posix'))",
        "%hyperslab codec+async\nhyperslab.enabled().mode",
        "%hyperslab off\nprint(hyperslab.enabled())",
    )
    cells = made.execute()["cells"]
    said = [text_of(cell) for cell in cells]
    assert "written  8.00 MiB in 1 call" in said[1] and "the cell took" in said[1]
    assert "<table>" in said[2] and "int64" in said[2] and "text/html" in said[3]
    assert "<iframe srcdoc=" in said[4]
    assert "codec+async" in said[5] and "None" in said[6]


# What plain h5py keeps: all of a kernel that ends by itself, what was flushed of one that is killed.
@pytest.mark.parametrize("killed", [False, True], ids=["asked to end", "killed"])
@pytest.mark.parametrize("mode", [None, "codec", "codec+async", "log", "cache", "safe"])
def test_a_kernel_that_ends_in_the_middle_loses_nothing_that_plain_keeps(kernel, mode, killed):
    enable = f"hyperslab.enable({mode!r})" if mode else ""
    manager, asked = start_new_kernel(cwd=str(kernel), startup_timeout=120)
    try:
        answer = asked.execute_interactive(
            f"import h5py, numpy as np, hyperslab\n{enable}\n"
            "file = h5py.File('a.h5', 'w')\n"
            "x = file.create_dataset('x', data=np.arange(100_000), chunks=(1000,), compression='gzip')\n"
            "file.flush()\n"
            "y = file.create_dataset('y', data=np.arange(50_000.0))",
            timeout=120,
        )
        assert answer["content"]["status"] == "ok", answer["content"]
    finally:
        asked.stop_channels()
        manager.shutdown_kernel(now=killed)
    if killed and mode in ("log", "safe"):
        hyperslab.recover(kernel / "a.h5")
    with h5py.File(kernel / "a.h5", locking=False) as file:
        assert np.array_equal(file["x"][...], np.arange(100_000))
        if not killed or mode == "log":
            assert np.array_equal(file["y"][...], np.arange(50_000.0))
