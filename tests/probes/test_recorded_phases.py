"""Phases of SASS measured on an NVIDIA H200 (driver 580, CUDA 13.0): a pipeline of two copies, and one sampled.

Programs: ``kv_pipeline.cu`` and ``planted_phases.cu`` in ``tests/gpu/programs``, built without PTX.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.recorded import H200, unpacked
from tui_probe.draw.view import Document, no_progress
from tui_probe.pages.views import kind_of
from tui_probe.probekit.measured import analyse_results
from tui_probe.probekit.page_kinds import ViewSource
from tui_probe.probes.phases.analysis import LaunchPhases
from tui_probe.probes.phases.waits import Wait, waits_of
from tui_probe.trace.follow import open_trace

if TYPE_CHECKING:
    from pathlib import Path


def waits_by_launch(name: str, folder: Path) -> list[list[Wait]]:
    """The waits of consumers for the producer, longest first, of each launch."""
    trace = open_trace(unpacked(H200 / name, folder))
    launches = []
    (kernel,) = [kernel for kernel in trace.kernels if kernel.status == "probed"]
    for result in analyse_results(trace, kernel):
        assert isinstance(result.analysis, LaunchPhases)
        waits = [wait for wait in waits_of(result.analysis) if wait.role == "consumer" and wait.partner == "producer"]
        launches.append(sorted(waits, key=lambda wait: -wait.share))
    return launches


def test_late_copy_of_two_is_named_by_its_tensor(tmp_path: Path) -> None:
    """K is late in the first launch, V in the second: each tile has one signal per copy."""
    launches = waits_by_launch("phases_sass", tmp_path)
    assert [waits[0].phase.tensors for waits in launches] == [("param 1",), ("param 2",)]
    for late, prompt in launches:
        assert (late.by_order, late.signal_count, late.stages_ahead) == (True, 128, 0)
        assert late.late_share == pytest.approx(0.92, abs=0.03)
        assert (prompt.by_order, prompt.signal_count) == (True, 128)
        assert prompt.share < 0.1 * late.share


def test_sampled_rounds_are_matched_with_their_copies(tmp_path: Path) -> None:
    launches = waits_by_launch("phases_every_8", tmp_path)
    assert [len(waits) for waits in launches] == [1, 1, 1]
    for (wait,) in launches:
        assert (wait.by_order, wait.signal_count) == (True, 8)
    assert [wait.late_share for (wait,) in launches] == pytest.approx([0.79, 0.93, 0.96], abs=0.01)


def test_enter_opens_the_sass_of_a_kernel_without_ptx(tmp_path: Path) -> None:
    trace = open_trace(unpacked(H200 / "phases_sass", tmp_path))
    (kernel,) = [kernel for kernel in trace.kernels if kernel.status == "probed"]
    view = kind_of("phases").open(ViewSource(trace, kernel), no_progress)
    assert isinstance(view, Document)
    targets = (view.target(number, 100) for number in range(len(view.lines(100))))
    spot = next(target for target in targets if target is not None)
    assert view.target_view() == "sass"
    code = kind_of("sass").open(ViewSource(trace, kernel), no_progress)
    assert isinstance(code, Document)
    assert code.place_of(spot.ptx[0], 100) is not None
