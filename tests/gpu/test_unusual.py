"""Programs that reset the device, unload kernels that still run, write astray, leave no memory, or share the GPU."""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import pytest

from tui_probe.trace.follow import open_trace
from tui_probe.trace.model import Trace

from .conftest import PROGRAMS, Profiled, Runner, tool

WAYS = ("reset", "unload", "stray")
STATUS = {"stray": 3}
PROBES = ("block_sched", "dmat")


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The program, and its kernels as PTX and as machine code only."""
    nvcc = tool("nvcc")
    folder, source = tmp_path_factory.mktemp("unusual"), PROGRAMS / "unusual.ptx"
    subprocess.run(["cc", "-O2", "-o", folder / "unusual", PROGRAMS / "unusual.c", "-ldl"], check=True)
    shutil.copy(source, folder / "kernels.ptx")
    subprocess.run([nvcc, "-cubin", "-arch=sm_90", "-o", folder / "kernels.cubin", source], check=True)
    return folder


def command_of(made: Path, way: str, kind: str) -> list[str]:
    return [str(made / "unusual"), str(made / f"kernels.{kind}"), way]


def same(runner: Runner, command: list[str], *options: str) -> Trace:
    """The trace of a run that did what it does without tui-probe."""
    unprofiled = runner.unprofiled(command)
    profiled = runner.profiled(command, *options)
    assert profiled.outcome == unprofiled
    return open_trace(profiled.trace)


@pytest.mark.parametrize("probe", PROBES)
@pytest.mark.parametrize("kind", ["ptx", "cubin"])
@pytest.mark.parametrize("way", WAYS)
def test_unusual_program_behaves_the_same(way: str, kind: str, probe: str, made: Path, runner: Runner) -> None:
    trace = same(runner, command_of(made, way, kind), "-p", probe)
    assert trace.state.exit_status == STATUS.get(way, 0)
    for kernel in trace.kernels:
        print(f"GPU-UNUSUAL\t{way}\t{kind}\t{probe}\t{kernel.name}\t{kernel.status}\t{kernel.mode}\t"
              f"{kernel.launches_probed}/{kernel.launches}")  # fmt: skip
    print("GPU-UNUSUAL", trace.state.context_failed, trace.state.troubles)
    assert any(kernel.launches_probed for kernel in trace.kernels)
    if way == "stray":
        assert trace.state.context_failed is not None
        assert trace.state.context_failed.error == 700


@pytest.mark.skipif("PYTEST_XDIST_WORKER" in os.environ, reason="takes all memory: nothing else may run next to it")
def test_unusual_program_behaves_the_same_without_free_memory(made: Path, runner: Runner) -> None:
    trace = same(runner, command_of(made, "full", "ptx"), "-p", "block_sched")
    print("GPU-UNUSUAL full", [(kernel.launches_probed, kernel.launches) for kernel in trace.kernels])


def both(runner: Runner, made: Path) -> tuple[list[Profiled], str]:
    """Two profiled runs of a program at the same time, and its output without the profiler."""
    command = command_of(made, "steady", "ptx")
    unprofiled = runner.unprofiled(command)
    assert unprofiled.status == 0, unprofiled.stderr
    runners = [Runner(runner.folder / str(number)) for number in range(2)]
    for runner in runners:
        runner.folder.mkdir()
    with ThreadPoolExecutor(2) as pool:
        return list(pool.map(lambda each: each.profiled(command, "-p", "block_sched"), runners)), unprofiled.stdout


def recorded(profiled: Profiled) -> int:
    return sum(kernel.launches_probed for kernel in open_trace(profiled.trace).kernels)


def test_two_programs_share_the_gpu(made: Path, runner: Runner) -> None:
    runs, output = both(runner, made)
    assert [(run.outcome.status, run.outcome.stdout) for run in runs] == [(0, output)] * 2
    assert all(recorded(run) == 200 for run in runs)


@contextmanager
def mps(folder: Path) -> Iterator[None]:
    """The Multi-Process Service, for as long as the context lasts."""
    control = shutil.which("nvidia-cuda-mps-control")
    if control is None:
        pytest.skip("no nvidia-cuda-mps-control on this machine")
    places = {"CUDA_MPS_PIPE_DIRECTORY": str(folder / "pipe"), "CUDA_MPS_LOG_DIRECTORY": str(folder / "log")}
    for place in places.values():
        Path(place).mkdir()
    started = subprocess.run([control, "-d"], env=os.environ | places, capture_output=True, text=True, check=False)
    if started.returncode:
        pytest.skip(f"the service does not start: {started.stderr.strip()}")
    os.environ.update(places)
    try:
        time.sleep(1)
        yield
    finally:
        subprocess.run([control], input="quit\n", text=True, check=False, timeout=60)
        for place in places:
            del os.environ[place]


def test_programs_under_the_multi_process_service(made: Path, runner: Runner) -> None:
    with mps(runner.folder):
        plain = runner.unprofiled(command_of(made, "steady", "ptx"))
        if plain.status:
            pytest.skip(f"no program runs under the service here: {plain.stderr.strip()}")
        runs, output = both(runner, made)
        log = (runner.folder / "log" / "server.log").read_text(errors="replace")
    assert [(run.outcome.status, run.outcome.stdout) for run in runs] == [(0, output)] * 2
    assert all(recorded(run) == 200 for run in runs)
    print("GPU-MPS", log[-600:])
