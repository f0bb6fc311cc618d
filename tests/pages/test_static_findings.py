"""Findings that need no probe: grids that leave SMs idle, and spilled registers."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.trace.make import TraceWriter
from tui_probe.trace.follow import open_trace
from tui_probe.verdicts.static_findings import static_findings

if TYPE_CHECKING:
    from pathlib import Path

    from tui_probe.probekit.finding import Finding
    from tui_probe.trace.launch_shape import Dim3


def found(directory: Path, *grids: Dim3, sms: int = 132, simulated: bool = False, spills: int = 0) -> list[Finding]:
    """Findings of a kernel with 16 resident blocks per SM, launched with these grids."""
    writer = TraceWriter(directory / "trace")
    writer.start(sms=sms)
    writer.kernel(0, "kernel", spills=(spills, spills))
    for grid in grids:
        writer.launch(0, grid)
    trace = open_trace(writer.directory)
    trace.state.simulated = simulated
    return list(static_findings(trace.kernels[0]))


@pytest.mark.parametrize(
    ("blocks", "words"),
    [
        (4, "4 blocks leave 128 of the 132 SMs of the GPU idle"),
        (1, "1 block leaves 131 of the 132 SMs of the GPU idle"),
        (132 * 4, "528 blocks are 25% of one wave on the GPU (132 SMs × 16 resident blocks)"),
    ],
)
def test_grid_that_fills_a_quarter_stands_out(tmp_path: Path, blocks: int, words: str) -> None:
    (finding,) = found(tmp_path, (blocks, 1, 1))
    assert (finding.words, finding.stands_out) == (words, True)
    assert (finding.gain is None) == (blocks > 132)


def test_grid_that_fills_more_has_no_finding(tmp_path: Path) -> None:
    assert found(tmp_path, (133, 5, 1)) == []


def test_grid_of_the_usual_launch_decides(tmp_path: Path) -> None:
    (finding,) = found(tmp_path, (4, 1, 1), (4, 1, 1), (4, 1, 1), (4096, 1, 1))
    assert finding.numbers["blocks"] == 4
    assert found(tmp_path / "large", (4096, 1, 1), (4096, 1, 1), (4, 1, 1)) == []


def test_simulated_grid_is_judged_by_a_real_gpu_too(tmp_path: Path) -> None:
    """33 blocks are a quarter of an H100, and more than that of the simulated 8 SMs with 16 blocks each."""
    (finding,) = found(tmp_path, (33, 1, 1), sms=8, simulated=True)
    assert finding.words == "33 blocks leave 99 of the 132 SMs of an H100 idle"
    assert found(tmp_path / "more", (34, 1, 1), sms=8, simulated=True) == []
    assert found(tmp_path / "real", (33, 1, 1), sms=8) == []


def test_spilled_registers_are_a_finding(tmp_path: Path) -> None:
    (finding,) = found(tmp_path, (133, 5, 1), spills=96)
    assert (finding.key, finding.words) == ("spills", "192 B stored and loaded per thread, in addition to 18 registers")
