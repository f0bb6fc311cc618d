"""The end of a run's report: the lines that stand out in all kernels."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.recorded import H200, SIMULATED, unpacked
from tui_probe.pages import hotspot as module
from tui_probe.pages.hotspot import flagged_lines
from tui_probe.pages.run_report import run_report
from tui_probe.trace.follow import open_trace

if TYPE_CHECKING:
    from pathlib import Path

    from tui_probe.probekit.page_kinds import ViewSource
    from tui_probe.trace.model import Trace


@pytest.fixture
def trace(tmp_path: Path) -> Trace:
    return open_trace(unpacked(H200 / "dmat", tmp_path))


def test_outliers_come_first_with_kernel_and_line(trace: Trace) -> None:
    first, second, third, *_ = flagged_lines(trace, 200)
    assert first.startswith("! #2 strided_store  worst access: st.global.u32 PTX:32 strided_store.cu:4, 8.0 sectors")
    assert second.startswith("! #4 matmul")
    assert third.startswith("  #6 softmax")


def test_page_ends_the_report(trace: Trace) -> None:
    section = run_report(trace, width=160).rpartition("Where to look first: the worst lines\n")[2]
    assert [line.strip() for line in section.splitlines()] == [line.strip() for line in flagged_lines(trace, 158)]


def test_no_more_results_are_read_than_is_allowed(trace: Trace, monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[int] = []
    real = module.launch_findings

    def noted(source: ViewSource) -> object:
        read.append(source.kernel.index)
        return real(source)

    monkeypatch.setattr(module, "launch_findings", noted)
    monkeypatch.setattr(module, "MAX_KERNELS_READ", 3)
    assert any("strided_store" in line for line in flagged_lines(trace, 200))
    assert read == [0, 1, 2]
    assert flagged_lines(trace, 200, seconds=-1) == []
    assert len(read) == 3


def test_a_probe_that_tells_of_no_lines_has_no_such_section(tmp_path: Path) -> None:
    trace = open_trace(unpacked(SIMULATED / "block_sched", tmp_path))
    assert flagged_lines(trace, 200) == []
    assert "worst lines" not in run_report(trace)
