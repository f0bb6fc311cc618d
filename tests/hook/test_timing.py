"""GPU times of sampled launches: which are taken, and that taking them does the program no harm."""

from __future__ import annotations

import re
from pathlib import Path
from time import monotonic_ns
from typing import NamedTuple

import pytest

from .conftest import Host, Run

LINE = re.compile(r"\[time\] launch (\d+) kernel (\d+) key \d+ (original|probed) ns (\d+) for (\d+)(?: host (\d+))?")


class Time(NamedTuple):
    launch: int
    kernel: int
    kind: str
    nanoseconds: int
    weight: int
    host: int | None


def times(run: Run) -> list[Time]:
    """The times in event.log, in the order of their launches."""
    assert not [line for line in run.calls if "EVENT" in line or "FORBIDDEN" in line]
    matches = [LINE.fullmatch(line) for line in run.lines(r"\[time\] launch")]
    assert all(matches)
    groups = [match.groups() for match in matches if match]
    return sorted(
        Time(int(a), int(b), kind, int(ns), int(w), None if host is None else int(host))
        for a, b, kind, ns, w, host in groups
    )


def timed(host: Host, script: str, **more: str) -> list[Time]:
    run = host.python("context()\nm = module()\n" + script, **more)
    assert (run.status, run.stderr) == (0, "")
    return times(run)


MANY = "f = function(m, 'add')\nfor _ in range(2000): launch(f)"


@pytest.mark.parametrize("kind", ["original", "probed"])
def test_a_sample_that_grows_slowly_stands_for_all_launches(host: Host, kind: str) -> None:
    host.engine.maps = "1,8"  # type: ignore[union-attr]
    times = timed(host, MANY, TUI_PROBE_FILTER="add" if kind == "original" else "")
    launches = [time.launch for time in times]
    assert {(time.kernel, time.kind) for time in times} == {(0, kind)}
    assert launches[:8] == list(range(8)), "the first launches of a kernel are all timed"
    assert len(launches) == len(set(launches)) < 300
    assert launches[-1] > 1000
    gaps = [after - before for before, after in zip([-1, *launches], launches, strict=False)]
    assert [time.weight for time in times] == gaps, "each stands for those since the one before it"


def test_kernels_without_ptx_are_timed_too(host: Host) -> None:
    script = "f = function(module(b'\\x7fELF' + b'\\0' * 60), 'add')\nfor _ in range(3): launch(f)"
    times = timed(host, script)
    assert [(time.launch, time.kind, time.weight) for time in times] == [(n, "original", 1) for n in range(3)]


def test_an_original_is_timed_right_after_a_probed_launch(host: Host) -> None:
    script = "f = function(m, 'add')\nfor _ in range(40): launch(f)\nlaunch(f)\nlaunch(f)"
    times = timed(host, script, TUI_PROBE_LAUNCHES="0,1,40")
    assert [time.launch for time in times if time.kind == "probed"] == [0, 1, 40]
    assert {2, 41} <= {time.launch for time in times if time.kind == "original"}


def test_times_are_those_between_the_events_less_the_empty_pair(host: Host) -> None:
    begin = monotonic_ns()
    run = host.python("context()\nlaunch(function(module(), 'add'))", TUI_PROBE_FILTER="add", STUB_SLOW_LAUNCH="20")
    whole_run = monotonic_ns() - begin
    (time,) = times(run)
    (empty,) = run.lines(r"\[time\] empty \d+")
    assert 19_000_000 < time.nanoseconds < whole_run - int(empty.split()[2])


@pytest.mark.parametrize("file", ["", "sm_80.cubin", "sm_90.cubin"])
def test_event_cost_is_measured_around_an_empty_kernel(host: Host, tmp_path: Path, file: str) -> None:
    if file:
        (tmp_path / file).write_bytes(b"\x7fELF")
    script = "context()\nlaunch(function(module(), 'add'))"
    run = host.python(script, TUI_PROBE_FILTER="add", TUI_PROBE_EMPTY_KERNELS=str(tmp_path), STUB_PAIR="2000",
                      TUI_PROBE_PATIENT="1")  # fmt: skip
    (empty,) = run.lines(r"\[time\] empty \d+")
    is_there = file == "sm_90.cubin"
    assert empty.endswith(" without-kernel") == (not is_there)
    launches = [call for call in run.calls if call.startswith("launch")]
    assert len(launches) == (38 if is_there else 1), "one that may set things up, and four times nine between events"
    assert "add" in launches[-1], "the program's launch comes after those between events"
    assert len(times(run)) == 1


@pytest.mark.parametrize(("long_pairs", "nanoseconds"), [(0, 2000), (18, 2000), (63, 2000), (1000, 2100)])
def test_event_cost_leaves_out_waits_for_kernels_of_the_program(host: Host, long_pairs: int, nanoseconds: int) -> None:
    script = "context()\nlaunch(function(module(), 'add'))"
    pairs = {"STUB_PAIR": "2000", "STUB_LONG_PAIR": "38000", "STUB_LONG_PAIRS": str(long_pairs)}
    run = host.python(script, TUI_PROBE_FILTER="add", **pairs)
    (empty,) = run.lines(r"\[time\] empty \d+")
    assert int(empty.split()[2]) == nanoseconds, (
        "the least of four rounds of nine pairs; up to eight rounds while all waited"
    )


@pytest.mark.parametrize("queue", ["0", "100"])
def test_launches_that_the_device_waits_for_are_marked(host: Host, queue: str) -> None:
    times = timed(host, "launch(function(m, 'add'))", TUI_PROBE_FILTER="add", STUB_QUEUE=queue, STUB_SLOW_LAUNCH="3")
    (time,) = times
    assert (time.host is None) == (queue == "100")
    assert time.host is None or 3_000_000 <= time.host < 2_000_000_000


def test_no_times_are_taken_where_nobody_wants_any(host: Host) -> None:
    run = host.python("context()\nlaunch(function(module(), 'add'))", TUI_PROBE_TIMES="0", TUI_PROBE_FILTER="add")
    assert not run.lines(r"\[time\]")
    assert not [line for line in run.calls if "Record" in line]


def test_a_benchmark_takes_its_own_times(host: Host) -> None:
    assert timed(host, "launch(function(m, 'add'))", TUI_PROBE_BENCHMARK="1") == []


def test_refused_events_cost_only_the_times(host: Host) -> None:
    script = "f, w = function(m, 'add__8'), word()\nfor _ in range(9): launch(f, w)\nassert read(w) == 9"
    assert timed(host, script, STUB_FAIL_EVENT="2") == []


@pytest.mark.parametrize("form", ["cuLaunchKernel", "cuLaunchCooperativeKernel", "cuLaunchKernelEx"])
def test_events_go_to_the_stream_of_the_launch(host: Host, form: str) -> None:
    script = f"context()\nf = function(module(), 'add')\nlaunch(f, name='{form}_ptsz')\nlaunch(f, name='{form}')\n"
    run = host.python(script + f"launch(f, name='{form}', stream=stream())", TUI_PROBE_FILTER="add")
    assert len(times(run)) == 3
    around = [run.calls[i - 1 : i + 2 : 2] for i, call in enumerate(run.calls) if call.startswith("launch")]
    assert around == [[f"cuEventRecord {name}"] * 2 for name in ("thread", "null", "stream")]


def test_captures_are_not_timed(host: Host) -> None:
    script = """
f, s, graph = function(m, "add"), stream(), c_void_p()
launch(f)
call("cuStreamBeginCapture_v2", s, 0)
launch(f, stream=s)
launch(f)
call("cuStreamEndCapture", s, byref(graph))
launch(f)
"""
    assert [time.launch for time in timed(host, script, TUI_PROBE_FILTER="add")] == [0, 3]


def test_a_capture_that_begins_elsewhere_is_not_ended(host: Host) -> None:
    """Events are asked for by the draining thread while the capture lasts."""
    script = """
f, s, graph = function(m, "add"), stream(), c_void_p()
launch(f)
call("cuStreamBeginCapture_v2", s, 0)
wait_for(lambda: logged("[time] launch"))
call("cuStreamEndCapture", s, byref(graph))
"""
    assert len(timed(host, script, TUI_PROBE_FILTER="add", STUB_QUEUE="30")) == 1


OVERLAPPING = """
class Attribute(ctypes.Structure):
    _fields_ = [("id", c_uint), ("pad", c_uint), ("value", c_uint64 * 8)]
def overlap(f, kind, value):
    attributes = (Attribute * 1)(Attribute(kind, 0, (c_uint64 * 8)(value)))
    config = Config((c_uint * 3)(1, 1, 1), (c_uint * 3)(32, 1, 1), 0, None, ctypes.addressof(attributes), 1)
    call("cuLaunchKernelEx", byref(config), f, None, None)
first, second = function(m, "first"), function(m, "second")
"""


@pytest.mark.parametrize("attribute", ["6, 1", "7, 0"])
def test_no_event_comes_between_launches_that_overlap(host: Host, attribute: str) -> None:
    """The work before a programmatic dependent launch is known once the launch has been met."""
    script = f"{OVERLAPPING}for _ in range(4):\n    launch(first)\n    overlap(second, {attribute})\n"
    assert [time.launch for time in timed(host, script)] == [0]


def test_an_attribute_that_is_off_forbids_nothing(host: Host) -> None:
    script = f"{OVERLAPPING}for _ in range(4):\n    launch(first)\n    overlap(second, 6, 0)\n"
    assert [time.launch for time in timed(host, script)] == list(range(8))


def test_times_of_a_context_are_read_before_it_is_destroyed(host: Host) -> None:
    script = """
first = context()
for _ in range(3):
    made = context()
    f = function(module(), "add")
    for _ in range(5): launch(f)
    call("cuCtxDestroy_v2", made)
    call("cuCtxSetCurrent", first)
launch(f)
"""
    times = timed(host, script, TUI_PROBE_FILTER="add", STUB_QUEUE="20")
    assert [time.launch for time in times] == list(range(16))


def test_a_context_goes_though_its_kernels_do_not_end(host: Host) -> None:
    script = """
first = context()
launch(function(m, "add"))
call("cuCtxDestroy_v2", first)
time.sleep(0.2)
"""
    assert timed(host, script, TUI_PROBE_FILTER="add", STUB_QUEUE="100000", TUI_PROBE_EXIT_TIMEOUT="1") == []


def test_kernels_that_do_not_end_hold_nobody_up(host: Host) -> None:
    """There are no more pairs of events than a fixed number, and the end of the program waits a moment for them."""
    script = "for i in range(700): launch(function(m, f'kernel{i}'))\nprint(time.monotonic())"
    run = host.python("context()\nm = module()\n" + script, TUI_PROBE_FILTER="kernel", STUB_QUEUE="100000")
    assert run.status == 0
    assert times(run) == []
    records = [line for line in run.calls if line.startswith("cuEventRecord")]
    assert 1000 < len(records) < 1100
    assert run.lines(r"\[exit\] launches 700")


def test_a_launch_that_fails_has_no_time(host: Host) -> None:
    script = "f = function(m, 'add')\ntry: launch(f)\nexcept DriverError as error: assert error.args[1] == 701"
    assert timed(host, script, STUB_FAIL_ORIGINAL="701", TUI_PROBE_FILTER="add") == []


def test_the_original_in_the_place_of_a_probed_launch_is_timed(host: Host) -> None:
    times = timed(host, "launch(function(m, 'add'))", STUB_FAIL_PROBED="701")
    assert [(time.launch, time.kind) for time in times] == [(0, "original")]


def test_a_forked_child_starts_anew(host: Host) -> None:
    script = """
if os.fork() == 0:
    context()
    launch(function(module(), "add"))
    sys.exit()
os.wait()
context()
launch(function(module(), "add"))
"""
    run = host.python("import sys\n" + script, TUI_PROBE_FILTER="add")
    logs = [(folder / "event.log").read_text() for folder in run.directories]
    assert [log.count("[time] launch 0 kernel 0 key 0 original") for log in logs] == [1, 1]


def test_threads_share_the_pairs_of_a_context(host: Host) -> None:
    script = """
import threading
here = c_void_p()
call("cuCtxGetCurrent", byref(here))
def work(i):
    call("cuCtxSetCurrent", here)
    f = function(m, f"kernel{i}")
    for _ in range(100): launch(f)
threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
for t in threads: t.start()
for t in threads: t.join()
"""
    times = timed(host, script, TUI_PROBE_FILTER="kernel")
    assert {time.kernel for time in times} == set(range(4))
    assert len({time.launch for time in times}) == len(times)
    assert all(time.weight >= 1 for time in times)


def test_launch_that_does_not_end_is_reported_at_the_end_of_the_process(host: Host) -> None:
    """Others behind it wait: only the launch between its events runs."""
    script = "import time\ncontext()\nf = function(module(), 'add')\nfor _ in range(4): launch(f)\ntime.sleep(0.6)"
    run = host.python(script, TUI_PROBE_FILTER="add", STUB_HANG="2")
    assert run.status == 0
    (line,) = run.lines(r"\[stuck\] ")
    assert re.fullmatch(
        r"\[stuck\] launch 2 kernel 0 seconds \d+\.\d warps 0 left-out 0 reason .+ code not-watched", line
    )


def test_launches_that_end_are_not_reported(host: Host) -> None:
    script = "import time\ncontext()\nf = function(module(), 'add')\nfor _ in range(4): launch(f)\ntime.sleep(0.6)"
    run = host.python(script, TUI_PROBE_FILTER="add")
    assert not run.lines(r"\[stuck\] ")
