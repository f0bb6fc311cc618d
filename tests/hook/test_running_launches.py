"""Launches that run at an interrupt: which of them the hook notes, so that the launcher ends the program."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from .conftest import Build
from .object_files import compile_with_hook

HERE = Path(__file__).resolve().parent
Round = tuple[int, int, int]
"""Time in ms, interrupts so far, and 1 if the process ends. The launch began at 1000 ms."""


@pytest.fixture(scope="module")
def program(built: Build, tmp_path_factory: pytest.TempPathFactory) -> Path:
    output = tmp_path_factory.mktemp("running") / "running"
    compile_with_hook(built, HERE / "running_program.c", output, "-g", "-O1", "-fsanitize=address,undefined")
    return output


def lines(program: Path, rounds: list[Round], *watchdog: str) -> list[str]:
    rows = "\n".join(" ".join(map(str, row)) for row in rounds)
    done = subprocess.run([program, *watchdog], input=rows, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return [" ".join(line.split()[:7]) for line in done.stdout.splitlines()]


LOGGED = "[stuck] launch 7 kernel 0 seconds"


def test_interrupts_of_a_launch_within_the_limit_are_not_noted(program: Path) -> None:
    """The program may handle both; they do not count later, when the launch has run for longer."""
    assert lines(program, [(3000, 1, 0), (4000, 2, 0), (10999, 2, 0)]) == []
    assert lines(program, [(3000, 1, 0), (4000, 2, 0), (11000, 2, 0), (60000, 2, 0)]) == [f"{LOGGED} 10.0"]


def test_second_interrupt_after_the_limit_is_noted(program: Path) -> None:
    first = [(3000, 1, 0), (12000, 1, 0)]
    assert lines(program, [*first, (13000, 2, 0), (14000, 2, 0)]) == [f"{LOGGED} 11.0", "note interrupted 2 7"]
    handled = [(3000, 1, 0), (4000, 2, 0), (5000, 3, 0), (12000, 3, 0)]
    assert lines(program, [*handled, (13000, 4, 0)]) == [f"{LOGGED} 11.0", "note interrupted 2 7"]
    both = [(12000, 0, 0), (13000, 1, 0), (14000, 2, 0)]
    assert lines(program, both) == [f"{LOGGED} 11.0", "note interrupted 1 7", "note interrupted 2 7"]


def test_interrupts_before_the_launch_do_not_count(program: Path) -> None:
    earlier = [(500, 3, 0), (12000, 3, 0)]
    assert lines(program, [*earlier, (13000, 4, 0)]) == [f"{LOGGED} 11.0", "note interrupted 1 7"]


def test_launch_at_the_end_of_the_process_is_logged_once(program: Path) -> None:
    assert lines(program, [(1200, 0, 1)]) == []
    assert lines(program, [(2500, 1, 1), (2600, 1, 1)]) == [f"{LOGGED} 1.5"]


def test_interrupt_in_a_run_with_a_watchdog_is_noted_at_once(program: Path) -> None:
    rounds = [(1100, 1, 0), (1300, 1, 0), (1400, 2, 0)]
    assert lines(program, rounds, "600000") == [f"{LOGGED} 0.3", "note interrupted 1 7", "note interrupted 2 7"]
