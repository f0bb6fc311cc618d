"""Streams in capture are left unchanged, and no call of the hook ends a capture elsewhere."""

from __future__ import annotations

from .conftest import AUTO, Host

CAPTURE = """
context()
m = module()
f, late = function(m, "add__8"), function(m, "late")
w = word()
s, graph = stream(), c_void_p()
launch(f, w, stream=s)
call("cuStreamBeginCapture_v2", s, 0)
launch(f, w, stream=s)
launch(late, stream=s)
for _ in range(70): launch(f, w, grid=32, block=1024)
call("cuStreamEndCapture", s, byref(graph))
launch(f, w, stream=s)
launch(f, w)
print(read(w))
"""


def test_stream_in_capture(host: Host) -> None:
    host.engine.maps = "0,8"  # type: ignore[union-attr]
    run = host.python(CAPTURE)
    assert (run.status, run.stdout) == (0, "73\n"), run.stderr
    backups = [line.split(" reason ")[1] for line in run.lines(r"\[exec\] backup")]
    assert backups == ["stream is capturing"] * 2
    assert run.outcomes() == [("probed", "add__8", "-"), ("skipped", "late", "stream is capturing")]
    assert [line for line in run.calls if line.startswith("captured")] == ["captured add__8", "captured late"]
    assert not [line for line in run.calls if "CAPTURE" in line or "FORBIDDEN" in line or "DIRTY" in line]
    assert len(run.results) == 73


def test_records_without_an_event_wait_for_the_end_of_a_capture(host: Host) -> None:
    script = """
context()
f = function(module(), "add__8")
w = word()
s, other, graph = stream(), stream(), c_void_p()
launch(f, w, stream=s)
call("cuStreamBeginCapture_v2", other, 2)
time.sleep(0.2)
print(logged("[exec] save"))
call("cuStreamEndCapture", other, byref(graph))
wait_for(lambda: logged("[exec] save"))
"""
    run = host.python(script, STUB_FAIL_EVENT="2")
    assert (run.status, run.stdout) == (0, "0\n"), run.stderr
    assert "cuCtxSynchronize" in run.calls
    assert not [line for line in run.calls if "FORBIDDEN" in line]


def test_small_chunks_make_way_during_a_capture(host: Host) -> None:
    host.engine.maps = "0,64"  # type: ignore[union-attr]
    script = """
context()
f = function(module(), "add__8")
w = word()
launch(f, w)
other, graph = stream(), c_void_p()
wait_for(lambda: logged("[exec] save"))
call("cuStreamBeginCapture_v2", other, 0)
launch(f, w, grid=100, block=1024)
call("cuStreamEndCapture", other, byref(graph))
print(read(w))
"""
    run = host.python(script, TUI_PROBE_MAX_PROBE_MEMORY=str(9 << 20))
    assert (run.status, run.stdout) == (0, "2\n"), run.stderr
    assert not [line for line in run.calls if "FORBIDDEN" in line]
    assert len(run.results) == 2


def test_captured_launches_are_neither_launches_nor_turns_of_the_schedule(host: Host) -> None:
    run = host.python(
        """
context()
f = function(module(), "add__8")
w, s, graph = word(), stream(), c_void_p()
call("cuStreamBeginCapture_v2", s, 0)
for _ in range(5): launch(f, w, stream=s)
call("cuStreamEndCapture", s, byref(graph))
launch(f, w, stream=s)
""",
        **AUTO,
    )
    assert run.lines(r"\[exit\] launches 1 probed 1 "), run.stderr
    assert len(run.results) == 1


def test_watchdog_finds_a_launch_during_a_capture_elsewhere(host: Host) -> None:
    """It asks events, which a thread must not do in a global capture unless its own mode is relaxed."""
    script = """
context()
f = function(module(), "add")
s, graph = stream(), c_void_p()
for _ in range(2): launch(f)
call("cuStreamBeginCapture_v2", s, 0)
wait_for(lambda: logged("[stuck] launch 1 "))
call("cuStreamEndCapture", s, byref(graph))
"""
    run = host.python(script, TUI_PROBE_FILTER="add", TUI_PROBE_WATCHDOG="160", STUB_HANG="1")
    assert run.status == 0, run.stderr
    assert not [line for line in run.calls if "CAPTURE" in line or "FORBIDDEN" in line]


def test_watchdog_outlives_the_context_of_a_launch(host: Host) -> None:
    script = """
first = context()
f = function(module(), "add")
for _ in range(2): launch(f)
wait_for(lambda: logged("[stuck] launch 1 "))
call("cuCtxDestroy_v2", first)
context()
launch(function(module(), "add"))
time.sleep(0.3)
"""
    run = host.python(
        script, TUI_PROBE_FILTER="add", TUI_PROBE_WATCHDOG="160", TUI_PROBE_EXIT_TIMEOUT="1", STUB_HANG="1"
    )
    assert run.status == 0, run.stderr
    assert not [line for line in run.calls if "DESTROYED" in line]
