"""The tool harms no program: whatever the program does, it keeps its output, its exit status and its files, and soon.

What each program does, and what must hold, is in the file of its name. The GPU is a stub, so that each takes a second.
"""

from __future__ import annotations

import re
import signal
import time
from pathlib import Path

import pytest

from tests.attack.conftest import Start
from tests.hook.conftest import Host, Run
from tests.turns import due_pairs


def counts(run: Run) -> dict[str, int]:
    """The numbers of the last line of event.log."""
    (end,) = run.lines(r"\[exit\] launches")
    return {name: int(number) for name, number in re.findall(r"(launches|probed|dropped) (\d+)", end)}


def test_a_limit_of_file_sizes_ends_no_program(host: Host, start: Start) -> None:
    run = host.finish(start("file_limit"))
    assert (run.status, run.stdout, run.stderr) == (0, "done\n", "")
    assert (run.directory / "event.log").stat().st_size == 6000


@pytest.mark.parametrize("numbers", ["over", "next"])
def test_a_program_that_closes_all_descriptors_has_its_own_files(
    host: Host, start: Start, tmp_path: Path, numbers: str
) -> None:
    mine = tmp_path / "mine"
    run = host.finish(start("closed_descriptors", numbers, str(mine)))
    assert (run.status, run.stdout, run.stderr) == (0, "done\n", "")
    assert mine.read_text() == "mine"
    assert run.lines(r"\[exec\] descriptors-closed")
    assert run.lines(r"\[exec\] backup .* reason the program closed file descriptors of tui-probe$")
    assert len(run.results) == 20
    assert counts(run)["launches"] == 60


PATIENT = 40  # seconds that the hook may wait for what is left, where nothing keeps it from waiting


def check_patience_was_not_used_up(run: Run) -> None:
    """The hook gave up after less than it may wait, or had nothing to give up."""
    assert all(0 < waited < PATIENT * 1000 for waited in run.milliseconds_given_up)


def check_that_nothing_is_lost_silently(run: Run, *, others: int = 0) -> None:
    """``others`` threads may be in the middle of a launch, which counts when it begins."""
    count = counts(run)
    saved = len(run.lines(r"\[exec\] save "))
    assert saved <= len(run.results) <= saved + 1  # the process may end between a file and its line
    assert count["dropped"] + len(run.results) + others >= count["probed"] >= 200
    if count["dropped"]:
        assert run.codes[-1] == "no-time"


@pytest.mark.parametrize(
    ("interrupted", "microseconds"),
    due_pairs(["launch", "malloc", "threads"], ["1000", "3100", "7300", "20000"]),
)
def test_exit_in_handler_waits_for_no_lock(host: Host, start: Start, interrupted: str, microseconds: str) -> None:
    run = host.finish(start("exit_in_handler", interrupted, microseconds, TUI_PROBE_EXIT_TIMEOUT=str(PATIENT)))
    assert (run.status, run.stderr) == (7, "")
    check_patience_was_not_used_up(run)
    check_that_nothing_is_lost_silently(run, others=interrupted == "threads")


@pytest.mark.parametrize(("way", "delay"), due_pairs(["exit", "_exit"], [0.0, 0.05, 0.3, 0.7]))
def test_a_signal_during_the_last_flush(host: Host, start: Start, slow_disk: str, way: str, delay: float) -> None:
    process = start("ends_twice", way, "0", LD_PRELOAD=slow_disk, SLOW_DISK="20", TUI_PROBE_EXIT_TIMEOUT=str(PATIENT))
    assert process.stdout
    assert process.stdout.readline() == "up\n"
    time.sleep(delay)
    process.send_signal(signal.SIGTERM)
    run = host.finish(process)
    assert run.status in {0, -signal.SIGTERM}
    check_patience_was_not_used_up(run)
    check_that_nothing_is_lost_silently(run)


@pytest.mark.parametrize("way", ["exit", "_exit"])
def test_two_threads_that_end_the_program(host: Host, start: Start, slow_disk: str, way: str) -> None:
    run = host.finish(start("ends_twice", way, "100000", LD_PRELOAD=slow_disk, SLOW_DISK="5"))
    assert (run.status, run.stdout, run.stderr) == (0, "up\n", "")
    check_that_nothing_is_lost_silently(run)
    assert counts(run)["dropped"] == 0


def test_a_program_whose_first_thread_leaves_ends_with_its_last_one(host: Host, start: Start) -> None:
    run = host.finish(start("main_leaves"))
    assert (run.status, run.stdout, run.stderr) == (0, "done\n", "")
    assert (counts(run), len(run.results)) == ({"launches": 30, "probed": 30, "dropped": 0}, 30)


DEATHS = {"abort": signal.SIGABRT, "fault": signal.SIGSEGV, "thread": signal.SIGSEGV}
DEATHS |= {str(number.value): number for number in (signal.SIGUSR1, signal.SIGALRM, signal.SIGFPE, signal.SIGTERM)}


@pytest.mark.parametrize("way", DEATHS)
def test_pending_results_are_saved_before_program_dies(host: Host, start: Start, way: str) -> None:
    run = host.finish(start("dies", way))
    assert (run.status, run.stderr) == (-DEATHS[way], "")
    assert run.milliseconds_given_up == []
    check_that_nothing_is_lost_silently(run)
    assert counts(run) == {"launches": 200, "probed": 200, "dropped": 0}


def test_a_program_whose_stack_is_full_dies_as_without_the_tool(host: Host, start: Start) -> None:
    run = host.finish(start("dies", "stack"))
    assert (run.status, run.stderr) == (-signal.SIGSEGV, "")


def test_a_handler_that_comes_after_ours_is_the_programs(host: Host, start: Start) -> None:
    run = host.finish(start("dies", "handler"))
    assert (run.status, run.stderr) == (3, "")
    assert counts(run) == {"launches": 200, "probed": 200, "dropped": 0}
