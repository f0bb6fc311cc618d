"""Small things that once went wrong: numbers that are not numbers, processes that are other ones, words for no one."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from tests.engine.kernels import entry
from tests.trace.make import result_bytes
from tui_probe.engine.ptx_target import can_reduce
from tui_probe.errors import ProbeError, TraceError
from tui_probe.evals.overhead.costs import read_study
from tui_probe.launcher.spool import NAME, Spool, living_runs
from tui_probe.nsight.importers.ncu import read_ncu
from tui_probe.probes.block_sched.analysis import block_times_in_parts, timeline_of
from tui_probe.probes.dmat.accesses import read_accesses
from tui_probe.ptx.parser import parse
from tui_probe.records import warp_pace
from tui_probe.records.counter_sums import warp_records
from tui_probe.simgpu import protocol
from tui_probe.simgpu.executor import DeviceMemory, Machine
from tui_probe.simgpu.modules import LoadedModule
from tui_probe.simgpu.protocol import pack
from tui_probe.simgpu.server import Server
from tui_probe.trace.device_memory import LaunchMemory
from tui_probe.trace.locate import parse_address
from tui_probe.trace.results import Result, read_result


def test_a_run_whose_launcher_was_killed_does_not_live_again(tmp_path: Path) -> None:
    """Another process that has its number is not it."""
    spool = Spool(tmp_path)
    assert living_runs(tmp_path) == [os.getpid()]
    left = tmp_path / f"{NAME}1"
    left.mkdir()
    (left / "start").write_text("1234567890123")
    assert living_runs(tmp_path) == [os.getpid()]
    spool.remove()
    assert living_runs(tmp_path) == []


@pytest.mark.parametrize("target", ["sm_8²", "sm_90²", "sm_²", "sm_٨٠"])
def test_a_target_with_digits_that_are_none(target: str) -> None:
    text = f".version 8.0\n.target {target}\n.address_size 64\n{entry('ret;')}"
    try:
        module = parse(text)
    except ProbeError:
        return
    assert can_reduce(module) in (True, False)


def test_other_numbers_with_such_digits(tmp_path: Path) -> None:
    path = tmp_path / "page.csv"
    path.write_text(
        '"ID","Process ID","Process Name","Host Name","Kernel Name","Context","Stream","Block Size","Grid Size",'
        '"Device","CC","Section Name","Metric Name","Metric Unit","Metric Value"\n'
        '"²","1","a","h","k","1","7","(1, 1, 1)","(1, 1, 1)","0","9.0","","dram__bytes.sum","byte","1"\n'
    )
    with pytest.raises(ProbeError):
        read_ncu([path])
    assert parse_address("trace:²").kernel == "²"


def test_a_mistake_in_the_simulated_gpu_is_an_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> LoadedModule:
        raise RecursionError("too deep")

    monkeypatch.setattr(LoadedModule, "from_image", fail)
    server = Server(DeviceMemory(np.zeros(64, np.uint8), 1 << 40), Machine())
    numbers = {kind: number for number, kind in protocol.REQUESTS.items()}
    status, answer = server.answer(numbers[protocol.LoadRequest], pack(protocol.LoadRequest(b"x")))
    assert status is protocol.Status.NOT_SUPPORTED
    assert isinstance(answer, protocol.Failure)
    assert "RecursionError: too deep" in answer.message


def test_a_server_whose_program_takes_no_answer_says_nothing() -> None:
    """As when a program is killed in the middle of a launch."""
    ours, theirs = socket.socketpair()
    program = (
        "import os, socket, sys\n"
        "from tui_probe.simgpu.server import Server\n"
        "from tui_probe.simgpu import server\n"
        "server.exit_when_closed = lambda connection: None\n"
        f"os.dup2({theirs.fileno()}, server.SOCKET_DESCRIPTOR)\n"
        "memory = os.memfd_create('memory')\n"
        "os.ftruncate(memory, 4096)\n"
        "os.dup2(memory, server.MEMORY_DESCRIPTOR)\n"
        "server.serve_process('memory_address=1099511627776,memory_bytes=4096,sm_count=2')\n"
    )
    with ours, theirs:
        ours.shutdown(socket.SHUT_RD)
        done = subprocess.run(
            [sys.executable, "-c", program], pass_fds=[theirs.fileno()], capture_output=True, text=True, timeout=60
        )
    assert (done.returncode, done.stderr) == (0, "")


def test_a_study_that_nests_without_end_is_none(tmp_path: Path) -> None:
    path = tmp_path / "study.toml"
    path.write_text("kernel = " + "[" * 20_000)
    with pytest.raises(TraceError, match="is not a study"):
        read_study(path)


@pytest.mark.parametrize(
    "analyse",
    [
        lambda result: list(block_times_in_parts(result)),
        timeline_of,
        warp_pace.analyse,
        warp_pace.launch_times,
        lambda result: warp_records(result, np.dtype("<u4"), "gmem_bytes"),
        lambda result: read_accesses(result, compact=False, memory=LaunchMemory(), simulated=True),
    ],
)
@pytest.mark.parametrize("divisors", [(32, 32, 32), (32, 1, 1), (1, 32, 1)])
def test_slots_of_no_bytes(tmp_path: Path, analyse: Callable[[Result], object], divisors: tuple[int, ...]) -> None:
    path = tmp_path / "1.000000.bin"
    maps = [(divisor, np.zeros((2, 64 // divisor, 0), np.uint8)) for divisor in divisors]
    path.write_bytes(result_bytes((2, 1, 1), (64, 1, 1), maps))
    with pytest.raises(TraceError):
        analyse(read_result(path))
