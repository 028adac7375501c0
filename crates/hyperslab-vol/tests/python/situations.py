"""Programs in situations that have gone wrong with one connector or another.

    python situations.py list
    python situations.py run FOLDER NAME...     each in a folder of its own
    python situations.py check FOLDER NAME...   what must be in the files then; a plain process does that

A situation is a function; `check_NAME` looks at its files. Those marked `alone` end the process in their own way.
"""

import ctypes
import gc
import io
import json
import multiprocessing
import os
import signal
import subprocess
import sys
import threading
import time

import h5py
import numpy as np

SITUATIONS, ALONE = {}, set()
N = 20_000


def situation(function):
    SITUATIONS[function.__name__] = function
    return function


def alone(function):
    ALONE.add(function.__name__)
    return situation(function)


def ramp(start=0, count=N):
    return np.arange(start, start + count, dtype="<i4")


def both(file):
    """A contiguous and a compressed dataset, written."""
    plain = file.create_dataset("plain", (N,), "<i4")
    packed = file.create_dataset("packed", (N,), "<i4", chunks=(1500,), compression="gzip", shuffle=True)
    plain[...] = ramp()
    packed[...] = ramp()
    return plain, packed


def check_both(path, expected):
    with h5py.File(path, "r") as file:
        for name in ("plain", "packed"):
            assert np.array_equal(file[name][...], expected), f"{name} in {path} is wrong"


def other_process(folder, code, **environment):
    """Runs Python without the connector. Locks are off: what is looked at is open elsewhere."""
    clean = {key: value for key, value in os.environ.items() if not key.startswith(("HDF5_", "HYPERSLAB_"))}
    done = subprocess.run(
        [sys.executable, "-c", "import h5py, numpy as np\n" + code], cwd=folder, capture_output=True, text=True, timeout=60,
        env=clean | {"HDF5_USE_FILE_LOCKING": "FALSE"} | environment,
    )
    assert done.returncode == 0, done.stderr


# Ends


@alone
def exit_with_open_files(folder):
    global kept
    kept = h5py.File(f"{folder}/a.h5", "w")
    plain, packed = both(kept)
    plain[5:9] = packed[5:9] = -1


def check_exit_with_open_files(folder):
    expected = ramp()
    expected[5:9] = -1
    check_both(f"{folder}/a.h5", expected)


@alone
def exit_in_the_middle_of_an_exception(folder):
    file = h5py.File(f"{folder}/a.h5", "w")
    both(file)
    sys.exit(0)


def check_exit_in_the_middle_of_an_exception(folder):
    check_both(f"{folder}/a.h5", ramp())


@alone
def datasets_that_live_in_cycles(folder):
    """Objects that only the collector finds, some of them at the end of the interpreter."""
    file = h5py.File(f"{folder}/a.h5", "w")
    plain, packed = both(file)
    cycle = [plain, packed, file]
    cycle.append(cycle)


def check_datasets_that_live_in_cycles(folder):
    check_both(f"{folder}/a.h5", ramp())


@situation
def exception_between_writes(folder):
    try:
        with h5py.File(f"{folder}/a.h5", "w") as file:
            plain, packed = both(file)
            plain[:10] = packed[:10] = 7
            raise KeyError("on purpose")
    except KeyError:
        pass
    expected = ramp()
    expected[:10] = 7
    check_both(f"{folder}/a.h5", expected)


def check_exception_between_writes(folder):
    expected = ramp()
    expected[:10] = 7
    check_both(f"{folder}/a.h5", expected)


@situation
def failing_calls_between_writes(folder):
    """The error stack of a call that failed is the host's, and errno is in it."""
    with h5py.File(f"{folder}/a.h5", "w") as file:
        plain, packed = both(file)
        for at in range(20):
            plain[at * 10 : at * 10 + 10] = packed[at * 10 : at * 10 + 10] = -at
            for wrong in (lambda: file["nothing"], lambda: file.create_dataset("plain", data=1), lambda: plain[10**9]):
                try:
                    wrong()
                    raise AssertionError("no error")
                except (KeyError, ValueError, IndexError):
                    pass
            try:
                h5py.File(f"{folder}/missing.h5", "r")
                raise AssertionError("no error")
            except FileNotFoundError as error:
                assert error.errno == 2, error


def check_failing_calls_between_writes(folder):
    expected = ramp()
    expected[:200] = -np.repeat(np.arange(20), 10)
    check_both(f"{folder}/a.h5", expected)


# Several handles and names


@situation
def two_handles(folder):
    with h5py.File(f"{folder}/a.h5", "w") as first:
        plain, packed = both(first)
        with h5py.File(f"{folder}/a.h5", "r+") as second:
            for at in range(0, N, 997):
                for name, dataset in (("plain", plain), ("packed", packed)):
                    dataset[at] = -at
                    assert second[name][at] == -at
                    second[name][at] = at + 1
                    assert dataset[at] == at + 1


def check_two_handles(folder):
    expected = ramp()
    expected[::997] += 1
    check_both(f"{folder}/a.h5", expected)


@situation
def descriptors_read_as_eight_bytes(folder):
    """PyTables, and so pandas' `flush(fsync=True)`, reads more than the `int` that libhdf5 promises."""
    with h5py.File(f"{folder}/descriptor.h5", "w") as file:
        file.attrs["a"] = 1
        with open("/proc/self/maps") as maps:
            library = next(line.split()[-1] for line in maps if "/libhdf5" in line and "_hl" not in line)
        handle = ctypes.POINTER(ctypes.c_uint64)()
        ask = ctypes.CDLL(library).H5Fget_vfd_handle
        ask.argtypes = [ctypes.c_int64, ctypes.c_int64, ctypes.c_void_p]
        assert ask(file.id.id, 0, ctypes.byref(handle)) >= 0
        assert handle[0] == file.id.get_vfd_handle(), hex(handle[0])
        os.fsync(handle[0])


def check_descriptors_read_as_eight_bytes(folder):
    with h5py.File(f"{folder}/descriptor.h5") as file:
        assert file.attrs["a"] == 1


@situation
def names_of_one_file(folder):
    with h5py.File(f"{folder}/a.h5", "w") as first:
        plain, packed = both(first)
        os.symlink(f"{folder}/a.h5", f"{folder}/symbolic.h5")
        os.link(f"{folder}/a.h5", f"{folder}/hard.h5")
        for name in ("symbolic", "hard"):
            with h5py.File(f"{folder}/{name}.h5", "r+") as second:
                plain[3:5] = 8
                packed[3:5] = 8
                assert (second["plain"][3:5] == 8).all() and (second["packed"][3:5] == 8).all()
                second["plain"][5:7] = second["packed"][5:7] = 9
                assert (plain[5:7] == 9).all() and (packed[5:7] == 9).all()


def check_names_of_one_file(folder):
    expected = ramp()
    expected[3:5], expected[5:7] = 8, 9
    check_both(f"{folder}/hard.h5", expected)


@situation
def files_replaced_while_open(folder):
    """A path names another file before the first is closed."""
    first = h5py.File(f"{folder}/a.h5", "w")
    plain, packed = both(first)
    plain[:4] = packed[:4] = 1
    os.rename(f"{folder}/a.h5", f"{folder}/moved.h5")
    second = h5py.File(f"{folder}/a.h5", "w")
    others = both(second)
    others[0][:4] = others[1][:4] = 2
    plain[4:8] = packed[4:8] = 3
    first.close()
    second.close()
    third = h5py.File(f"{folder}/gone.h5", "w")
    both(third)
    os.unlink(f"{folder}/gone.h5")
    assert np.array_equal(third["plain"][...], ramp()) and np.array_equal(third["packed"][...], ramp())
    third.close()


def check_files_replaced_while_open(folder):
    expected = ramp()
    expected[:4] = 2
    check_both(f"{folder}/a.h5", expected)
    expected[:4], expected[4:8] = 1, 3
    check_both(f"{folder}/moved.h5", expected)
    assert not os.path.exists(f"{folder}/gone.h5")


@situation
def written_again_and_again(folder):
    for at in range(8):
        with h5py.File(f"{folder}/a.h5", "w") as file:
            plain, packed = both(file)
            plain[...] = packed[...] = ramp(at)
        with h5py.File(f"{folder}/a.h5", "a") as file:
            file["plain"][at] = file["packed"][at] = -5
        other_process(folder, f"f = h5py.File('a.h5')\nassert all(f[n][{at}] == -5 and f[n][-1] == {at + N - 1} for n in f)")


def check_written_again_and_again(folder):
    expected = ramp(7)
    expected[7] = -5
    check_both(f"{folder}/a.h5", expected)


@situation
def datasets_that_outlive_their_file(folder):
    """Without the strong close of h5py's own files."""
    low = h5py.h5f.create(f"{folder}/a.h5".encode(), h5py.h5f.ACC_TRUNC)
    file = h5py.File(low)
    plain, packed = both(file)
    low_plain, low_packed = plain.id, packed.id
    h5py.h5i.dec_ref(low)
    del file, low
    space, memory = low_plain.get_space(), h5py.h5s.create_simple((10,))
    space.select_hyperslab((30,), (10,))
    for dataset in (low_plain, low_packed):
        dataset.write(memory, space, np.full(10, 77, "<i4"))
        found = np.zeros(10, "<i4")
        dataset.read(memory, space, found)
        assert (found == 77).all()
    del plain, packed, low_plain, low_packed, dataset
    gc.collect()


def check_datasets_that_outlive_their_file(folder):
    expected = ramp()
    expected[30:40] = 77
    check_both(f"{folder}/a.h5", expected)


# Data seen by other ways


@situation
def seen_after_flush_and_close(folder):
    with h5py.File(f"{folder}/a.h5", "w") as file:
        plain, packed = both(file)
        for at in range(3):
            plain[at] = packed[at] = -9
            file.flush()
            other_process(folder, f"f = h5py.File('a.h5')\nassert all((f[n][:{at + 1}] == -9).all() for n in f), [f[n][:5] for n in f]")
        plain[10] = packed[10] = -9
    other_process(folder, "f = h5py.File('a.h5')\nassert all(f[n][10] == -9 for n in f)")


@situation
def virtual_and_external_views_of_pending_writes(folder):
    with h5py.File(f"{folder}/sources.h5", "w") as sources, h5py.File(f"{folder}/views.h5", "w") as views:
        plain, packed = both(sources)
        layout = h5py.VirtualLayout((2, N), "<i4")
        layout[0] = h5py.VirtualSource(f"{folder}/sources.h5", "plain", (N,))
        layout[1] = h5py.VirtualSource(f"{folder}/sources.h5", "packed", (N,))
        virtual = views.create_virtual_dataset("virtual", layout)
        views["link"] = h5py.ExternalLink(f"{folder}/sources.h5", "/packed")
        for at in range(0, N, 501):
            plain[at : at + 3] = packed[at : at + 3] = -at - 1
            assert (virtual[:, at : at + 3] == -at - 1).all()
            assert (views["link"][at : at + 3] == -at - 1).all()
            views["link"][at] = at
            virtual[0, at] = at
            assert plain[at] == at and packed[at] == at


def check_virtual_and_external_views_of_pending_writes(folder):
    expected = ramp()
    for at in range(0, N, 501):
        expected[at : at + 3] = [at, -at - 1, -at - 1][: len(expected[at : at + 3])]
    check_both(f"{folder}/sources.h5", expected)
    with h5py.File(f"{folder}/views.h5") as views:
        assert np.array_equal(views["virtual"][...], [expected, expected])


@situation
def references_to_pending_writes(folder):
    with h5py.File(f"{folder}/a.h5", "w") as file:
        plain, packed = both(file)
        file["objects"] = np.array([plain.ref, packed.ref], h5py.ref_dtype)
        region = file.create_dataset("regions", (2,), h5py.regionref_dtype)
        region[0], region[1] = plain.regionref[10:20], packed.regionref[10:20]
        for at in range(5):
            plain[10:20] = packed[10:20] = at
            for reference in file["objects"]:
                assert (file[reference][10:20] == at).all()
            for reference in region:
                assert (file[reference][reference] == at).all()


def check_references_to_pending_writes(folder):
    expected = ramp()
    expected[10:20] = 4
    check_both(f"{folder}/a.h5", expected)


@situation
def space_that_is_used_again(folder):
    """What is deleted makes room for what comes next; writes that wait must not land there."""
    with h5py.File(f"{folder}/a.h5", "w", libver="latest") as file:
        for at in range(30):
            plain, packed = both(file)
            plain[...] = packed[...] = -at
            del file["plain"], file["packed"]
            if at % 3 == 0:
                del plain, packed
            file.create_dataset(f"kept{at}", data=ramp(at, 5000))
        kept, _ = both(file)
        del file["plain"], file["packed"]
        # An object without a name lives as long as its handles.
        kept[...] = 5
        assert (kept[...] == 5).all()
        file["named"] = kept


def check_space_that_is_used_again(folder):
    with h5py.File(f"{folder}/a.h5") as file:
        for at in range(30):
            assert np.array_equal(file[f"kept{at}"][...], ramp(at, 5000)), at
        assert (file["named"][...] == 5).all()


@situation
def swmr(folder):
    """One writes, another process under the same connector reads what was flushed."""
    reader = """
import h5py, sys
file = h5py.File('a.h5', 'r', libver='latest', swmr=True)
dataset = file['growing']
for line in sys.stdin:
    dataset.refresh()
    count = int(line)
    assert dataset.shape[0] >= count and (dataset[:count] == range(count)).all(), (dataset.shape, count)
    print('seen', flush=True)
"""
    with h5py.File(f"{folder}/a.h5", "w", libver="latest") as file:
        growing = file.create_dataset("growing", (0,), "<i8", maxshape=(None,), chunks=(64,))
        file.swmr_mode = True
        child = subprocess.Popen([sys.executable, "-c", reader], cwd=folder, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        for at in range(1, 11):
            growing.resize((at * 50,))
            growing[-50:] = np.arange(at * 50 - 50, at * 50)
            growing.flush()
            child.stdin.write(f"{at * 50}\n")
            child.stdin.flush()
            assert child.stdout.readline() == "seen\n"
        child.stdin.close()
        assert child.wait(30) == 0


def check_swmr(folder):
    with h5py.File(f"{folder}/a.h5") as file:
        assert np.array_equal(file["growing"][...], np.arange(500))


# Processes, threads, signals


@situation
def fork(folder):
    with h5py.File(f"{folder}/a.h5", "w") as file:
        plain, packed = both(file)
        file.flush()
        plain[:5] = packed[:5] = 1
        for at in range(3):
            child = os.fork()
            if child == 0:
                # Reads what it inherited, writes a file of its own, and leaves without the clean-up of the parent.
                code = 1
                try:
                    assert plain[100] == 100 and packed[100] == 100
                    with h5py.File(f"{folder}/child{at}.h5", "w") as own:
                        both(own)
                    check_both(f"{folder}/child{at}.h5", ramp())
                    code = 0
                finally:
                    os._exit(code)
            plain[10 + at] = packed[10 + at] = -1
            assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        plain[5:10] = packed[5:10] = 2


def check_fork(folder):
    expected = ramp()
    expected[:5], expected[5:10], expected[10:13] = 1, 2, -1
    check_both(f"{folder}/a.h5", expected)
    for at in range(3):
        check_both(f"{folder}/child{at}.h5", ramp())


def work(arguments):
    folder, at = arguments
    with h5py.File(f"{folder}/shared.h5", "r") as file:
        part = file["packed"][at * 100 : at * 100 + 100]
    with h5py.File(f"{folder}/worker{at}.h5", "w") as file:
        both(file)
        file["part"] = part
    return int(part.sum())


def pools(folder, method):
    with h5py.File(f"{folder}/shared.h5", "w") as file:
        both(file)
    with h5py.File(f"{folder}/open.h5", "w") as file:
        plain, packed = both(file)
        with multiprocessing.get_context(method).Pool(2) as pool:
            sums = pool.map(work, [(folder, at) for at in range(4)])
        plain[:3] = packed[:3] = 6
    assert sums == [int(ramp()[at * 100 : at * 100 + 100].sum()) for at in range(4)]


def check_pools(folder):
    expected = ramp()
    for at in range(4):
        check_both(f"{folder}/worker{at}.h5", expected)
    expected[:3] = 6
    check_both(f"{folder}/open.h5", expected)


@alone
def pool_by_fork(folder):
    pools(folder, "fork")


@alone
def pool_by_spawn(folder):
    pools(folder, "spawn")


check_pool_by_fork = check_pool_by_spawn = check_pools


@situation
def threads(folder):
    """h5py lets one thread in at a time, but another one each time."""
    wrong = []

    def one(number, file):
        try:
            plain = file.create_dataset(f"plain{number}", (N,), "<i4")
            packed = file.create_dataset(f"packed{number}", (N,), "<i4", chunks=(999,), compression="gzip")
            for at in range(0, N, 1000):
                plain[at : at + 1000] = packed[at : at + 1000] = ramp(at + number, 1000)
                assert (plain[at : at + 1000] == ramp(at + number, 1000)).all()
                assert (packed[at : at + 1000] == ramp(at + number, 1000)).all()
            if number % 2:
                file.flush()
        except BaseException as error:
            wrong.append(error)

    with h5py.File(f"{folder}/a.h5", "w") as first, h5py.File(f"{folder}/b.h5", "w") as second:
        running = [threading.Thread(target=one, args=(number, (first, second)[number % 2])) for number in range(6)]
        for thread in running:
            thread.start()
        for thread in running:
            thread.join()
        if wrong:
            raise wrong[0]


def check_threads(folder):
    for number in range(6):
        with h5py.File(f"{folder}/{'ab'[number % 2]}.h5") as file:
            for name in ("plain", "packed"):
                assert np.array_equal(file[f"{name}{number}"][...], ramp(number)), (name, number)


class Alarm(Exception):
    pass


@alone
def signals_during_writes(folder):
    """A handler that raises, twenty times within calls of h5py and between them."""
    armed = rung = done = 0

    def ring(*_):
        if armed:
            raise Alarm

    signal.signal(signal.SIGALRM, ring)
    file = h5py.File(f"{folder}/a.h5", "w")
    plain = file.create_dataset("plain", (200, N), "<i4")
    packed = file.create_dataset("packed", (200, N), "<i4", chunks=(1, 5000), compression="gzip", compression_opts=1)
    signal.setitimer(signal.ITIMER_REAL, 0.002, 0.002)
    end = time.monotonic() + 20
    while (done < 200 or rung < 20) and time.monotonic() < end:
        try:
            armed = rung < 20
            plain[done % 200] = ramp(done % 200)
            packed[done % 200] = ramp(done % 200)
            done += 1
            armed = False
        except Alarm:
            armed = False
            rung += 1
    signal.setitimer(signal.ITIMER_REAL, 0)
    for dataset in (plain, packed):
        for row in range(200):
            assert np.array_equal(dataset[row], ramp(row))
    file.close()
    assert rung == 20 and done >= 200, (rung, done)


def check_signals_during_writes(folder):
    with h5py.File(f"{folder}/a.h5") as file:
        for name in ("plain", "packed"):
            for row in range(200):
                assert np.array_equal(file[name][row], ramp(row)), (name, row)


# Unusual files


@situation
def files_that_are_no_files(folder):
    memory = io.BytesIO()
    with h5py.File(memory, "w") as file:
        both(file)
    with h5py.File(memory, "r") as file:
        assert np.array_equal(file["packed"][...], ramp())
    with h5py.File(f"{folder}/core.h5", "w", driver="core", backing_store=True) as file:
        both(file)
    with h5py.File(f"{folder}/none.h5", "w", driver="core", backing_store=False) as file:
        plain, packed = both(file)
        assert np.array_equal(plain[...], packed[...])
    with h5py.File(f"{folder}/family-%d.h5", "w", driver="family", memb_size=10_000) as file:
        both(file)
    with h5py.File(f"{folder}/split", "w", driver="split") as file:
        both(file)
    with h5py.File(f"{folder}/stdio.h5", "w", driver="stdio") as file:
        both(file)
    with h5py.File(f"{folder}/paged.h5", "w", fs_strategy="page", fs_page_size=4096, page_buf_size=65536) as file:
        both(file)


def check_files_that_are_no_files(folder):
    check_both(f"{folder}/core.h5", ramp())
    check_both(f"{folder}/stdio.h5", ramp())
    check_both(f"{folder}/paged.h5", ramp())
    with h5py.File(f"{folder}/family-%d.h5", "r", driver="family", memb_size=10_000) as file:
        assert np.array_equal(file["packed"][...], ramp()) and np.array_equal(file["plain"][...], ramp())
    with h5py.File(f"{folder}/split", "r", driver="split") as file:
        assert np.array_equal(file["packed"][...], ramp()) and np.array_equal(file["plain"][...], ramp())
    assert not os.path.exists(f"{folder}/none.h5")


@situation
def far_away_elements(folder):
    """Past 4 GiB, in files that are mostly holes."""
    size = 5 << 30
    with h5py.File(f"{folder}/a.h5", "w") as file:
        plain = file.create_dataset("plain", (size,), "u1", fill_time="never")
        packed = file.create_dataset("packed", (1 << 40,), "u1", chunks=(1 << 16,), compression="gzip")
        for dataset in (plain, packed):
            dataset[-10:] = range(10)
            dataset[(1 << 32) - 2 : (1 << 32) + 2] = 9
            assert (dataset[-10:] == range(10)).all()
            assert (dataset[(1 << 32) - 2 : (1 << 32) + 2] == 9).all()
        assert (packed[(1 << 39) : (1 << 39) + 10] == 0).all()


def check_far_away_elements(folder):
    with h5py.File(f"{folder}/a.h5") as file:
        for dataset in file.values():
            assert (dataset[-10:] == range(10)).all() and (dataset[(1 << 32) - 2 : (1 << 32) + 2] == 9).all()


@situation
def files_that_may_not_be_written(folder):
    with h5py.File(f"{folder}/a.h5", "w") as file:
        both(file)
    os.chmod(f"{folder}/a.h5", 0o444)
    with h5py.File(f"{folder}/a.h5", "r") as file:
        for name in ("plain", "packed"):
            assert np.array_equal(file[name][...], ramp())
            try:
                file[name][0] = 1
                raise AssertionError("written")
            except OSError:
                pass
            assert file[name][0] == 0
    with open(f"{folder}/text", "w") as file:
        file.write("no HDF5 file\n" * 100)
    for mode in ("r", "r+"):
        try:
            h5py.File(f"{folder}/text", mode)
            raise AssertionError("opened")
        except OSError:
            pass


def check_files_that_may_not_be_written(folder):
    check_both(f"{folder}/a.h5", ramp())
    with open(f"{folder}/text") as file:
        assert file.read() == "no HDF5 file\n" * 100


def main():
    what, *rest = sys.argv[1:]
    if what == "list":
        return print(json.dumps({"together": sorted(set(SITUATIONS) - ALONE), "alone": sorted(ALONE)}))
    folder, *names = rest
    for name in names:
        own = os.path.join(folder, name)
        os.makedirs(own, exist_ok=True)
        print("begin", name, flush=True)
        if what == "run":
            SITUATIONS[name](own)
        elif f"check_{name}" in globals():
            globals()[f"check_{name}"](own)
    print("end", flush=True)


if __name__ == "__main__":
    main()
