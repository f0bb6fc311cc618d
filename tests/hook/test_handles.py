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
    assert run.fates() == [("probed", f"turn{turn}", "-") for turn in range(50)] + [("probed", "last", "-")], run.stderr
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
    assert run.fates() == [("probed", "first", "-"), ("probed", "second", "-")]
    assert len(run.results) == 3


@pytest.mark.parametrize(
    "destroy",
    [
        "call('cuGreenCtxDestroy', c)",
        "call('cuDevicePrimaryCtxReset_v2', 0)",
        "call('cuDevicePrimaryCtxRelease_v2', 0)",
    ],
)
@pytest.mark.parametrize("held", ["", "1"])
def test_nothing_of_a_context_that_is_gone_is_used_again(host: Host, destroy: str, held: str) -> None:
    run = host.python(
        f"c = context()\nk = kernel(library(), 'add')\nlaunch(k)\n{destroy}\ncall('cuCtxSetCurrent', c)\nlaunch(k)",
        STUB_PRIMARY_HELD=held,
    )
    assert run.calls.count("load probed") == (1 if held and "Release" in destroy else 2), run.stderr
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
