"""The package under real h5py and netCDF4, each case in a process of its own: what libraries load cannot be unloaded."""

import os
import subprocess
import sys
import textwrap

import pytest

pytest.importorskip("h5py")


def run(code, **variables):
    environment = {name: value for name, value in os.environ.items() if name != "HDF5_VOL_CONNECTOR"} | variables
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)], env=environment, capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


WORK = """
import numpy as np
def work(path):
    import h5py
    data = np.arange(1 << 18, dtype="f4")
    with h5py.File(path, "w") as file:
        file.create_dataset("x", data=data, chunks=(1 << 14,), compression="gzip")
    with h5py.File(path) as file:
        assert (file["x"][...] == data).all()
"""


@pytest.mark.parametrize("order", ["before", "after"])
@pytest.mark.parametrize("mode", ["codec", "codec+async", "log", "cache", "safe"])
def test_enabled_before_and_after_h5py(tmp_path, order, mode):
    out = run(
        WORK
        + f"""
import hyperslab
{"import h5py" if order == "after" else ""}
connector = hyperslab.enable("{mode}")
assert hyperslab.enabled().mode == "{mode}", hyperslab.enabled()
work({str(tmp_path / "a.h5")!r})
s = hyperslab.stats()
assert (s.written.calls, s.read.calls, s.files) == (1, 1, 2), s
assert s.written.accelerated_calls == 1 or "{mode}" == "safe", s
print(s)
"""
    )
    assert "2 files" in out


@pytest.mark.parametrize("order", ["before", "after"])
def test_disabled_files_are_left_alone(tmp_path, order):
    run(
        WORK
        + f"""
import hyperslab
{"import h5py" if order == "after" else ""}
with hyperslab.enable("codec"):
    work({str(tmp_path / "a.h5")!r})
assert hyperslab.enabled() is None
first = hyperslab.stats()
assert first.files == 2
work({str(tmp_path / "b.h5")!r})
assert hyperslab.stats() == first
hyperslab.enable("codec", memory="64MiB", threads=1)
work({str(tmp_path / "c.h5")!r})
assert hyperslab.stats().files == 4
hyperslab.disable()
work({str(tmp_path / "d.h5")!r})
assert hyperslab.stats().files == 4
"""
    )


def test_modes_nest(tmp_path):
    run(
        WORK
        + f"""
import h5py, hyperslab, os
with hyperslab.enable("codec"):
    with hyperslab.enable("codec+async", memory="64MiB"):
        assert hyperslab.enabled().mode == "codec+async"
        work({str(tmp_path / "a.h5")!r})
    assert hyperslab.enabled().mode == "codec"
    assert "HYPERSLAB_MEMORY" not in os.environ
    work({str(tmp_path / "b.h5")!r})
assert hyperslab.stats().files == 4
"""
    )


@pytest.mark.parametrize("order", ["before", "after"])
def test_wrong_settings_change_nothing(tmp_path, order):
    out = run(
        WORK
        + f"""
import hyperslab, os
{"import h5py" if order == "after" else ""}
for settings in ({{"mode": "fast"}}, {{"memory": "much"}}, {{"mode": "async+log"}}, {{"threads": 0}}):
    try:
        hyperslab.enable(**settings)
    except ValueError as error:
        print(error)
    else:
        raise SystemExit(f"{{settings}} was taken")
try:
    hyperslab.enable(speed=3)
except TypeError as error:
    assert "memory" in str(error)
assert hyperslab.enabled() is None and "HDF5_VOL_CONNECTOR" not in os.environ
work({str(tmp_path / "a.h5")!r})
assert hyperslab.stats().files == 0
"""
    )
    assert "fast" in out


def test_netcdf4_that_came_first_is_told(tmp_path):
    pytest.importorskip("netCDF4")
    run(
        """
        import netCDF4, hyperslab, os
        try:
            hyperslab.enable()
        except hyperslab.TooLate as error:
            assert "netCDF4" in str(error) and "partly" in str(error)
        else:
            raise SystemExit("enable() said nothing")
        assert "HDF5_VOL_CONNECTOR" not in os.environ
        """
    )


def test_netcdf4_that_comes_later_is_served(tmp_path):
    pytest.importorskip("netCDF4")
    run(
        f"""
        import hyperslab
        hyperslab.enable()
        import netCDF4, numpy as np
        with netCDF4.Dataset({str(tmp_path / "a.nc")!r}, "w") as file:
            file.createDimension("x", 1 << 16)
            file.createVariable("v", "f4", ("x",), zlib=True)[:] = np.arange(1 << 16)
        assert hyperslab.stats().written.accelerated_calls == 1, hyperslab.stats()
        """
    )


def test_children_are_served_and_counted(tmp_path):
    run(
        f"""
        import h5py, hyperslab, multiprocessing, os
        import numpy as np
        path = {str(tmp_path)!r}
        def child(n):
            with h5py.File(f"{{path}}/{{n}}.h5", "w") as file:
                file["x"] = np.arange(1000)
        if __name__ == "__main__":
            hyperslab.enable()
            fork = multiprocessing.get_context("fork")
            children = [fork.Process(target=child, args=(n,)) for n in range(3)]
            [c.start() for c in children]; [c.join() for c in children]
            s = hyperslab.stats()
            assert s.files == 3, s
            import subprocess, sys
            subprocess.run([sys.executable, "-c", f"import h5py; h5py.File('{{path}}/s.h5', 'w').close()"], check=True)
            assert hyperslab.stats().files == 4
        """
    )


def test_open_files_are_flushed(tmp_path):
    run(
        f"""
        import h5py, hyperslab
        import numpy as np
        hyperslab.enable("codec+async")
        file = h5py.File({str(tmp_path / "a.h5")!r}, "w")
        file.create_dataset("x", data=np.arange(1 << 20))
        reader = h5py.File({str(tmp_path / "b.h5")!r}, "w"); reader.close()
        assert hyperslab.flush() == 1
        assert hyperslab.stats().written.calls == 1
        """
    )


def test_the_notebook_magic_says_what_a_cell_gained(tmp_path):
    pytest.importorskip("IPython")
    out = run(
        f"""
        from IPython.core.interactiveshell import InteractiveShell
        shell = InteractiveShell.instance()
        shell.run_line_magic("load_ext", "hyperslab")
        shell.run_cell("import h5py, numpy as np")
        cell = "with h5py.File('{tmp_path / "a.h5"}', 'w') as file:\\n    file.create_dataset('x', data=np.arange(1 << 20), compression='gzip')"
        shell.run_cell_magic("hyperslab", "codec threads=2", cell)
        import hyperslab
        assert hyperslab.enabled() is None
        """
    )
    assert "written  8.00 MiB in 1 call" in out and "the cell took" in out


def test_bench_gives_back_results(tmp_path):
    out = run(
        """
        import hyperslab
        results = hyperslab.bench("vpic", format="posix", verify=True)
        assert results["cases"], results
        try:
            hyperslab.bench("no-such-kernel")
        except hyperslab.ProgramFailed as error:
            assert error.code == 2
        print(hyperslab.version())
        """
    )
    assert "hyperslab" in out


def test_results_become_a_page_for_notebooks(tmp_path):
    out = run(
        f"""
        import hyperslab
        path = {str(tmp_path / "page.html")!r}
        results = hyperslab.bench("vpic", format="posix")
        page = hyperslab.report(results, results)
        assert page.html.lower().startswith("<!doctype html>") and "posix" in page.html
        assert page._repr_html_().startswith("<iframe srcdoc=") and "<script" not in page._repr_html_()
        page.save(path)
        print(len(open(path).read()) == len(page.html))
        """
    )
    assert "True" in out


def test_a_killed_writer_is_recovered(tmp_path):
    path = tmp_path / "a.h5"
    code = f"""
import hyperslab, h5py, os, signal
import numpy as np
hyperslab.enable("log")
file = h5py.File({str(path)!r}, "w")
file.create_dataset("x", data=np.arange(1 << 16))
file["y"] = np.ones(5)
os.kill(os.getpid(), signal.SIGKILL)
"""
    assert subprocess.run([sys.executable, "-c", code]).returncode == -9
    run(
        f"""
        import hyperslab, h5py
        said = hyperslab.recover({str(path)!r})
        with h5py.File({str(path)!r}) as file:
            assert file["x"][-1] == (1 << 16) - 1 and file["y"].shape == (5,), said
        """
    )
