"""Summary of a launch in which everything is known, and of launches on an H200."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.pages.timelines import planted
from tests.pages.timelines.drawing import golden_view
from tests.trace.test_recorded import unpacked
from tui_probe.draw.view import no_progress
from tui_probe.pages.findings_page import open_questions
from tui_probe.pages.views import kind_of
from tui_probe.probekit.page_kinds import ViewSource
from tui_probe.trace.follow import open_trace
from tui_probe.verdicts.findings import findings_by_probe, launch_findings

if TYPE_CHECKING:
    from tui_probe.probekit.finding import Finding

RECORDED = Path(__file__).parents[2] / "data" / "h200"


def findings(source: ViewSource) -> dict[str, Finding]:
    result = launch_findings(source)
    assert result is not None
    return {finding.key: finding for finding in result.findings}


@pytest.fixture
def source(tmp_path: Path) -> ViewSource:
    return planted.write_planted(tmp_path / "t")


def recorded(name: str, kernel: int) -> ViewSource:
    trace = open_trace(RECORDED / name)
    return ViewSource(trace, trace.kernels[kernel])


def test_the_straggler_the_idle_sm_and_the_tail_are_named(source: ViewSource) -> None:
    by_key = findings(source)
    straggler = by_key["slowest_block"]
    assert (
        straggler.words == f"block {planted.STRAGGLER} on SM {planted.STRAGGLER_SM}, 4.00× the median of 1 000 cycles"
    )
    assert straggler.stands_out
    assert by_key["idle_sms"].words == "1 of 6 SMs ran no block"
    tail = by_key["tail"]
    assert tail.numbers["tail_share"] == pytest.approx((planted.SPAN - planted.END) / planted.SPAN)
    assert tail.stands_out
    assert tail.page == "timeline"
    assert by_key["waves"].numbers["waves"] == pytest.approx(50 / (16 * 6))


def test_a_tail_asks_which_warps_make_it(source: ViewSource) -> None:
    assert open_questions(source.kernel, findings_by_probe(source))[0].option == "-p warp_progress"


def test_gpu_cycles_are_times_and_the_probe_was_timed() -> None:
    source = recorded("attention_blocks", 1)
    by_key = findings(source)
    assert "78 549 cycles (39.7 µs)" in by_key["slots"].words
    assert by_key["waves"].words == "0.97: 256 blocks on 132 SMs, at most 2 blocks per SM"
    assert not any(finding.stands_out for finding in by_key.values())
    assert "--benchmark" not in [question.option for question in open_questions(source.kernel, [])]


def test_the_main_loop_of_attention_is_named(tmp_path: Path) -> None:
    trace = unpacked("attention_progress", tmp_path)
    by_key = findings(ViewSource(trace, trace.kernels[1]))
    assert by_key["main_loop"].words.startswith("PTX:452, 31 744 iterations of 2 480 cycles")
    assert by_key["warps"].words.startswith("1 024, median 83 658 cycles")


@pytest.mark.parametrize("name", ["planted", "attention_blocks"])
def test_goldens(source: ViewSource, name: str) -> None:
    shown = source if name == "planted" else recorded(name, 1)
    view = kind_of("summary").open(shown, no_progress)
    golden_view(f"summary-{name}", view)
