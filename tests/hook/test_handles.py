"""Modules, contexts and streams come and go, and their handles with them."""

from __future__ import annotations

import pytest

from .conftest import Host


def test_unloaded_handles_are_forgotten_and_used_again(host: Host) -> None:
    run = host.python(
        """
context()
for turn in range(50):
    m = module(PTX + b"//%d" % turn)
    launch(function(m, f"turn{turn}"))
    call("cuModuleUnload", m)
lib = library()
launch(kernel(lib, "last"))
call("cuLibraryUnload", lib)
"""
    )
    assert run.outcomes() == [("probed", f"turn{turn}", "-") for turn in range(50)] + [("probed", "last", "-")], (
        run.stderr
    )
    assert run.calls.count("unload probed") == 51
    assert len(run.results) == 51


def test_handle_that_another_thread_gets_while_it_is_unloaded(host: Host) -> None:
    run = host.python(
        """
import threading
c = context()
first = module()
launch(function(first, "first"))
unloading = threading.Thread(target=lambda: call("cuModuleUnload", first))
unloading.start()
wait_for(lambda: called("unload"))
second = module(PTX + b" ")
f = function(second, "second")
launch(f)
unloading.join()
launch(f)
print(second.value == first.value, called("unload probed"))
""",
        STUB_SLOW_UNLOAD="300",
    )
    assert run.stdout == "True 1\n", run.stderr
    assert run.outcomes() == [("probed", "first", "-"), ("probed", "second", "-")]
    assert len(run.results) == 3


PRIMARY = """
def primary():
    retained = c_void_p()
    call("cuDevicePrimaryCtxRetain", byref(retained), 0)
    call("cuCtxSetCurrent", retained)
    return retained

def release():
    call("cuDevicePrimaryCtxRelease_v2", 0)
"""
WAYS_TO_DESTROY = {
    "green": ("context()", "call('cuGreenCtxDestroy', c)", "", True),
    "destroyed": ("context()", "call('cuCtxDestroy_v2', c)", "", True),
    "reset": ("primary()", "call('cuDevicePrimaryCtxReset_v2', 0)", "", True),
    "reset though held": ("primary()", "primary(); call('cuDevicePrimaryCtxReset_v2', 0)", "", True),
    "last release": ("primary()", "release()", "", True),
    "one of two releases": ("primary()", "primary(); release()", "", False),
    "both releases": ("primary()", "primary(); release(); release()", "", True),
    "release while others hold it": ("primary()", "release()", "1", False),
    "release of another context": ("primary(); c = context()", "release()", "", False),
    "primary is not destroyed so": ("primary()", "call('cuCtxDestroy_v2', c)", "", False),
    "detached once": ("context()", "call('cuCtxAttach', byref(c_void_p()), 0); call('cuCtxDetach', c)", "", False),
    "detached": ("context()", "call('cuCtxDetach', c)", "", True),
}


@pytest.mark.parametrize("way", WAYS_TO_DESTROY)
def test_context_state_is_forgotten_only_with_its_context(host: Host, way: str) -> None:
    create, destroy, held, is_gone = WAYS_TO_DESTROY[way]
    run = host.python(
        f"""{PRIMARY}
c = {create}
k = kernel(library(), "add")
launch(k)
{destroy}
call("cuCtxSetCurrent", c)
launch(k)
""",
        STUB_PRIMARY_HELD=held,
    )
    assert run.calls.count("load probed") == (2 if is_gone else 1), run.stderr
    assert len(run.results) == 2


def test_second_context_gets_its_own_probed_function(host: Host) -> None:
    run = host.python(
        """
first = context()
k = kernel(library(), "add__8")
w = word()
launch(k, w)
second = context()
launch(k, w)
call("cuCtxSetCurrent", first)
launch(k, w)
call("cuCtxDestroy_v2", second)
call("cuCtxDestroy_v2", first)
print(read(w))
"""
    )
    assert run.stdout == "3\n", run.stderr
    assert run.calls.count("load probed") == 2
    assert len(run.results) == 3
    assert run.lines(r"\[exit\] launches 3 probed 3 dropped 0")


def test_idle_records_are_awaited_by_events_of_their_own_context(host: Host) -> None:
    run = host.python(
        """
first = context()
k = kernel(library(), "add")
launch(k, stream=stream())
wait_for(lambda: logged("[exec] save") == 1)
second = context()
s = stream()
launch(k, stream=s)
launch(k)
call("cuCtxSetCurrent", first)
launch(k)
call("cuStreamDestroy_v2", s)
current = c_void_p()
call("cuCtxGetCurrent", byref(current))
print(current.value == first.value)
""",
        TUI_PROBE_TIMES="0",
    )
    assert run.stdout == "True\n", run.stderr
    assert len([line for line in run.calls if line.startswith("cuEventRecord")]) == 4
    assert "cuCtxSynchronize" not in run.calls
    assert len(run.results) == 4


def test_destroying_a_context_saves_its_records_first(host: Host) -> None:
    run = host.python("c = context()\nlaunch(function(module(), 'add'))\ncall('cuCtxDestroy_v2', c)\nprint(1)")
    saved = next(i for i, line in enumerate(run.calls) if line.startswith("cuEventRecord"))
    assert saved < run.calls.index("cuCtxDestroy 0")
    assert len(run.results) == 1


def test_destroying_a_stream_marks_its_work_first(host: Host) -> None:
    run = host.python(
        """
context()
f = function(module(), "add")
for _ in range(3):
    s = stream()
    launch(f, stream=s)
    call("cuStreamDestroy_v2", s)
""",
        TUI_PROBE_TIMES="0",
    )
    assert [line for line in run.calls if "Stream" in line or "Record" in line] == [
        "cuEventRecord stream",
        "cuStreamDestroy",
    ] * 3
    assert len(run.results) == 3


def test_per_thread_default_stream_is_marked_by_its_own_thread(host: Host) -> None:
    run = host.python(
        "context()\nf = function(module(), 'add')\nlaunch(f, name='cuLaunchKernel_ptsz')\nlaunch(f, stream=2)",
        TUI_PROBE_TIMES="0",
    )
    assert [line for line in run.calls if "Record" in line] == ["cuEventRecord thread"] * 2
    assert len(run.results) == 2
