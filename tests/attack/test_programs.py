"""The tool harms no program: whatever it does, it has its output, its exit status and its files, and soon.

What each program does, and what must hold, is in the file of its name. The GPU is a stub, so that each takes a second.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.attack.conftest import Start
from tests.hook.conftest import Host, Run


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
    assert run.lines(r"\[exec\] backup .* reason the program has closed file descriptors that it did not open$")
    assert len(run.results) == 20
    assert counts(run)["launches"] == 60
