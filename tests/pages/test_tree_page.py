"""Tree of the GPU time: shares of ranges and kernels, launches outside ranges, and the part of it that is open."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.pages.ranges import LINE, MS, ranges_trace
from tests.recorded import H200, unpacked
from tests.trace.make import EPOCH_NS, TraceWriter
from tui_probe.pages.tree_page import MAX_LINES, OUTSIDE_RANGES, page_of_tree, program_tree, tree_page
from tui_probe.trace.follow import open_trace
from tui_probe.verdicts.run_findings import cycle_shares

if TYPE_CHECKING:
    from pathlib import Path

    from tui_probe.trace.model import Trace


@pytest.fixture
def timed(tmp_path: Path) -> Trace:
    """A step of 2 launches of 3 ms and 1 ms, and one of 4 ms outside."""
    writer = TraceWriter(tmp_path / "Nov21_101010_42")
    writer.start(command="python train.py")
    for index in (0, 1):
        writer.kernel(index, f"f{index}")
    for kernel, time in ((0, 3.0), (1, 1.0)):
        writer.benchmark(kernel, writer.launch(kernel), original=time, probed=5.0)
    writer.kernel(2, "g")
    writer.benchmark(2, writer.launch(2), original=4.0, probed=5.0)
    writer.lines(LINE.format(1, 0, 77, EPOCH_NS, EPOCH_NS + 9 * MS, "0-1", "-", "step"))
    writer.exit()
    return open_trace(writer.directory)


def test_tree_has_time_and_share_at_each_level(timed: Trace) -> None:
    root = program_tree(timed)
    levels = [(node.level, node.name, node.share and round(node.share, 3)) for node in root.walk(None)]
    assert root.seconds == pytest.approx(8e-3)
    assert levels == [
        ("program", "python train.py", 1.0),
        ("range", "step", 0.5),
        ("kernel", "#0 f0", 0.375),
        ("kernel", "#1 f1", 0.125),
        ("range", OUTSIDE_RANGES, 0.5),
        ("kernel", "#2 g", 0.5),
    ]


def test_shares_are_unknown_if_a_kernel_was_not_timed(tmp_path: Path) -> None:
    root = program_tree(open_trace(ranges_trace(tmp_path / "Nov21_101010_42", timed=True).directory))
    assert root.seconds is None
    assert {node.share for node in root.walk(None)} == {None}
    (steps,) = (node for node in root.inner if node.name == "step")
    assert (steps.note, steps.launches) == ("2 times", 14)


def test_page_shows_the_opened_part_only(timed: Trace) -> None:
    root = program_tree(timed)
    opened = frozenset({root.path, (*root.path, "step")})
    page = page_of_tree(timed, root, opened)
    text = "\n".join(line for line, *_ in (tuple(part for part, _ in line) or ("",) for line in page.lines(90)))
    assert "▾ step" in text
    assert f"▸ {OUTSIDE_RANGES}" in text
    assert "#0 f0" in text
    assert "#2 g" not in text


def test_kernels_have_their_lines(tmp_path: Path) -> None:
    trace = open_trace(unpacked(H200 / "attention_sectors", tmp_path))
    kernels = [node for node in program_tree(trace).walk(None) if node.level == "kernel"]
    assert any(node.inner for node in kernels)
    assert all(len(node.inner) <= MAX_LINES for node in kernels)
    assert {line.level for node in kernels for line in node.inner} <= {"line"}


def test_tree_as_data(timed: Trace) -> None:
    records = list(tree_page(timed).record()["tree"])
    assert [record["level"] for record in records] == ["program", "range", "kernel", "kernel", "range", "kernel"]
    assert records[2] | {"share": 0} == {
        "name": "#0 f0", "level": "kernel", "depth": 2, "share": 0, "seconds": 3e-3, "launches": 1, "kernel": 0,
        "line": None, "note": None,
    }  # fmt: skip


def test_tree_has_shares_of_cycles_where_nothing_was_timed() -> None:
    """Of the seven kernels of the demo, one launch each, as the kernel table has them."""
    trace = open_trace(H200 / "demo")
    page = tree_page(trace)
    assert page.texts.findings == ["by share of launch cycles: not all kernels were timed"]
    program, matmul, softmax, *_ = page.rows
    assert program.share == pytest.approx(1.0)
    assert [matmul.name, softmax.name] == ["#4 matmul", "#6 softmax"]
    assert matmul.share == pytest.approx(cycle_shares(trace)[4])
    assert matmul.seconds is None
