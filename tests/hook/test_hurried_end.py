"""A program that is asked to end does so immediately, no matter what there is left to write: the rest is counted."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from .conftest import Host, Run, compile_c

HERE = Path(__file__).resolve().parent
PATIENT = 40  # seconds that the hook may wait for what is left, unless someone asks the program to end
LAUNCHES = "context()\nf = function(module(), 'add__8')\nw = word()\nfor _ in range(300): launch(f, w)\n"
REASON = "the program ended before the result was written"


@pytest.fixture(scope="module")
def slow_disk(tmp_path_factory: pytest.TempPathFactory) -> Path:
    library = tmp_path_factory.mktemp("slow") / "slow_disk.so"
    compile_c(HERE / "slow_disk.c", library, "-shared")
    return library


def started(host: Host, library: Path, milliseconds: int, script: str, **more: str) -> subprocess.Popen[str]:
    """A program that has said that it is up, on a disk that takes so long for each write."""
    environment = {"LD_PRELOAD": f"{library} {host.built.hook}", "SLOW_DISK": str(milliseconds)}
    environment |= {"TUI_PROBE_EXIT_TIMEOUT": str(PATIENT)} | more
    process = host.start([sys.executable, "-c", f"from host import *\nimport signal, sys\n{script}"], **environment)
    assert process.stdout
    assert process.stdout.readline() == "up\n"
    return process


def ended(host: Host, process: subprocess.Popen[str], number: int) -> Run:
    """The run that a signal ends, before the hook has waited for as long as it may."""
    process.send_signal(number)
    run = host.finish(process)
    assert all(0 < waited < PATIENT * 1000 for waited in run.milliseconds_given_up)
    return run


def counts(run: Run) -> dict[str, int]:
    (end,) = run.lines(r"\[exit\] launches")
    return {name: int(number) for name, number in re.findall(r"(launches|probed|dropped) (\d+)", end)}


def check_what_is_kept(run: Run, launches: int = 300) -> None:
    """Written results are complete and in the log; the rest is counted."""
    count = counts(run)
    assert count["launches"] == count["probed"] == launches
    assert count["dropped"] + len(run.lines(r"\[exec\] save ")) == launches
    assert len(run.results) == len(run.lines(r"\[exec\] save "))
    assert run.lines(rf"\[exit\] launches .* reason {REASON}$")
    assert run.codes[-1] == "no-time"


UP = "print('up', flush=True)\n"
WAIT = "wait_for(lambda: logged('[exec] save ') > 2)\n" + UP + "time.sleep(60)"


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_backlog_is_left_at_a_signal(host: Host, slow_disk: Path, number: signal.Signals) -> None:
    run = ended(host, started(host, slow_disk, 30, LAUNCHES + WAIT), number)
    assert run.status == -number
    check_what_is_kept(run)
    assert len(run.results) > 2
    assert not list((run.directory / "result").glob(".*"))
    assert run.lines(r"\[exit\] gave up waiting for kernels and results after \d+ ms")
    assert run.lines(rf"\[exit\] signal {number}")


def test_a_signal_while_the_program_waits_for_its_last_results(host: Host, slow_disk: Path) -> None:
    process = started(host, slow_disk, 30, LAUNCHES + UP)
    time.sleep(1)
    run = ended(host, process, signal.SIGTERM)
    assert run.status in {0, -signal.SIGTERM}
    check_what_is_kept(run)


def test_a_program_that_handles_the_signal_and_a_launcher_that_tells(host: Host, slow_disk: Path) -> None:
    mark = host.directory / "ending"
    script = f"signal.signal(signal.SIGTERM, lambda *_: sys.exit(9))\n{LAUNCHES}{WAIT}"
    process = started(host, slow_disk, 30, script, TUI_PROBE_ENDING=str(mark))
    mark.touch()
    run = ended(host, process, signal.SIGTERM)
    assert run.status == 9
    check_what_is_kept(run)


def test_a_program_that_nobody_asks_to_end_keeps_all(host: Host, slow_disk: Path) -> None:
    process = started(host, slow_disk, 5, LAUNCHES + UP, TUI_PROBE_ENDING=str(host.directory / "ending"))
    run = host.finish(process)
    assert (run.status, len(run.results)) == (0, 300)
    assert run.lines(r"\[exit\] launches 300 probed 300 dropped 0 reason -")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_disk_that_hangs(host: Host, slow_disk: Path, number: signal.Signals) -> None:
    """The file under way is counted, too, and no reader takes it for a result. Python sends SIGINT to itself again."""
    run = ended(host, started(host, slow_disk, 50_000, LAUNCHES + UP + "time.sleep(60)"), number)
    assert run.status == -number
    assert (counts(run)["dropped"], run.results) == (300, [])
    check_what_is_kept(run)


def test_a_gpu_that_is_not_done(host: Host, slow_disk: Path) -> None:
    process = started(host, slow_disk, 0, LAUNCHES + UP + "time.sleep(60)", STUB_SLOW="600000")
    run = ended(host, process, signal.SIGTERM)
    assert run.status == -signal.SIGTERM
    assert counts(run)["dropped"] == 300
    check_what_is_kept(run)
