"""Kernels are identified by content: loads of equal images have one row, one directory and one schedule."""

from __future__ import annotations

from pathlib import Path

import pytest

from .conftest import AUTO, Host

LOADS = {
    "module": ("module(IMAGE)", "function(m, 'add__8')", "cuModuleUnload"),
    "file": ("from_file(IMAGE)", "function(m, 'add__8')", "cuModuleUnload"),
    "library": ("library(IMAGE)", "kernel(m, 'add__8')", "cuLibraryUnload"),
}
FROM_FILE = """
import tempfile
def from_file(image):
    path = tempfile.mkstemp()[1]
    open(path, "wb").write(image)
    loaded = c_void_p()
    call("cuModuleLoad", byref(loaded), path.encode())
    return loaded
"""


@pytest.mark.parametrize("how", LOADS)
def test_reload_continues_the_schedule_of_one_kernel(host: Host, how: str) -> None:
    load, get, unload = LOADS[how]
    run = host.python(
        f"""{FROM_FILE}
IMAGE = PTX + b"// the same text"
context()
w = word()
for _ in range(40):
    m = {load}
    launch({get}, w)
    call("{unload}", m)
print(read(w))
""",
        **AUTO,
    )
    assert run.stdout == "40\n", run.stderr
    assert run.outcomes() == [("probed", "add__8", "-")]
    assert len(list((run.directory / "kernel").iterdir())) == 1
    assert len(host.engine.prepared) == 1  # type: ignore[union-attr]
    assert len(run.results) < 40
    assert run.calls.count("load probed") == run.calls.count("unload probed") == len(run.results)


def test_equal_images_side_by_side_have_variables_of_their_own(host: Host) -> None:
    host.engine.globals = "shared_variable"  # type: ignore[union-attr]
    run = host.python(
        """
context()
first, second = module(), module()
f, g = function(first, "add__8"), function(second, "add__8")
w = word()
launch(f, w); launch(g, w)
call("cuModuleUnload", first)
launch(g, w)
print(read(w))
"""
    )
    assert run.stdout == "3\n", run.stderr
    assert run.outcomes() == [("probed", "add__8", "-")]
    assert run.calls.count("load probed") == 2
    assert len(run.results) == 3


def test_images_that_differ_are_different_kernels(host: Host) -> None:
    run = host.python(
        """
context()
for text in (PTX + b"//1", PTX + b"//2", PTX + b"//1"):
    launch(function(module(text), "add"))
"""
    )
    assert run.outcomes() == [("probed", "add", "-")] * 2, run.stderr


@pytest.mark.parametrize(
    ("option", "value", "kernels"), [(0, 32, 2), (21, 1, 2), (5, 0, 1), (12, 1, 1)]
)  # registers, FTZ; a log, how much of it
def test_options_that_change_code_make_another_kernel(host: Host, option: int, value: int, kernels: int) -> None:
    run = host.python(
        f"""
context()
def load(*options):
    loaded, codes, values = c_void_p(), (c_int * 4)(*(o for o, _ in options)), (c_void_p * 4)(*(v for _, v in options))
    call("cuModuleLoadDataEx", byref(loaded), ctypes.c_char_p(PTX), len(options), codes, values)
    return loaded
launch(function(load(), "add"))
launch(function(load(({option}, {value})), "add"))
"""
    )
    assert len(run.outcomes()) == kernels, run.stderr


def test_contexts_share_the_kernel(host: Host) -> None:
    run = host.python(
        """
w = None
for _ in range(2):
    context()
    w = w or word()
    launch(function(module(), "add__8"), w)
print(read(w))
"""
    )
    assert run.stdout == "2\n", run.stderr
    assert run.outcomes() == [("probed", "add__8", "-")]
    assert run.calls.count("load probed") == 2


def test_threads_that_load_and_unload_share_the_kernel(host: Host) -> None:
    run = host.python(
        """
import threading
c = context()
def work():
    call("cuCtxSetCurrent", c)
    w = word()
    for _ in range(30):
        m = module()
        launch(function(m, "add__8"), w)
        call("cuModuleUnload", m)
    counts.append(read(w))
counts = []
threads = [threading.Thread(target=work) for _ in range(4)]
for thread in threads: thread.start()
for thread in threads: thread.join()
print(counts)
"""
    )
    assert (run.status, run.stdout) == (0, "[30, 30, 30, 30]\n"), run.stderr
    assert run.outcomes() == [("probed", "add__8", "-")]
    assert len(run.results) == 120


def test_file_that_changes_between_loads_is_another_kernel(host: Host, tmp_path: Path) -> None:
    run = host.python(
        f"""
context()
for text in (b"//1", b"//2"):
    open({str(tmp_path / "image.ptx")!r}, "wb").write(PTX + text)
    loaded = c_void_p()
    call("cuModuleLoad", byref(loaded), {str(tmp_path / "image.ptx").encode()!r})
    launch(function(loaded, "add"))
"""
    )
    assert len(run.outcomes()) == 2, run.stderr


def test_long_name_is_cut_and_its_kernel_not_probed(host: Host) -> None:
    run = host.python(
        """
context()
m = module()
launch(function(m, "k" * 150))
launch(function(m, "k" * 100_000))
"""
    )
    assert run.outcomes()[0] == ("probed", "k" * 150, "-"), run.stderr
    assert run.lines(r"\[kernel\] 1 skipped .* name k{200}\.\.\.[0-9a-f]{16} reason the kernel's name has 100000 bytes")
    assert (run.directory / "event.log").stat().st_size < 200_000
