"""First section of a run's report: losses ranked by their share of the kernel times the kernel's share of the run."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.recorded import H200, unpacked
from tui_probe.pages.run_report import LOSSES_TITLE, first_look, ranked_losses, run_report
from tui_probe.probekit.finding import Finding, Gain
from tui_probe.probekit.page_kinds import ViewSource
from tui_probe.trace.follow import open_trace
from tui_probe.trace.model import KernelFacts
from tui_probe.verdicts.findings import findings_by_probe
from tui_probe.verdicts.kernel_findings import KernelFinding
from tui_probe.verdicts.run_findings import KernelBound, kernel_bounds

if TYPE_CHECKING:
    from pathlib import Path

    from tui_probe.trace.model import Kernel, Trace


@pytest.fixture
def trace(tmp_path: Path) -> Trace:
    return open_trace(unpacked(H200 / "dmat", tmp_path))


def losses(trace: Trace, cells: int = 200) -> list[str]:
    return first_look(trace, kernel_bounds(trace).kernels, cells)


def test_first_look_names_kernel_line_and_fix(trace: Trace) -> None:
    lines = losses(trace)
    strided = next(place for place, line in enumerate(lines) if "#2 strided_store  uncoalesced" in line)
    assert lines[strided].startswith("! ")
    assert "st.global.u32 PTX:32 strided_store.cu:4, 8.0 sectors" in lines[strided]
    assert lines[strided + 1].startswith("      fix: ")
    assert lines[-1].startswith("all lines of a kernel: tui-probe show lines")


def test_first_look_stands_above_the_table(trace: Trace) -> None:
    text = run_report(trace, width=160)
    assert text.index(LOSSES_TITLE) < text.index("Probed kernels: ")


def test_first_look_reads_nothing_out_of_time(trace: Trace) -> None:
    run = kernel_bounds(trace, seconds=-1)
    assert (run.kernels, run.unread) == ([], 7)


def test_first_look_is_absent_without_losses(trace: Trace) -> None:
    quiet = Finding("slots", "slots", "all run")
    assert first_look(trace, [bound(trace.kernels[0], 1.0, ("block_sched", quiet))], 100) == []


def line_finding(part: float, *, stands_out: bool = True) -> Finding:
    return Finding("worst", "worst", f"{part:.0%}", "lines", 7, stands_out, gain=Gain(part, 1, "cycles"))


def bound(kernel: Kernel, share: float | None, *findings: tuple[str, Finding]) -> KernelBound:
    return KernelBound(
        kernel, share, tuple(KernelFinding(kernel, finding, probe, share=share) for probe, finding in findings)
    )


def test_losses_rank_by_share_of_kernel_times_share_of_run(trace: Trace) -> None:
    small, large = trace.kernels[0], trace.kernels[1]
    ranked = ranked_losses([bound(small, 0.04, ("a", line_finding(0.9))), bound(large, 0.96, ("a", line_finding(0.3)))])
    assert [loss.kernel for loss in ranked] == [large, small]
    unknown = ranked_losses(
        [bound(small, None, ("a", line_finding(0.3))), bound(large, None, ("a", line_finding(0.9)))]
    )
    assert [loss.kernel for loss in unknown] == [large, small]


def test_flagged_loss_ranks_above_an_unflagged_one(trace: Trace) -> None:
    small, large = trace.kernels[0], trace.kernels[1]
    quiet = bound(large, 0.96, ("a", line_finding(0.09, stands_out=False)))
    unsized = Finding("tail", "tail", "long", stands_out=True)
    for flagged in (line_finding(0.5), unsized):
        ranked = ranked_losses([quiet, bound(small, 0.04, ("a", flagged))])
        assert [loss.kernel for loss in ranked] == [small, large]
    ranked = ranked_losses([bound(large, 0.96, ("a", unsized)), bound(small, 0.04, ("a", line_finding(0.5)))])
    assert [loss.kernel for loss in ranked] == [large, small]


def test_negligible_gain_is_not_flagged(trace: Trace, monkeypatch: pytest.MonkeyPatch) -> None:
    strided = trace.kernels[2]
    monkeypatch.setattr(KernelFacts, "time_share", 0.1)
    assert flags(strided) == [True, False, True]
    monkeypatch.setattr(KernelFacts, "time_share", 0.01)
    assert flags(strided) == [False, False, False]


def flags(kernel: Kernel) -> list[bool]:
    return [
        finding.stands_out
        for of_probe in findings_by_probe(ViewSource(kernel.trace, kernel))
        for finding in of_probe.findings
    ]


def test_losses_name_each_loss_once(trace: Trace) -> None:
    kernel, located = trace.kernels[0], line_finding(0.5)
    total = Finding("all", "all", "in all", stands_out=True)
    asking = Finding("memory", "memory", "more than needed", stands_out=True, next_question="coalescing")
    findings = (("gmem_sectors_by_line", located), ("gmem_sectors_by_line", total), ("what_limits", asking))
    assert ranked_losses([bound(kernel, 1.0, *findings)]) == [
        KernelFinding(kernel, located, "gmem_sectors_by_line", share=1.0)
    ]
    lines = first_look(trace, [bound(kernel, 1.0, findings[2])], 100)
    assert lines[1].strip() == "which loads and stores are uncoalesced? run -p gmem_sectors_by_line"
