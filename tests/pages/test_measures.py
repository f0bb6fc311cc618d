"""Measures of lines next to the code, and no more than is known."""

from __future__ import annotations

import csv
import io
import json
import lzma
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.pages.measured_example import COALESCED, NEVER, STORED, STRIDED, write_measured
from tests.pages.timelines.drawing import golden_view
from tui_probe.draw.spans import plain
from tui_probe.draw.view import Document, no_progress
from tui_probe.pages.code.line_measures import measures_of, value_columns
from tui_probe.pages.code.measure_column import MeasureColumn, MeasureMargin, short_text
from tui_probe.pages.view_output import csv_of_view, run_commands
from tui_probe.pages.views import kind_of
from tui_probe.probekit.lines import LineMeasure, LineRow, LineRows, LineSpec
from tui_probe.probekit.page_kinds import ViewSource
from tui_probe.toolchain import Tool

if TYPE_CHECKING:
    from tui_probe.probekit.lines import LineValue
    from tui_probe.trace.model import Trace

SASS = Path(__file__).parents[1] / "data" / "sass" / "strides"


@pytest.fixture
def trace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Trace:
    """With machine code as ptxas 13 makes it of the same PTX, and nvdisasm 13 prints it."""
    trace = write_measured(tmp_path / "sectors")
    (folder,) = trace.directory.glob("kernel/0_*")
    for side in ("pruned", "probed"):
        (folder / f"{side}.ptx").write_text((SASS / f"{side}.ptx").read_text())
        (folder / f"{side}.bin").write_bytes(lzma.decompress((SASS / f"{side}.bin.xz").read_bytes()))

    def told(_: Tool, cubin: Path) -> str:
        return (SASS / f"{cubin.stem}.txt").read_text()

    tool = Tool(Path("nvdisasm"), (13, 0), "13.0.0")
    monkeypatch.setattr("tui_probe.pages.code.kernel_sass.find_disassembler", lambda: tool)
    monkeypatch.setattr("tui_probe.pages.code.kernel_sass.disassemble", told)
    return trace


def opened(trace: Trace, name: str, commands: str = "") -> Document:
    source = ViewSource(trace, trace.kernels[0])
    assert kind_of(name).missing_reason(source) is None
    view = kind_of(name).open(source, no_progress)
    assert isinstance(view, Document)
    run_commands(view, [word for word in commands.split(",") if word], (120, 40))
    return view


@pytest.mark.parametrize("page", ["ptx", "ptx-level", "diff", "diff-level", "sass", "sass-level", "lines"])
def test_goldens(trace: Trace, page: str) -> None:
    name, _, command = page.partition("-")
    golden_view(f"measures/{page}", opened(trace, name, command))


@pytest.mark.parametrize("probe", ["gmem_sectors_by_line", "dmat"])
def test_each_line_has_what_is_known_of_it(tmp_path: Path, probe: str) -> None:
    trace = write_measured(tmp_path / probe, probe)
    measures = measures_of(ViewSource(trace, trace.kernels[0]))
    assert measures is not None
    first = measures.columns[0]
    assert (first.name, dict(first.values)) == (
        "wasted sectors",
        {COALESCED: 0, STRIDED: 4 * 28, NEVER: None, STORED: 0},
    )
    assert first.spans(STRIDED, wide=False) == (("112", "warn"), ("█", "ramp7"), ("!", "warn"))
    assert first.spans(STRIDED, wide=True) == (("112", "warn"), (" ████", "ramp7"), ("!", "warn"))
    assert plain(first.spans(COALESCED, wide=False)) == "  0  "
    assert first.spans(NEVER, wide=False) == (("  –  ", "dim"),)
    assert first.spans(1, wide=True) == first.spans(None, wide=True) == ((" " * 9, ""),)
    assert measures.column_title(first).endswith("; ! the most; – not executed; simulated GPU")
    assert measures.line_texts(NEVER) == ["not executed"]
    assert measures.line_texts(1) == []
    assert measures.line_texts(STRIDED)[-2:] == ["88% excessive", "112 excessive sectors"]


def test_accesses_that_were_not_all_kept_do_not_tell_what_was_not_executed(tmp_path: Path) -> None:
    trace = write_measured(tmp_path / "dmat", "dmat")
    kernel = trace.kernels[0]
    path = trace.results.path(0)
    assert path is not None
    attempts = kernel.read_result_file(path).sections[-1]
    content = bytearray(path.read_bytes())
    assert content[attempts.offset : attempts.offset + 4] == (3).to_bytes(4, "little")
    content[attempts.offset : attempts.offset + 4] = (1000).to_bytes(4, "little")
    path.write_bytes(content)
    measures = measures_of(ViewSource(trace, kernel))
    assert measures is not None
    assert NEVER not in measures.columns[0].values


def test_the_other_columns_are_a_key_away(trace: Trace) -> None:
    view = opened(trace, "ptx")
    assert view.commands()["unit"] == "next column: excessive"
    run_commands(view, ["unit"], (80, 24))
    assert "excessive, -p gmem_sectors_by_line" in plain(view.lines(80)[0])
    again = opened(trace, "ptx")
    again.take_over(view)
    assert plain(again.lines(80)[0]) == plain(view.lines(80)[0])


def test_the_measured_lines_are_stepped_through(trace: Trace) -> None:
    view = opened(trace, "ptx", "level")
    assert [view.ptx_line(number, 80) for number in view.anchors(80)] == [COALESCED, STRIDED, NEVER, STORED]
    assert view.anchor_noun() == "measured line"


@pytest.mark.parametrize(("name", "commands"), [("ptx", ""), ("ptx", "level"), ("diff", ""), ("diff", "fold")])
@pytest.mark.parametrize("width", [80, 120])
def test_every_line_of_pruned_ptx_has_its_place(trace: Trace, name: str, commands: str, width: int) -> None:
    view = opened(trace, name, commands)
    numbers = {view.ptx_line(number, width): number for number in reversed(range(len(view.lines(width))))}
    for line in range(1, 35):
        place = view.place_of(line, width)
        assert place is not None
        shown = view.ptx_line(place, width)
        assert shown == line or (commands == "" and shown is not None and shown < line)  # in a folded run
        if line in numbers:
            assert numbers[line] == place
    assert view.place_of(1000, width) is None


def test_the_table_of_lines_leads_to_the_code_and_back(trace: Trace) -> None:
    table, code = opened(trace, "lines"), opened(trace, "ptx")
    assert (table.target_view(), code.target_view()) == ("ptx", "lines")
    row = table.place_of(STRIDED, 80)
    assert row is not None
    assert table.ptx_line(row, 80) == STRIDED
    assert table.ptx_line(0, 80) is None


def test_data_has_the_measures_by_line(trace: Trace) -> None:
    rows = list(csv.DictReader(io.StringIO("\n".join(csv_of_view(opened(trace, "ptx", "level"))))))
    assert rows[STRIDED - 1]["sectors_per_request"] == "32.0"
    assert rows[STRIDED - 1]["pruned"] == "ld.global.f32 %f2, [%rd5];"
    assert rows[NEVER - 1]["sectors_per_request"] == rows[0]["sectors_per_request"] == ""
    measured = json.loads(json.dumps(opened(trace, "ptx").record()))["measured"]
    assert (measured["probe"], measured["launch"]) == ("gmem_sectors_by_line", 0)
    assert {row["line"]: row["sectors"] for row in measured["lines"]} == {
        COALESCED: 16, STRIDED: 128, NEVER: None, STORED: 32,
    }  # fmt: skip
    diff = csv.DictReader(io.StringIO("\n".join(csv_of_view(opened(trace, "diff")))))
    assert [row["pruned_line"] for row in diff if row["requests"]] == [str(COALESCED), str(STRIDED), str(STORED)]


def test_machine_code_has_the_measures_of_the_line_that_it_came_from(trace: Trace) -> None:
    view = opened(trace, "sass", "level,level")
    shown = [plain(line) for line in view.lines(120)]
    (strided,) = (line for line in shown if "112 ████!" in line)
    assert "LDG.E R9, desc[UR4][R8.64]" in strided
    assert len([line for line in shown if line[6:14].strip() == "0" and "STG.E.64" in line]) == 1
    assert view.ptx_line(shown.index(strided), 120) == STRIDED
    assert view.target_view() == "ptx"
    place = view.place_of(STORED, 120)
    assert place is not None
    assert "STG.E.64" in shown[place]
    assert [shown[number] for number in view.anchors(120)][1] == strided
    assert view.line_facts(shown.index(strided), 120)[-2:] == ["112 excessive sectors", "PTX line 24"]


def test_probed_machine_code_leads_to_the_same_lines(trace: Trace) -> None:
    view = opened(trace, "sass", "level")
    shown = [plain(line) for line in view.lines(120)]
    loads = [line for line in shown if "LDG.E " in line]
    assert [line[6:18].split()[0] for line in loads] == ["0", "112"]
    assert len([line for line in shown if "ATOM" in line or "RED" in line]) > 2  # the probe's own, not measured


def test_access_pairs_with_itself_and_probe_has_its_own_line(trace: Trace) -> None:
    rows = list(csv.DictReader(io.StringIO("\n".join(csv_of_view(opened(trace, "sass"))))))
    accesses = [
        row for row in rows if row["ptx_line"] in map(str, (COALESCED, STRIDED, NEVER, STORED)) and row["sectors"]
    ]
    assert [row["side"] for row in accesses] == ["pruned", "probed"] * 3
    own = [row for row in rows if row["probe"]]
    assert {(row["probe"], row["change"], row["ptx_line"]) for row in own} == {("gmem_sectors_by_line", "added", "")}
    view = opened(trace, "sass")
    assert view.record()["counts"]["of the probe"]["probed"] == sum(bool(row["address"]) for row in own) > 100
    assert any("gmem_sectors_by_line ▸" in plain(line) for line in view.lines(160))


def test_machine_code_as_data(trace: Trace) -> None:
    rows = list(csv.DictReader(io.StringIO("\n".join(csv_of_view(opened(trace, "sass"))))))
    by_address = {(row["side"], row["address"]): row for row in rows if row["address"]}
    strided = by_address["pruned", "0x0110"]
    assert (strided["class"], strided["ptx_line"], strided["source"]) == ("load", str(STRIDED), "strides.cu:7")
    assert (strided["sectors_per_request"], strided["text"]) == ("32.0", "LDG.E R9, desc[UR4][R8.64]")
    assert {row["change"] for row in rows} <= {"same", "renamed", "added", "removed", "changed"}
    assert {row["side"] for row in rows if row["change"] == "added"} == {"probed"}
    record = json.loads(json.dumps(opened(trace, "sass").record()))
    assert record["counts"]["store"] == {"pruned": 2, "probed": 2}
    assert sum(row["class"] == "store" for row in record["lines"] if row["side"] == "pruned") == 2


def test_machine_code_without_a_line_table_has_no_measures(trace: Trace) -> None:
    (folder,) = trace.directory.glob("kernel/0_*")
    for side in ("pruned", "probed"):
        (folder / f"{side}.bin").write_bytes(b"machine code")
    view = opened(trace, "sass", "level")
    assert view.target_view() == ""
    assert view.record()["measured"] is None
    assert "unit" not in view.commands()
    assert not any("32.00" in plain(line) for line in view.lines(120))


def test_inserted_lines_name_their_probe_once_and_where_it_begins(trace: Trace) -> None:
    view = opened(trace, "ptx")
    lines = [plain(line) for line in view.lines(120)]
    assert not any("// tui-probe" in line for line in lines)
    named = [line for line in lines if " gmem_sectors_b… ▸" in line]
    assert len(named) == 1 + 4  # what is declared at the start, and what was put before each access
    assert all("+" in line[:11] for line in named)
    assert "// tui-probe: gmem_sectors_by_line" in view.record()["probed"]


def test_added_registers_are_counted_and_named_on_demand(trace: Trace) -> None:
    view = opened(trace, "diff")
    head = [plain(line) for line in view.lines(80)[:3]]
    assert "registers added in PTX: " in head[1]
    assert "%tp" not in head[1] + head[2]
    run_commands(view, ["level"], (80, 24))
    assert "%tp__address" in plain(view.lines(80)[2])


def test_a_result_that_cannot_be_read_keeps_nobody_from_the_code(trace: Trace) -> None:
    path = trace.results.path(0)
    assert path is not None
    path.write_bytes(b"not a result")
    view = opened(trace, "ptx")
    assert plain(view.lines(80)[0]) == " PTX: line  probed.ptx"
    assert "ld.global.f32" in "".join(map(plain, view.lines(80)))


def test_a_large_result_is_left_to_the_table_of_lines(trace: Trace, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tui_probe.pages.code.line_measures.MAX_BYTES_BEFORE_CODE", 10)
    view = opened(trace, "ptx")
    assert "only the page Lines reads results of this size" in plain(view.lines(120)[0])
    assert view.target_view() == ""
    assert view.record()["measured"]["problem"]


def test_lines_are_sorted_by_the_chosen_column(trace: Trace) -> None:
    view = opened(trace, "lines")
    assert {"line", "sectors", "source"} <= view.sortable().keys()

    def order() -> list[int | None]:
        return [view.ptx_line(number, 120) for number in range(view.pinned(120), view.pinned(120) + view.row_count())]

    assert order()[0] == STRIDED, "the worst one"
    view.sort_by("line")
    assert (order(), view.sorted_column) == (sorted(order(), key=lambda line: line or 0), "line")
    assert "PTX line ↑" in plain(view.lines(120)[1])
    rising = order()
    view.sort_by("line")
    assert order() == rising[::-1], "the same column again"
    view.sort_by("sectors")
    assert order()[0] == STRIDED
    assert "sectors ↓" in plain(view.lines(120)[1])


def test_few_lanes_are_the_worst() -> None:
    rows: list[tuple[int, dict[str, LineValue]]] = [
        (3, {"lanes per execution": 32.0, "executions": 4}),
        (5, {"lanes per execution": 8.0, "executions": 4}),
        (9, {"lanes per execution": None, "executions": 0}),
    ]
    measure = LineMeasure("lanes per execution", better="higher")
    lines = LineSpec((measure,), measure.name, lambda *_: LineRows([]))
    measured = value_columns(lines, LineRows([LineRow(line, None, values) for line, values in rows]))
    assert [column.name for column in measured] == ["lanes per execution", "executions"]
    assert measured[0].spans(5, wide=False) == ((" 8.00", "warn"), ("▂", "ramp1"), ("!", "warn"))
    assert plain(measured[0].spans(5, wide=True)) == " 8.00 █   !"
    assert measured[0].values[9] is None
    assert 9 in measured[0].idle_lines


def test_nothing_stands_out_where_all_are_alike_and_a_measured_nought_is_one() -> None:
    measure = MeasureColumn(LineMeasure("conflicts"), {1: 0, 2: 0})
    assert measure.worst is None
    assert plain(measure.spans(1, wide=True)) == "0 "


def test_heat_bars_of_equal_values_are_parts_of_their_sum() -> None:
    executions = MeasureColumn(LineMeasure("executions", "sum"), dict.fromkeys(range(1, 5), 7))
    assert plain(executions.spans(1, wide=True)) == "7 █    ", "a quarter, not a block of full bars"
    degree = MeasureColumn(LineMeasure("degree", "ratio", ("a", "b")), {1: 2.0, 2: 2.0})
    assert plain(degree.spans(1, wide=True)) == "2.00 "


def test_the_margin_is_as_narrow_as_it_can_be() -> None:
    assert MeasureMargin(None, set(), 80).cells == 0
    assert MeasureMargin(None, {"parameter"}, 80).cells == 0
    assert MeasureMargin(None, {"dmat"}, 80).cells == 2
    assert MeasureMargin(None, {"dmat"}, 80).of_run("dmat") == (" ▸", "note")
    assert MeasureMargin(None, {"dmat"}, 100).cells == 7
    long = "a_probe_with_a_long_name"
    assert MeasureMargin(None, {long}, 100).of_run(long) == (" a_probe_w… ▸", "note")
    margin = MeasureMargin(MeasureColumn(LineMeasure("bytes", "sum"), {7: 123_456}), {"dmat"}, 80)
    assert (plain(margin.of_line(7)), margin.cells) == ("123k█ ", 6)


@pytest.mark.parametrize(("value", "text"), [
    (0, "0"), (5.238, "5.24"), (29.35, "29.35"), (732.0, "732"), (9999, "9 999"), (10_000, "10.0k"), (48_600, "48.6k"),
    (194_400, "194k"), (999_600, "1.00M"), (78_718_499, "78.7M"), (None, "–"), ("inf (f32)", "inf (f32)"),
    ("a very long word", "a very long…"), (-48_600, "-48.6k"), (-194_400, "-194k"), (-1_620_000, "-1.62M"),
])  # fmt: skip
def test_short_values(value: LineValue, text: str) -> None:
    assert short_text(value) == text


@given(st.integers(0, 10**20) | st.floats(0, 1e20))
def test_a_number_takes_at_most_five_cells(value: float) -> None:
    assert len(short_text(value)) <= 5
