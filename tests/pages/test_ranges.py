"""NVTX ranges from the log to the page."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.trace.make import TraceWriter
from tui_probe.pages.page_registry import report_lines
from tui_probe.trace.event_types import NvtxRange, Unknown
from tui_probe.trace.events import parse_line
from tui_probe.trace.follow import open_trace
from tui_probe.trace.model import Trace

LINE = "[nvtx] range {} in {} thread {} start {} end {} launches {} domain {} text {}"


@pytest.fixture
def trace(tmp_path: Path) -> Trace:
    writer = TraceWriter(tmp_path / "trace")
    writer.start()
    writer.kernel(0, "forward_kernel")
    writer.kernel(1, "backward_kernel", "skipped", reason="no PTX in image")
    for _ in range(3):
        writer.launch(0)
    writer.lines(LINE.format(2, 1, 77, 1_000_000, 2_500_000, "0-1", "-", "forward pass"))
    writer.pass_through(1, "no PTX in image")
    writer.lines(LINE.format(3, 1, 77, 3_000_000, "-", "3", "my_library", "backward"))
    writer.lines(LINE.format(1, 0, 77, 900_000, "-", "0-1", "-", "step"))
    writer.lines(LINE.format(1, 0, 77, 900_000, 4_900_000, "3", "-", "step"))
    writer.exit()
    return open_trace(tmp_path / "trace")


def test_the_page(trace: Trace) -> None:
    lines = [line.rstrip() for line in report_lines(trace, "ranges", width=160)]
    table = lines[next(i for i, line in enumerate(lines) if line.startswith("range")) :]
    assert [line.split()[0] for line in table[2:]] == ["step", "forward", "#0", "backward", "#1"]
    assert "4.00 ms" in table[2]
    assert table[3].startswith("  forward pass")
    assert table[4].split()[:3] == ["#0", "forward_kernel", "2"]
    assert "–" in table[5], "a range that never ended has no time"


def test_data_of_the_page(trace: Trace) -> None:
    record = json.loads("\n".join(report_lines(trace, "ranges", "json")))
    step, forward, backward = record["ranges"]
    assert (step["launches"], step["probed"], step["parent"], step["runs"]) == (3, 2, None, [[0, 1], [3, 3]])
    assert (forward["parent"], forward["seconds"]) == (1, 0.0015)
    assert (backward["domain"], backward["seconds"], backward["text"]) == ("my_library", None, "backward")
    assert backward["kernels"] == [
        {"kernel": 1, "demangled": "backward_kernel", "launches": 1, "seconds": None, "share": None}
    ]


def test_a_trace_without_ranges_says_how_to_get_them(tmp_path: Path) -> None:
    writer = TraceWriter(tmp_path / "trace")
    writer.start()
    text = "\n".join(report_lines(open_trace(tmp_path / "trace"), "ranges"))
    assert "torch.cuda.nvtx.range_push" in text


@pytest.mark.parametrize("launches", ["", "-", "1-", "1,,2", "x"])
def test_a_damaged_line_is_unknown(launches: str) -> None:
    line = LINE.format(1, 0, 7, 1, 2, launches, "-", "a")
    assert isinstance(parse_line(line.encode()), Unknown)


def test_a_range_that_runs_backwards_holds_its_first_launch() -> None:
    event = parse_line(LINE.format(1, 0, 0, 1, "-", "5-2", "-", "a").encode())
    assert isinstance(event, NvtxRange)
    assert (event.runs, event.thread, event.parent) == (((5, 5),), None, None)
