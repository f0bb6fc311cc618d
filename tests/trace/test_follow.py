"""A growing log gives the same trace as a finished one, however it is cut into pieces."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import fields
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.trace.make import TraceWriter, write_older_trace
from tests.turns import examples
from tui_probe.trace import follow, log_index
from tui_probe.trace.follow import TraceFollower, open_trace
from tui_probe.trace.model import Trace

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path
from contextlib import contextmanager


def write_example(directory: Path) -> bytes:
    """A log with everything in it; returns its bytes."""
    writer = TraceWriter(directory)
    writer.start()
    writer.kernel(0, "_Z4fillPf", way="graft")
    writer.kernel(1, "gemm", "skipped", reason="no PTX in image")
    for i in range(6):
        number = writer.launch(0, (8 + i // 3, 1, 1))
        writer.pass_through(1, "no PTX in image")
        if i % 2:
            writer.save(0, number, b"x" * i)
        if i == 3:
            writer.lines("[mem] cuMemFree_v2 0 dptr 10", "garbage \udcff")
            writer.launch(0, status=1)
            writer.launches -= 1
            writer.pass_through(0, "it failed")
    writer.benchmark(0, 0, original=1.0, probed=1.5)
    writer.lines("[time] empty 1500")
    for i in range(4):
        writer.time(i % 2, i, 1000 + i, weight=i + 1, probed=i == 2, key=None if i < 2 else 3, host=900 if i else None)
    writer.time(1, 9, 1, host=2)
    writer.key(0, 0)
    writer.packed("0 1x3 0/0x2 0", 7)
    writer.lines("[key] 1 kernel 1 blocks 16 31", "[reason] 0 stream is capturing code capturing")
    writer.packed(f"0 @{writer.launches + 2} 1 7x2", 5)
    writer.lines("[passed] lost 1 3", "[passed] lost 9 2", "[passed] 1 2 x", "[passed] 1 2 3 4x")
    for _ in range(2):
        writer.save(0, writer.launches, b"before the launch that it is of")
        writer.launch(0)
    writer.save(0, 9999, b"of a launch that never comes")
    writer.exit()
    return writer.log.read_bytes()


def summary(trace: Trace) -> dict[str, Any]:
    """All that a trace knows, comparable."""
    state = {name: getattr(trace.state, name) for name in trace.state.__slots__}
    kernels = [
        (k.index, k.name, k.status, k.mode, k.reason, k.launches, k.launches_probed, k.shape, k.grid_varies,
         k.block_varies, k.registers_pruned, k.registers_probed, k.probe_bytes, k.slowdown, list(k.rows), k.results)
        for k in trace.kernels
    ]  # fmt: skip
    times = {k.index: sorted(zip(*(k.samples.column(field.name) for field in fields(k.samples)), strict=True))
             for k in trace.kernels}  # fmt: skip
    passed = trace.unprobed
    packed = [sorted(map(repr, passed.counts())), len(passed), passed.keys, *passed.lines()]
    launches = list(trace.launches)
    return {"times": times, "state": state, "kernels": kernels, "launches": launches, "packed": packed}


@pytest.mark.parametrize("older", [False, True])
@given(cuts=st.lists(st.integers(0, 6000), max_size=6))
@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=40)
def test_polls_add_up(tmp_path_factory: pytest.TempPathFactory, older: bool, cuts: list[int]) -> None:
    directory = tmp_path_factory.mktemp("trace") / "t"
    if older:
        write_older_trace(directory)
        content = (directory / "event.log").read_bytes()
    else:
        content = write_example(directory)
    complete = summary(open_trace(directory))
    (directory / "event.log").write_bytes(b"")
    follower = TraceFollower(directory)
    for end in [*sorted(cuts), len(content)]:
        with (directory / "event.log").open("ab") as file:
            file.write(content[file.tell() : end])
        follower.poll()
    assert summary(follower.trace) == complete


@given(st.integers(1, 400))
@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=25)
def test_slices_add_up(tmp_path_factory: pytest.TempPathFactory, size: int) -> None:
    directory = tmp_path_factory.mktemp("trace") / "t"
    write_example(directory)
    complete = summary(open_trace(directory))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(log_index, "SLICE_BYTES", size)
        patch.setattr(follow, "_HEAD_BYTES", size)
        assert summary(open_trace(directory)) == complete


@given(st.binary(max_size=40), st.integers(0, 5000), st.integers(0, 400))
@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=examples(80))
def test_damage_anywhere_is_survived(
    tmp_path_factory: pytest.TempPathFactory, damage: bytes, at: int, gone: int
) -> None:
    directory = tmp_path_factory.mktemp("trace") / "t"
    content = write_example(directory)
    (directory / "event.log").write_bytes(content[:at] + damage + content[at + gone :])
    summary(open_trace(directory))


def test_a_directory_that_does_not_exist_yet(tmp_path: Path) -> None:
    follower = TraceFollower(tmp_path / "t")
    assert not follower.poll()
    write_example(tmp_path / "t")
    assert follower.poll()
    assert follower.changed_kernels == {0, 1}
    assert not follower.poll()
    assert follower.changed_kernels == set()


def test_an_unfinished_line_waits_for_its_end(tmp_path: Path) -> None:
    (tmp_path / "event.log").write_text("[init] pid 4000000\n[init] epoch 12345678")
    follower = TraceFollower(tmp_path)
    assert follower.poll()
    assert follower.trace.state.epoch_ns is None
    with (tmp_path / "event.log").open("a") as file:
        file.write("90123456789\n")
    assert follower.poll()
    assert follower.trace.state.epoch_ns == 1234567890123456789


def test_only_kernels_that_were_touched_changed(tmp_path: Path) -> None:
    writer = TraceWriter(tmp_path / "t")
    writer.start()
    for index in range(3):
        writer.kernel(index, f"k{index}")
    follower = TraceFollower(writer.directory)
    follower.poll()
    assert follower.changed_kernels == {0, 1, 2}
    writer.launch(1)
    follower.poll()
    assert follower.changed_kernels == {1}


def test_kernels_that_were_pieced_together_are_forgotten(tmp_path: Path) -> None:
    """A log of tui-probe says so after lines that an older one may begin with."""
    writer = TraceWriter(tmp_path / "t")
    writer.lines("[exec] funcmap-not-find 0x10", "[exec] backup 2 1 1 block 32 1 1 shared 0")
    writer.lines(*["garbage " * 8] * 400)
    writer.start()
    writer.launch(0)
    follower = TraceFollower(writer.directory)
    follower.poll()
    assert follower.changed_kernels == {0}
    (kernel,) = follower.trace.kernels
    assert (kernel.name, kernel.launches, list(kernel.rows)) == ("?", 1, [1])


def test_a_log_that_was_replaced_starts_anew(tmp_path: Path) -> None:
    write_example(tmp_path / "t")
    follower = TraceFollower(tmp_path / "t")
    follower.poll()
    (tmp_path / "t" / "event.log").write_text("[init] pid 7\n")
    assert follower.poll()
    assert (follower.trace.state.pid, len(follower.trace.kernels), len(follower.trace.launches)) == (7, 0, 0)


def test_run_json_is_read_when_it_changes(tmp_path: Path) -> None:
    writer = TraceWriter(tmp_path / "t")
    writer.start()
    writer.run_json(ended=None, exit_status=None)
    follower = TraceFollower(writer.directory)
    follower.poll()
    assert follower.trace.state.exit_status is None
    writer.run_json(exit_status=3, started="2026-07-25T17:20:00.5+00:00")
    assert follower.poll()
    assert follower.trace.state.exit_status == 3
    assert follower.trace.run_info is not None
    assert follower.trace.run_info.probe == "block_sched"


def test_run_json_tells_the_end_of_the_command_and_of_no_other_process(tmp_path: Path) -> None:
    """A process without last words broke off, however the command ended."""
    writer = TraceWriter(tmp_path / "t")
    writer.start()
    writer.run_json(pid=1, exit_status=0)
    follower = TraceFollower(writer.directory)
    follower.poll()
    assert follower.trace.state.exit_status is None
    assert follower.trace.broke_off
    writer.lines("[exit] status 3", "[exit] launches 0 probed 0 dropped 0 reason -")
    follower.poll()
    assert follower.trace.state.exit_status == 3
    assert not follower.trace.broke_off


WAITING = [sys.executable, "-c", "print(flush=True); input()"]


@contextmanager
def waiting_process() -> Iterator[subprocess.Popen[bytes]]:
    """A process that has started and waits for a line."""
    with subprocess.Popen(WAITING, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        yield process
        process.communicate(b"\n")


def test_a_process_runs_until_it_is_gone(tmp_path: Path) -> None:
    """The process is a real one, so its command line can be compared with the log's."""
    writer = TraceWriter(tmp_path / "t")
    with waiting_process() as process:
        writer.start(pid=process.pid, command=" ".join(WAITING))
        follower = TraceFollower(writer.directory)
        follower.poll()
        assert follower.trace.state.is_running
    assert follower.poll()
    assert not follower.trace.state.is_running


def test_another_process_of_the_same_number_is_not_taken_for_it(tmp_path: Path) -> None:
    writer = TraceWriter(tmp_path / "t")
    writer.start(pid=os.getpid(), command="./something else")
    assert not open_trace(writer.directory).state.is_running


def test_an_assembler_that_ends_late_changes_its_kernel(tmp_path: Path) -> None:
    writer = TraceWriter(tmp_path / "t")
    with waiting_process() as process:
        writer.start(pid=process.pid, command=" ".join(WAITING))
        folder = writer.kernel(0, "f", registers=(18, 24), spills=(0, 4))
        log_text = (folder / "process.log").read_text()
        (folder / "process.log").write_text(log_text[: log_text.index("ptxas")])
        follower = TraceFollower(writer.directory)
        follower.poll()
        (kernel,) = follower.trace.kernels
        assert kernel.spills_probed is None
        assert not follower.poll()
        (folder / "process.log").write_text(log_text)
        assert follower.poll()
        assert follower.changed_kernels == {0}
        assert kernel.spills_probed == 8
        assert not follower.poll()
