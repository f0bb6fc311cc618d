"""The source of a kernel with what was measured of its lines."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.pages.measured_example import COALESCED, STORED, STRIDED, write_measured
from tests.pages.timelines.drawing import golden_view
from tui_probe.draw.view import no_progress
from tui_probe.pages.code.line_measures import LineMeasures, measures_by_row, measures_of
from tui_probe.pages.code.measure_column import MeasureColumn
from tui_probe.pages.view_output import run_commands
from tui_probe.pages.views import kind_of
from tui_probe.pages.views.source import SourceView, distinct_path, lines_near
from tui_probe.probekit.lines import LineMeasure
from tui_probe.probekit.page_kinds import ViewSource
from tui_probe.trace.model import Trace
from tui_probe.trace.source_lines import SOURCE_FOLDER, copy_name

FILE = "/src/strides.cu"
TEXT = """// Reads one array twice: once line by line, once 31 lines apart.
#include "nothing.h"

__global__ void strides(float *from, float2 *to, unsigned n) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    float a = from[i];
    float b = from[32 * i];
    if (i >= n)
        from[0] = a + b;  // never
    float sum = a + b;
    to[i] = {sum, sum};
}

void unused() {
    launch(strides);
    // nothing of the kernel is here
    wait();
}
"""


@pytest.fixture
def trace(tmp_path: Path) -> Trace:
    directory = write_measured(tmp_path / "trace")
    (directory.directory / SOURCE_FOLDER).mkdir()
    (directory.directory / SOURCE_FOLDER / copy_name(FILE)).write_text(TEXT)
    return directory


def opened(trace: Trace, commands: str = "") -> SourceView:
    source = ViewSource(trace, trace.kernels[0])
    assert kind_of("source").missing_reason(source) is None
    view = kind_of("source").open(source, no_progress)
    assert isinstance(view, SourceView)
    run_commands(view, [word for word in commands.split(",") if word], (120, 40))
    return view


@pytest.mark.parametrize("name", ["folded", "whole"])
def test_goldens(trace: Trace, name: str) -> None:
    golden_view(f"source/{name}", opened(trace, "fold" if name == "whole" else ""))


def shown(view: SourceView) -> dict[int, str]:
    """Measures next to the lines of the file, by their numbers."""
    lines = ["".join(part for part, _ in line) for line in view.lines(120)][view.pinned(120) :]
    return {
        row.line: line[6 : view.gutter(120)].strip() for row, line in zip(view.rows, lines, strict=True) if row.line
    }


def test_the_worst_line_of_source_is_marked_and_one_that_never_ran_says_so(trace: Trace) -> None:
    adjacent = shown(opened(trace))
    assert adjacent[6].startswith("0")
    assert adjacent[7].endswith("!")
    assert adjacent[7].startswith("112")
    assert adjacent[9] == "–"
    assert adjacent[11].startswith("0")
    assert adjacent[5] == adjacent[10] == ""


def test_lines_lead_to_ptx_and_back(trace: Trace) -> None:
    view = opened(trace)
    places = {line: view.place_of(line, 120) for line in (COALESCED, STRIDED, STORED)}
    rows = {line: view.rows[place - view.pinned(120)].line for line, place in places.items() if place is not None}
    assert rows == {COALESCED: 6, STRIDED: 7, STORED: 11}
    for line, place in places.items():
        assert place is not None
        assert view.ptx_line(place, 120) == line
    assert view.target_view() == "ptx"
    assert view.line_facts(places[STRIDED] or 0, 120)[0] == "strides.cu:7"


def test_events_are_the_measured_lines(trace: Trace) -> None:
    view = opened(trace)
    assert [view.rows[place - view.pinned(120)].line for place in view.anchors(120)] == [6, 7, 9, 11]


def test_a_file_without_a_copy_has_its_numbers(trace: Trace) -> None:
    (trace.directory / SOURCE_FOLDER / copy_name(FILE)).unlink()
    view = opened(trace)
    assert "no copy in the trace" in "".join(part for part, _ in view.lines(120)[1])
    assert list(shown(view)) == [6, 7, 9, 11]
    record = view.record()
    assert record["files"][0]["copied"] is False
    assert record["files"][0]["lines"][0]["text"] is None


def test_a_kernel_without_lines_says_what_to_do(trace: Trace) -> None:
    pruned = trace.kernels[0].file("pruned.ptx")
    assert pruned is not None
    pruned.write_text("".join(line for line in pruned.read_text().splitlines(True) if ".loc" not in line))
    assert "-lineinfo" in (kind_of("source").missing_reason(ViewSource(trace, trace.kernels[0])) or "")


def test_data_has_sums_over_the_ptx_of_a_line(trace: Trace) -> None:
    lines = opened(trace).record()["files"][0]["lines"]
    assert [(line["line"], line["requests"], line["sectors"], line["sectors_per_request"]) for line in lines] == [
        (6, 4, 16, 4.0), (7, 4, 128, 32.0), (9, None, None, None), (11, 4, 32, 8.0),
    ]  # fmt: skip


def test_a_ratio_of_several_instructions_is_that_of_their_sums(trace: Trace) -> None:
    measures = measures_of(ViewSource(trace, trace.kernels[0]))
    assert measures is not None
    both = measures_by_row(measures, {5: [COALESCED, STRIDED]})
    values = {column.name: column.values for column in both.columns}
    assert values["sectors per request"] == {5: (16 + 128) / 8}
    assert values["requests"] == {5: 8}
    assert values["wasted"] == {5: 112 / (16 + 128)}


def test_shares_are_left_out_and_words_are_those_of_the_first(trace: Trace) -> None:
    of = measures_of(ViewSource(trace, trace.kernels[0]))
    assert of is not None
    columns = (
        MeasureColumn(LineMeasure("value", "first"), {3: "NaN", 4: "inf"}),
        MeasureColumn(LineMeasure("warps"), {3: 7, 4: 7}),
    )
    measures = measures_by_row(LineMeasures(of.first_result, columns), {0: [4, 3], 1: [9]})
    assert [(column.name, column.values) for column in measures.columns] == [("value", {0: "NaN"})]


def test_near() -> None:
    assert lines_near([5, 6, 20], 21) == [2, 3, 4, 5, 6, 7, 8, 9, 17, 18, 19, 20, 21]


def row_of(view: SourceView, line: int) -> int:
    return view.pinned(120) + next(number for number, row in enumerate(view.rows) if row.line == line)


def test_two_marks_ask_for_the_time_between(trace: Trace) -> None:
    view = opened(trace)
    assert (view.marked_option(), view.status(), view.mark(view.pinned(120), 120)) == (
        "",
        [],
        "this row is not a source line",
    )
    assert view.mark(row_of(view, 7), 120) == "the range starts at strides.cu:7; press m on the last line of the range"
    assert (view.marked_option(), view.status()) == ("--between src/strides.cu:7", ["marked from strides.cu:7"])
    assert view.mark(row_of(view, 6), 120) == "strides.cu:6-7: press R to measure the time in these lines"
    assert (view.marked_option(), view.status()) == ("--between src/strides.cu:6-7", ["marked strides.cu:6-7"])
    drawn = ["".join(part for part, _ in line) for line in view.lines(120)]
    assert [line.split("│")[0].strip() for line in drawn if "│" in line[:8]] == ["6", "7"]
    other = opened(trace)
    other.take_over(view)
    assert other.marked_option() == view.marked_option()
    assert (
        view.mark(row_of(view, 11), 120)
        == "the range starts at strides.cu:11, replacing strides.cu:6; press m on the last line of the range"
    )
    assert view.mark(row_of(view, 11), 120) == "strides.cu:11: press R to measure the time in these lines"
    assert view.marked_option() == "--between src/strides.cu:11"


def test_lines_without_code_are_those_of_what_was_inlined_there(trace: Trace) -> None:
    view = opened(trace, "fold")
    view.mark(row_of(view, 3), 120)
    note = "strides.cu:2-3: press R to measure the time in these lines (these lines have only inlined code)"
    assert view.mark(row_of(view, 2), 120) == note


@pytest.mark.parametrize(
    ("file", "others", "end"),
    [
        ("/src/a/k.cu", ["/src/b/k.cu"], "a/k.cu"),
        ("/src/a/k.cu", ["/lib/a/k.cu"], "src/a/k.cu"),
        ("/a/k.cu", ["/lib/a/k.cu"], "/a/k.cu"),
        ("k.cu", [], "k.cu"),
        ("my k.cu", [], "my k.cu"),
    ],
)
def test_a_file_is_named_apart_from_others(file: str, others: list[str], end: str) -> None:
    assert distinct_path(file, [file, *others]) == end
