"""``run --memusage`` on the simulated GPU: the memory of probes, without the probes."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from tui_probe.trace.follow import open_trace

from .conftest import EXAMPLE, SAXPY

if TYPE_CHECKING:
    from pathlib import Path

    from .conftest import Tool

SHARING = [*SAXPY, "--kernel", "matmul"]
"""A kernel without shared memory and one with it."""
MEMORY = re.compile(r"\[exec\] probe-mem (\d+) \(bytes\)")


def memory(directory: Path) -> list[int]:
    """Return the memory of each launch in the log, as scripts read it: the third word."""
    lines = (directory / "event.log").read_text().splitlines()
    return [int(line.split()[2]) for line in lines if MEMORY.match(line)]


@pytest.mark.parametrize("probe", ["block_sched", "gmem_bytes", "tensorop_count"])
def test_memory_is_that_of_a_probed_run_and_nothing_is_probed(tool: Tool, probe: str) -> None:
    command = EXAMPLE if probe == "block_sched" else SHARING
    result, probed = tool.run(command, "-p", probe, "--launches", "all")
    assert result.returncode == 0
    sized_result, sized = tool.run(command, "-p", probe, "--memusage")
    assert (sized_result.returncode, sized_result.stdout) == (0, result.stdout)
    assert memory(sized) == memory(probed) != []
    trace = open_trace(sized)
    assert not list((sized / "result").glob("*.bin"))
    assert trace.state.launches_probed == 0
    assert "only-sized" in (sized / "event.log").read_text()
    for kernel, other in zip(trace.kernels, open_trace(probed).kernels, strict=True):
        assert kernel.probe_bytes == other.probe_bytes
        assert kernel.device_bytes is None or kernel.device_bytes >= (kernel.probe_bytes or 0)


def test_a_dynamic_map_is_counted(tool: Tool) -> None:
    """The first launch takes as much as a probed run does once the number of records is known."""
    result, probed = tool.run(EXAMPLE, "-p", "dmat", "--launches", "all")
    sized_result, sized = tool.run(EXAMPLE, "-p", "dmat", "--memusage")
    assert (sized_result.returncode, sized_result.stdout) == (result.returncode, result.stdout) == (0, result.stdout)
    known = {kernel.name: kernel.probe_bytes for kernel in open_trace(probed).kernels}
    counted = {kernel.name: kernel.probe_bytes for kernel in open_trace(sized).kernels}
    assert counted == known
    assert any(counted.values())
    assert "code only-counted" in (sized / "event.log").read_text()
    assert not list((sized / "result").glob("*.bin"))


def test_a_run_that_saves_no_results_says_so(tool: Tool) -> None:
    for option, words in (
        ("--memusage", "--memusage does not probe kernels: run without --memusage"),
        ("--benchmark", "--benchmark saves no results: add --save-results"),
    ):
        result, trace = tool.run(SAXPY, "-p", "block_sched", option)
        assert result.returncode == 0
        assert not list((trace / "result").iterdir())
        shown = tool("show", "blocks", f"{trace}:0")
        assert words in shown.stdout + shown.stderr
