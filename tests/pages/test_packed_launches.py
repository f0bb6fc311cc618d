"""Pages of a trace in which most launches are packed: counts are exact, ranges whole, and a launch that is only counted
says so."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.trace.make import EPOCH_NS, TraceWriter
from tui_probe.errors import ChoiceError
from tui_probe.pages.range_page import range_page
from tui_probe.pages.range_tree import range_tree
from tui_probe.pages.unprobed_kernels import unprobed_lines
from tui_probe.pages.views.launches import KIND
from tui_probe.probekit.page_kinds import ViewSource
from tui_probe.probekit.probe_results import choose_target
from tui_probe.trace.follow import open_trace
from tui_probe.trace.model import Trace
from tui_probe.ui.live.current_selection import launch_text
from tui_probe.verdicts.kernel_columns import KERNEL_COLUMNS
from tui_probe.verdicts.run_outcome import head_lines


@pytest.fixture
def trace(tmp_path: Path) -> Trace:
    """Launches 0 and 1 probed, of kernels 0 and 1; 2 to 11 packed, alternately; 12 probed, of kernel 0; 13-15
    captured.
    """
    writer = TraceWriter(tmp_path / "t")
    writer.start()
    for index, name in enumerate(("one", "two")):
        writer.kernel(index, name)
        writer.key(index, index)
    writer.launch(0)
    writer.launch(1)
    writer.packed("0 1 0 1 0 1 0 1 0x2", 10)
    writer.launch(0)
    writer.lines("[reason] 0 stream is capturing code capturing")
    writer.packed("1/0x3", 3)
    for number, runs, text in ((1, "1-12", "step"), (2, "4-6,9", "inner")):
        start = EPOCH_NS + 1000 * number
        writer.lines(
            f"[nvtx] range {number} in {number - 1} thread 7 start {start} end {start + 500} launches {runs} "
            f"domain - text {text}"
        )
    return open_trace(writer.directory)


def test_ranges_have_all_their_launches(trace: Trace) -> None:
    step, inner = range_page(trace).record()["ranges"]
    assert [(kernel["kernel"], kernel["launches"]) for kernel in step["kernels"]] == [(0, 7), (1, 5)]
    assert step["probed"] == 2
    assert [(kernel["kernel"], kernel["launches"]) for kernel in inner["kernels"]] == [(0, 2), (1, 2)]
    assert inner["probed"] == 0


def test_the_tree_of_ranges_has_them_too(trace: Trace) -> None:
    (step,) = range_tree(trace, merge_runs=False)
    assert [(counts.kernel, counts.launches, counts.probed_count) for counts in step.direct_launches] == [
        (0, 5, 1),
        (1, 3, 1),
    ]
    (inner,) = step.inner
    assert [(counts.kernel, counts.launches, counts.probed_count) for counts in inner.direct_launches] == [
        (0, 2, 0),
        (1, 2, 0),
    ]


def test_probed_share_of_packed_launches_is_reported(trace: Trace) -> None:
    assert any("3 of 13 launches probed" in line for line in head_lines(trace, 100))
    column = next(column for column in KERNEL_COLUMNS if column.key == "launches")
    assert column.text is not None
    assert [column.text(kernel) for kernel in trace.kernels] == ["2 of 8", "1 of 5"]


def test_not_probed_omits_unsampled_and_captured_launches(trace: Trace) -> None:
    assert unprobed_lines(trace, 100) == []


def test_a_launch_that_is_only_counted_says_so(trace: Trace) -> None:
    with pytest.raises(ChoiceError) as caught:
        choose_target(trace, KIND, None, 5)
    reason = (
        "launch 5 of kernel #1 was counted, not recorded (launch not sampled); launches recorded at the same time: @1"
    )
    assert str(caught.value) == reason
    with pytest.raises(ChoiceError, match="launches recorded at the same time: @0 and @12"):
        choose_target(trace, KIND, None, 6)
    with pytest.raises(ChoiceError, match="there is no launch 16: the log has 13 launches"):
        choose_target(trace, KIND, None, 16)


def test_a_recorded_launch_is_named_by_its_place_among_them(trace: Trace) -> None:
    kernel = trace.kernels[0]
    assert launch_text(ViewSource(trace, kernel, trace.launches[2])) == "launch 12 (2nd recorded of 8 of this kernel)"


def test_the_list_of_launches_says_that_there_are_more(trace: Trace) -> None:
    view = KIND.open(choose_target(trace, KIND, "one").source, lambda *_: None)
    assert view.status() == ["2 of 8 launches; the other launches are only counted"]
    assert len(view.record()["launches"]) == 2
