"""Benchmark mode: times of original and probed launches, and the same results as ever."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from .conftest import Engine, Host, Run

SAMPLE = re.compile(
    r"\[benchmark\] prologue (\S+) kernel (\S+) epilogue (\S+) original (\S+) impact (\S+) "
    r"(\d+) kernel (\d+) launch (\d+)(?: probe (\w+))?"
)


def samples(run: Run) -> list[tuple[str, ...]]:
    """Return the measured times among prologue, kernel, epilogue, original, impact, and the launch."""
    matches = [SAMPLE.fullmatch(line) for line in run.lines(r"\[benchmark\] prologue")]
    assert all(matches)
    assert all(re.fullmatch(r"-|\d+\.\d{6}", number) for match in matches if match for number in match.groups()[:5])
    return [
        ("".join("-" if number == "-" else "x" for number in match.groups()[:5]), match[8])
        for match in matches
        if match
    ]


def launches(run: Run) -> list[str]:
    return [line.removeprefix("launch ").split()[0] for line in run.calls if line.startswith("launch")]


def bench(host: Host, script: str, **more: str) -> Run:
    run = host.python(script, TUI_PROBE_BENCHMARK="1", TUI_PROBE_SAVE_RESULTS="1", **more)
    assert (run.status, run.stderr) == (0, "")
    saved = [line.split("launch ")[1] for line in run.lines(r"\[exec\] save")]
    assert len(saved) == len(set(saved)) == len(run.results), "a launch has one result"
    assert run.lines(r"\[benchmark\] ENABLED L2 Flush Size 2097152")
    return run


def test_replay_times_both_and_leaves_one_effect(host: Host) -> None:
    host.engine.globals = "shared_variable"  # type: ignore[union-attr]
    run = bench(
        host,
        """
context()
f = function(module(), "add__8")
w, other = word(5), word(7)
for _ in range(3): launch(f, w)
launch(f, w, grid=9)
print(read(w), read(other))
""",
    )
    assert run.stdout == "9 7\n"
    assert samples(run) == [("xxxxx", "0")] * 5 + [("xxxxx", "3")] * 5
    measured = ["probed", *["add__8", "probed"] * 5, "add__8"]
    assert launches(run) == [*measured, *["add__8"] * 2, *measured]
    assert [result.grid[0] for result in run.results] == [2, 9], "of the launch before the timed ones"
    backups = [line.split(" reason ")[1] for line in run.lines(r"\[exec\] backup")]
    assert backups == ["measured already"] * 2
    assert len(run.lines(r"\[exec\] probe-mem")) == 2


@pytest.mark.parametrize("maps", ["1,16", "1,-1 1,4"])
def test_no_result_is_saved_unless_it_is_asked_for(host: Host, maps: str) -> None:
    assert host.engine
    host.engine.maps, host.engine.filled = maps, "1,16"
    host.engine.storage = ["storage 0 queue record 16 cap 0", "storage 1 counts"] if "-1" in maps else []
    run = host.python(
        "context()\nf, w = function(module(), 'add__8'), word()\nlaunch(f, w)\nprint(read(w))", TUI_PROBE_BENCHMARK="1"
    )
    assert (run.status, run.stdout, run.results) == (0, "1\n", [])
    assert samples(run) == [("xxxxx", "0")] * 5
    assert not run.lines(r"\[exec\] save")


def test_memory_that_cannot_be_put_back_is_measured_by_turns(host: Host) -> None:
    run = bench(
        host,
        """
context()
f = function(module(), "add__8")
w = c_uint64()
call("cuMemAllocManaged", byref(w), c_size_t(8), 1)
c_uint64.from_address(w.value).value = 0
for _ in range(13): launch(f, w)
print(read(w))
""",
    )
    assert run.stdout == "13\n"
    assert launches(run) == ["add__8", "probed"] * 5 + ["add__8"] * 3
    assert samples(run) == [("xxxxx", str(launch)) for launch in (1, 3, 5, 7, 9)]
    assert run.lines(r"\[benchmark\] alternate kernel 0 reason a parameter points to managed memory$")


def test_last_original_without_a_counterpart_is_not_lost(host: Host) -> None:
    run = bench(
        host,
        "context()\nf = function(module(), 'add')\nfor _ in range(3): launch(f, name='cuLaunchCooperativeKernel')",
    )
    assert samples(run) == [("xxxxx", "1"), ("---x-", "2")]
    assert run.lines(r"\[benchmark\] alternate kernel 0 reason the launch is cooperative$")


def test_engine_forbids_replay(host: Host) -> None:
    engine = host.engine
    assert engine

    def answer(directory: object, name: str) -> str:
        engine.write_probed(directory, name)  # type: ignore[arg-type]
        with (directory / "kernel.info").open("a") as info:  # type: ignore[operator]
            info.write("no-replay it prints\n")
        return "ok\t<id>\tprobed.bin"

    engine.answer = answer
    run = bench(host, "context()\nf = function(module(), 'add')\nlaunch(f)\nlaunch(f)")
    assert run.lines(r"\[benchmark\] alternate kernel 0 reason it prints$")
    assert samples(run) == [("xxxxx", "1")]


def test_no_memory_to_save_what_may_be_written(host: Host) -> None:
    run = bench(
        host,
        "context()\nf = function(module(), 'add__8')\nw = word()\nlaunch(f, w)\nlaunch(f, w)\nprint(read(w))",
        STUB_MEMORY=str(32 << 20),
    )
    assert run.stdout == "2\n"
    assert run.lines(
        r"\[benchmark\] alternate kernel 0 reason not enough memory for a copy of the memory that the kernel may write$"
    )


def test_several_threads_are_measured_by_turns(host: Host) -> None:
    run = bench(
        host,
        """
import threading
c = context()
m = module()
launch(function(m, "first"))
f, w = function(m, "add__8"), word()
def work():
    call("cuCtxSetCurrent", c)
    for _ in range(20): launch(f, w)
threads = [threading.Thread(target=work) for _ in range(2)]
for t in threads: t.start()
for t in threads: t.join()
print(read(w))
""",
    )
    assert run.stdout == "40\n"
    assert run.lines(r"\[benchmark\] alternate kernel 1 reason several threads launch kernels$")
    assert [kind for kind, _ in samples(run)] == ["xxxxx"] * 10


def test_kernel_without_ptx_is_timed_too(host: Host) -> None:
    run = bench(
        host,
        """
context()
f = function(module(b"\\x7fELF" + b"\\0" * 60), "add__8")
w = word()
for _ in range(7): launch(f, w)
print(read(w))
""",
    )
    assert run.stdout == "7\n"
    assert samples(run) == [("---x-", str(launch)) for launch in range(5)]
    assert len(run.lines(r"\[exec\] backup .* reason no PTX in image")) == 7


def test_probed_kernel_that_cannot_run_leaves_the_original(host: Host) -> None:
    run = bench(
        host,
        "context()\nf = function(module(), 'add__8')\nw = word()\nfor _ in range(3): launch(f, w)\nprint(read(w))",
        STUB_FAIL_PROBED="701",
    )
    assert run.stdout == "3\n"
    assert samples(run) == [("---x-", "1"), ("---x-", "2")]
    assert run.results == []
    assert run.outcomes()[-1][:1] == ("failed",)


def test_capture_is_not_benchmarked(host: Host) -> None:
    run = bench(
        host,
        """
context()
f = function(module(), "add")
launch(f)
s, graph = stream(), c_void_p()
call("cuStreamBeginCapture_v2", s, 0)
launch(f, stream=s)
call("cuStreamEndCapture", s, byref(graph))
""",
    )
    assert run.lines(r"\[exec\] backup .* reason stream is capturing")
    assert not [line for line in run.calls if "CAPTURE" in line or "FORBIDDEN" in line]


def test_replay_waits_for_no_context_in_capture(host: Host) -> None:
    run = bench(
        host,
        """
context()
f = function(module(), "add__8")
w = word()
s, graph = stream(), c_void_p()
call("cuStreamBeginCapture_v2", s, 0)
launch(f, w)
launch(f, w)
call("cuStreamEndCapture", s, byref(graph))
print(read(w))
""",
    )
    assert run.stdout == "2\n"
    assert run.lines(r"\[benchmark\] alternate kernel 0 reason a stream is being captured$")
    assert not [line for line in run.calls if "FORBIDDEN" in line]


def test_memory_for_measuring_is_freed_in_every_context(host: Host) -> None:
    run = bench(
        host,
        """
contexts = [context(), context()]
k = kernel(library(), "add__8")
free = []
for grid in range(1, 9):
    call("cuCtxSetCurrent", contexts[grid % 2])
    launch(k, c_uint64(0), grid=grid)
    free.append(unused())
print(free[1] - free[-1])
""",
    )
    assert run.stdout == "0\n"
    assert len(samples(run)) == 8 * 5


def test_memory_of_a_context_that_is_gone_is_not_put_back(host: Host) -> None:
    run = bench(
        host,
        """
c = context()
for text in (b"", b" "):
    k, w = kernel(library(PTX + text), "add__8"), word(5)
    launch(k, w)
    print(read(w), called("cuMemFree"))
    call("cuCtxDestroy_v2", c)
    call("cuCtxSetCurrent", c)
""",
    )
    assert run.stdout.splitlines()[0].startswith("6 ")
    freed = [int(line.split()[1]) for line in run.stdout.splitlines()]
    assert freed[1] == 2 * freed[0]


def test_other_threads_free_nothing_that_is_being_put_back(host: Host) -> None:
    run = bench(
        host,
        """
import threading
c = context()
f = function(module(), "add__8")
w, other = word(5), word(7)
def free():
    wait_for(lambda: called("launch probed add__8 kernel"))
    call("cuMemFree_v2", other)
freeing = threading.Thread(target=free)
freeing.start()
launch(f, w)
print(read(w))
freeing.join()
""",
        STUB_SLOW="20",
    )
    assert run.stdout == "6\n"
    assert len(run.lines(r"\[mem\] cuMemFree_v2 0")) == 1
    last = max(i for i, line in enumerate(run.calls) if line.startswith("launch"))
    assert run.calls[last:].count("cuMemFree") == 4  # two copies and the buffer, and only then the word


@pytest.mark.parametrize("pageable", ["0", "1"])
def test_host_memory_that_kernels_may_reach_is_not_put_back(host: Host, pageable: str) -> None:
    run = bench(
        host,
        """
context()
f = function(module(), "add__8_8")
w, value = word(5), c_uint64(7)
launch(f, w, c_uint64(ctypes.addressof(value)))
launch(f, w, c_uint64(12345), grid=3)
print(read(w))
""",
        STUB_PAGEABLE=pageable,
    )
    assert run.stdout == "7\n"
    obstacles = run.lines(r"\[benchmark\] alternate kernel 0 reason a parameter points to host memory$")
    assert len(obstacles) == int(pageable)
    assert len(samples(run)) == (10 if pageable == "0" else 6)


def answering(engine: Engine, probes: str) -> None:
    """The engine of a run with several probes; each probe is in every kernel."""

    def answer(directory: Path, name: str) -> str:
        for probe in probes.split(":"):
            (directory / probe).mkdir()
            engine.write_probed(directory / probe, name)
        return "\n".join(["ok\t<id>\tprobed.bin"] * len(probes.split(":")))

    engine.answer = answer


def probes_timed(run: Run) -> list[tuple[str, str]]:
    """(launch, probe) of each sample."""
    return [(m[8], m[9]) for line in run.lines(r"\[benchmark\] prologue") if (m := SAMPLE.fullmatch(line))]


def test_each_launch_times_one_of_several_probes(host: Host) -> None:
    assert host.engine
    answering(host.engine, "one:two")
    run = bench(host, TIMED, TUI_PROBE_PROBES="one:two")
    assert run.stdout == "9\n"
    assert probes_timed(run) == [("0", "one")] * 5 + [("1", "two")] * 5
    assert [line.split()[-1] for line in run.lines(r"\[exec\] save")] == ["one", "two"]
    assert len([line for line in run.lines(r"\[exec\] backup") if "measured already" in line]) == 2


TIMED = """
context()
f = function(module(), "add__8")
w = word(5)
for _ in range(4): launch(f, w)
print(read(w))
"""


def test_kernel_that_must_not_run_twice_has_pairs_of_all_probes_in_turn(host: Host) -> None:
    assert host.engine
    answering(host.engine, "one:two")
    script = "context()\nf = function(module(), 'add')\nfor _ in range(9): launch(f, name='cuLaunchCooperativeKernel')"
    run = bench(host, script, TUI_PROBE_PROBES="one:two")
    assert probes_timed(run) == [("1", "one"), ("3", "two"), ("5", "one"), ("7", "two"), ("8", "one")]
