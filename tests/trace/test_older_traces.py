"""Traces of existing systems: what their logs leave out is identified by what they have."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import pytest

from tests.trace.make import EPOCH_NS
from tests.trace.make_older import COMMAND, write_sized_only, write_unnamed
from tui_probe.trace.device_memory import read_parameters
from tui_probe.trace.follow import open_trace

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize("log", ["old", "new"])
@pytest.mark.parametrize("garbage", ["", " \udcffgarbage", "\0\0x"])
def test_the_command_is_as_long_as_the_log_says(tmp_path: Path, log: Literal["old", "new"], garbage: str) -> None:
    write_unnamed(tmp_path / "t", log=log, garbage=garbage)
    assert open_trace(tmp_path / "t").state.command == COMMAND


@pytest.mark.parametrize("sections", ["older", "current"])
def test_launches_have_numbers_times_and_parameters(tmp_path: Path, sections: Literal["older", "current"]) -> None:
    write_unnamed(tmp_path / "t", sections=sections)
    trace = open_trace(tmp_path / "t")
    assert [(launch.number, launch.time_ns) for launch in trace.launches] == [
        (number, EPOCH_NS + 1_000_000 * number) for number in range(3)
    ]
    assert (trace.state.epoch_ns, trace.state.zero_ns) == (None, EPOCH_NS)
    assert read_parameters(trace, 0, lambda _: None) == {
        0: b"7f0000000000 0", 1: b"7f0000000000 1", 2: b"7f0000000000 2",
    }  # fmt: skip
    assert read_parameters(trace, 1, lambda _: None) == {}


def test_a_launch_of_which_the_original_ran_is_one(tmp_path: Path) -> None:
    write_sized_only(tmp_path / "t")
    trace = open_trace(tmp_path / "t")
    (kernel,) = trace.kernels
    assert (trace.state.launches, trace.state.launches_probed) == (64, 0)
    assert (kernel.launches, kernel.launches_probed, kernel.probe_bytes) == (64, 0, 32)
    assert not any(launch.probed for launch in trace.launches)


def test_the_original_run_for_its_time_leaves_the_launch_probed(tmp_path: Path) -> None:
    writer = write_unnamed(tmp_path / "t", launches=1)
    writer.lines("[exec] backup 8 1 1 block 32 1 1 shared 0")
    (launch,) = open_trace(writer.directory).launches
    assert launch.probed


def test_a_launch_of_another_function_is_another_launch(tmp_path: Path) -> None:
    writer = write_unnamed(tmp_path / "t", launches=1)
    writer.lines("[exec] funcmap-find 0x99 fail", "[exec] backup 8 1 1 block 32 1 1 shared 0")
    assert [launch.probed for launch in open_trace(writer.directory).launches] == [True, False]


def test_the_files_that_are_there_are_counted(tmp_path: Path) -> None:
    writer = write_unnamed(tmp_path / "t", launches=9)
    (kernel,) = open_trace(writer.directory).kernels
    assert (kernel.result_files(), kernel.find_newest_result()) == (9, 8)
    for gone in ("8.250000.bin", "7.250000.bin"):
        (writer.directory / "result" / gone).unlink()
    assert (kernel.result_files(), kernel.find_newest_result()) == (7, 6)
    for file in (writer.directory / "result").iterdir():
        file.unlink()
    (writer.directory / "result").rmdir()
    assert (kernel.result_files(), kernel.find_newest_result()) == (0, 8)
