"""The process of the engine's server: it listens until it is asked to end, and says immediately what is wrong."""

from __future__ import annotations

import os
import pickle
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import ROOT
from tests.engine.kernels import HEADER, STORE
from tests.engine.test_server import kernel_directory
from tui_probe.engine.grafting.graft_gate import start_early_trial
from tui_probe.engine.reception import KernelNote, listen_at
from tui_probe.errors import LaunchError
from tui_probe.launcher.engine import Engine
from tui_probe.launcher.engine_process import finish_kernels
from tui_probe.launcher.options import RunOptions
from tui_probe.launcher.spool import PREFIX, short_folder
from tui_probe.own_python import own_environment
from tui_probe.probe_files.choices import choose_probes
from tui_probe.toolchain import Tool, find_tools

NOT_NEEDED = ("numpy", "importlib.metadata", "tui_probe.dsl", "tui_probe.probekit", "tui_probe.trace.event_types")


@pytest.fixture
def folder(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Folder of the engines' temporary folders; a short path, as a socket's must be."""
    with tempfile.TemporaryDirectory(dir="/tmp") as name:
        monkeypatch.setattr(tempfile, "tempdir", name)
        yield Path(name)


def engine(log: Path) -> Engine:
    probes = choose_probes(["block_sched"])
    return Engine(probes, RunOptions(command=("true",), probes=("block_sched",), trace_root=log.parent), False, log)


def test_engine_answers_until_asked_to_end(tmp_path: Path, folder: Path) -> None:
    serving = engine(tmp_path / "engine.log")
    try:
        with socket.socket(socket.AF_UNIX) as hook:
            hook.connect(str(serving.socket))
            hook.sendall(b"hello\t1\t1\n")
            assert hook.recv(100) == b"hello\t1\n"
        assert serving.failure() is None
        assert serving.cache_counts() == {"hits": 0, "misses": 0}
    finally:
        serving.stop()
    assert serving.messages() == ""
    assert list(folder.iterdir()) == []


@pytest.mark.usefixtures("folder")
def test_self_test_outlives_the_engine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A short program does not wait for it, and the next run has its outcome."""
    started, program = tmp_path / "started", tmp_path / "python"
    os.mkfifo(started)
    program.write_text(f"#!/bin/sh\necho $$ > {started}\nexec sleep 60\n")
    program.chmod(0o700)
    monkeypatch.setattr(sys, "executable", str(program))
    monkeypatch.setattr("tui_probe.engine.grafting.graft_gate.has_any_outcome", lambda *_: False)
    tool = Tool(Path("ptxas"), (13, 0), "13.0.88")
    monkeypatch.setattr("tui_probe.launcher.engine_process.start_early_trial", lambda _: start_early_trial([tool]))
    serving = engine(tmp_path / "engine.log")
    pid = int(started.read_text())
    serving.stop(0)
    os.kill(pid, signal.SIGKILL)  # raises ProcessLookupError if it has ended


def test_kernels_under_way_are_finished_after_the_engine(
    tmp_path: Path, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The engine is ended where it needs longer, and the cache has the kernel when its successor ends."""
    ptxas = next(iter(find_tools("ptxas")), None)
    if ptxas is None:
        pytest.skip("no ptxas")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    directory = kernel_directory(tmp_path, (HEADER + STORE).encode(), "k")
    program = tmp_path / "ptxas"
    program.write_text(f'#!/bin/sh\nwhile [ ! -e {tmp_path}/may_end ]; do sleep 0.01; done\nexec {ptxas.path} "$@"\n')
    program.chmod(0o700)
    monkeypatch.setattr("tui_probe.engine.assembler.find_tools", lambda _: [ptxas._replace(path=program)])
    left: list[tuple[Any, ...]] = []
    monkeypatch.setattr("tui_probe.launcher.engine.finish_later", lambda *work: left.append(work))
    serving = engine(tmp_path / "engine.log")
    with socket.socket(socket.AF_UNIX) as hook:
        hook.connect(str(serving.socket))
        hook.sendall(f"prepare\t1\t{directory}\tsm_90\tstore\t32\n".encode())
        while not list(folder.glob("*/under-way.*")):
            time.sleep(0.01)
        serving.stop()
    (tmp_path / "may_end").touch()
    (work,) = left
    assert work[-1] == [KernelNote(str(directory), "sm_90", "store")]
    before = sorted(path.name for path in directory.iterdir())
    finish_kernels(*pickle.loads(pickle.dumps(work)))
    assert sorted(path.name for path in directory.iterdir()) == before
    assert list(folder.iterdir()) == []
    assert list((tmp_path / "cache" / "tui-probe" / "kernels").glob("*.entry"))


@pytest.mark.parametrize("number", [signal.SIGALRM, signal.SIGTERM])
def test_assemblers_end_with_the_process_that_finishes_kernels(
    tmp_path: Path, folder: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    """At its time limit, too, also if the launcher ignores the signal."""
    started, program = tmp_path / "started", tmp_path / "bin" / "ptxas"
    os.mkfifo(started)
    program.parent.mkdir()
    program.write_text(
        '#!/bin/sh\ncase "$*" in --version) echo "Cuda compilation tools, release 99.0, V99.0.1" ;;\n'
        f"*) exec sleep 1000 > {started} ;; esac\n"
    )
    program.chmod(0o700)
    monkeypatch.setenv("CUDA_HOME", str(tmp_path))
    monkeypatch.setenv("TMPDIR", str(folder))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    directory = kernel_directory(tmp_path, (HEADER + STORE).encode(), "k")
    options = RunOptions(command=("true",), probes=("block_sched",), trace_root=tmp_path)
    command = 'trap "" ALRM TERM; exec "$0" -P -m tui_probe.launcher.engine_process'
    with subprocess.Popen(
        ["sh", "-c", command, sys.executable], stdin=subprocess.PIPE, env=own_environment(), start_new_session=True
    ) as finishing:
        assert finishing.stdin is not None
        with finishing.stdin:
            kernels = [KernelNote(str(directory), "sm_90", "store")]
            pickle.dump((options, choose_probes(["block_sched"]), kernels), finishing.stdin)
        with started.open("rb") as assemblers:
            finishing.send_signal(number)
            assert assemblers.read() == b""  # ends when the last of them does
        assert finishing.wait() == -signal.SIGKILL


def test_one_that_is_killed_is_started_again(tmp_path: Path, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tui_probe.launcher.engine.MAX_STARTS", 2)
    serving = engine(tmp_path / "engine.log")
    try:
        for turn in range(2):
            pid = serving.pid
            os.kill(pid, signal.SIGKILL)
            os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
            with socket.socket(socket.AF_UNIX) as hook:
                hook.connect(str(serving.socket))  # while there is none
                hook.sendall(b"hello\t1\t1\n")
                reply = serving.revive()
                if turn == 0:
                    assert reply is not None
                    assert reply.startswith("the probe engine ended with signal 9 (no message) and was restarted")
                    assert hook.recv(100) == b"hello\t1\n"
                else:
                    assert reply is None
        assert serving.failure() == "the probe engine ended with signal 9 (no message); later kernels ran unprobed"
    finally:
        serving.stop()
    assert list(folder.iterdir()) == []


@pytest.mark.usefixtures("folder")
def test_engine_that_cannot_start_leaves_no_socket(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A hook finds immediately that no one is there."""
    monkeypatch.setattr("tui_probe.launcher.engine.MAX_STARTS", 1)
    serving = engine(tmp_path / "engine.log")
    try:
        os.kill(serving.pid, signal.SIGKILL)
        os.waitid(os.P_PID, serving.pid, os.WEXITED | os.WNOWAIT)
        assert serving.revive() is None
        assert not serving.socket.exists()
    finally:
        serving.stop()


@pytest.mark.parametrize("broken", ["listen_at", "ForkedProcess"])
def test_nothing_is_left_of_an_engine_that_cannot_start(
    broken: str, tmp_path: Path, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise LaunchError("no room")

    monkeypatch.setattr(f"tui_probe.launcher.engine.{broken}", fail)
    with pytest.raises(LaunchError, match="no room"):
        engine(tmp_path / "engine.log")
    assert list(folder.iterdir()) == []


def test_socket_fits_wherever_the_temporary_folder_is(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Under the longest number of a process, too."""
    monkeypatch.setattr(os, "getpid", lambda: 4194304)
    for length in range(len(str(folder)) + 2, 110):
        long = folder / ("x" * (length - len(str(folder)) - 1))
        long.mkdir()
        monkeypatch.setattr(tempfile, "tempdir", str(long))
        with tempfile.TemporaryDirectory(prefix=PREFIX, dir=short_folder()) as own:
            listen_at(Path(own) / "engine").close()


@pytest.mark.parametrize("probe", ["block_sched", "gmem_sectors"])
def test_a_built_in_probe_is_read_without_what_shows_results(probe: str) -> None:
    program = (
        "import sys, tui_probe.launcher.engine_process\n"
        "from tui_probe.probe_files.loading import load_probe\n"
        f"load_probe({probe!r})\n"
        f"print([name for name in {NOT_NEEDED} if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, cwd=ROOT, check=True)
    assert done.stdout == "[]\n"
