"""A kernel that no unit limits, and whose warps wait for each other, leads to the question which warps wait."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from tests.analysis.test_limits import CYCLES, H200, NOTHING
from tests.trace.make import TraceWriter
from tui_probe.pages.findings_page import open_questions
from tui_probe.probekit.page_kinds import ViewSource
from tui_probe.trace.follow import open_trace
from tui_probe.verdicts import limiter
from tui_probe.verdicts.findings import findings_by_probe
from tui_probe.verdicts.kernel_findings import LIMITER_KEY, kernel_findings
from tui_probe.verdicts.limiter import kernel_limiter
from tui_probe.verdicts.limiter_text import KernelLimiter, limiter_texts
from tui_probe.verdicts.run_brief import run_brief
from tui_probe.verdicts.utilization import limiter_verdict

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tui_probe.trace.model import Trace

ASKED = "which warps wait, and for whom? run -p phases"


def trace_of(folder: Path, code: str, probe: str = "gmem_bytes") -> Trace:
    writer = TraceWriter(folder / "trace")
    writer.start()
    kernel = writer.kernel(0, "k")
    (kernel / "kernel.info").write_text(f"k\n0\n1\n1,24\n{probe}.py\n")
    (kernel / "pruned.ptx").write_text(f".version 8.8\n.target sm_90\n.visible .entry k()\n{{\n{code}\nret;\n}}\n")
    writer.launch(0)
    writer.exit()
    return open_trace(writer.directory)


@pytest.fixture
def demand(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Sets what all kernels ask of an H200 in 100 µs."""

    def set_demand(**asked: float | None) -> None:
        own = replace(NOTHING, **asked)  # type: ignore[arg-type]
        known = KernelLimiter(limiter_verdict(own, H200), own, H200, "")
        monkeypatch.setattr(limiter, "limiter_from_results", lambda *_: known)

    return set_demand


@pytest.mark.parametrize(
    "code",
    [
        "mbarrier.try_wait.parity.shared::cta.b64 %p1, [full], 0;",
        "cp.async.wait_group 1;",
        "bar.sync 0;",
        "barrier.cta.sync.aligned 1, 64;",
    ],
)
@pytest.mark.parametrize("seconds", [100e-6, None])
def test_waiting_kernel_leads_to_the_phases_of_its_warps(
    tmp_path: Path, demand: Callable[..., None], seconds: float | None, code: str
) -> None:
    demand(seconds=seconds)
    kernel = trace_of(tmp_path, code).kernels[0]
    own = kernel_limiter(kernel)
    assert own is not None
    assert own.question_text == ASKED


@pytest.mark.parametrize(
    ("fp32", "code", "probe"),
    [
        (4 * CYCLES * 90e-6, "bar.sync 0;", "gmem_bytes"),
        (0, "bar.warp.sync -1;", "gmem_bytes"),
        (0, "bar.sync 0;", "phases"),
    ],
)
def test_no_question_of_a_busy_unit_independent_warps_or_what_is_known(
    tmp_path: Path, demand: Callable[..., None], fp32: float, code: str, probe: str
) -> None:
    demand(fp32=fp32)
    own = kernel_limiter(trace_of(tmp_path, code, probe).kernels[0])
    assert own is not None
    assert own.next_question == ""


def test_question_is_in_all_outputs(tmp_path: Path, demand: Callable[..., None]) -> None:
    demand()
    trace = trace_of(tmp_path, "bar.sync 0;")
    kernel = trace.kernels[0]
    own = kernel_limiter(kernel)
    assert own is not None
    assert limiter_texts(own)[-1] == ASKED
    assert open_questions(kernel, findings_by_probe(ViewSource(trace, kernel)))[0].option == "-p phases"
    (found,) = [finding for finding in kernel_findings(trace, kernel) if finding.finding.key == LIMITER_KEY]
    assert found.record()["next"] == ["tui-probe run -p phases -- ./saxpy 4"]
    assert found.record()["next"][0] in [command.command for command in run_brief(trace).next_commands]
