"""The lines of all kernels in one table: what wastes most comes first, whichever kernel it is in."""

from __future__ import annotations

import json
from collections.abc import Iterable
from itertools import dropwhile
from typing import TYPE_CHECKING

import pytest

from tests.probes.specimens import add_specimen
from tests.recorded import H200, SIMULATED, unpacked
from tests.trace.make import TraceWriter
from tui_probe.pages.all_lines import line_page, measured_lines, no_lines_text
from tui_probe.pages.page_registry import report_lines
from tui_probe.trace.follow import open_trace

if TYPE_CHECKING:
    from pathlib import Path

    from tui_probe.trace.model import Trace


def two_kernels(root: Path) -> Trace:
    """A strided store of a waste that is known, and conflicts in shared memory by another probe."""
    writer = TraceWriter(root / "trace")
    writer.start(device="Simulated GPU", sms=8)
    for index, probe in enumerate(("gmem_sectors_by_line", "smem_conflicts_by_line")):
        add_specimen(writer, index, probe, root)
    writer.exit()
    return open_trace(writer.directory)


def table_lines(text: Iterable[str]) -> list[str]:
    """Return the lines of a page from the titles of its table on."""
    return list(dropwhile(lambda line: not line.startswith("#"), map(str.strip, text)))


def test_each_line_has_its_share_of_what_all_kernels_waste(tmp_path: Path) -> None:
    first, *_ = measured_lines(two_kernels(tmp_path)).lines
    assert (first.kernel.index, first.row.line, first.measure_name, first.value) == (0, 32, "wasted sectors", 1024.0)
    assert (first.share, first.source_position, first.opcode) == (1.0, "strided_store.cu:4", "st.global.u32")


def test_the_page_of_a_recorded_trace_names_the_planted_line(tmp_path: Path) -> None:
    trace = open_trace(unpacked(SIMULATED / "dmat", tmp_path))
    rule, first = table_lines(line_page(trace).text(120))[1:3]
    assert rule.startswith("─")
    assert {"planted.cu:14", "100%"} <= {*first.split()}


@pytest.mark.parametrize("cells", [60, 80, 120])
def test_value_is_next_to_its_unit_in_any_width(tmp_path: Path, cells: int) -> None:
    heads, _, first, *_ = table_lines(line_page(two_kernels(tmp_path)).text(cells))
    assert [heads.split()[place] for place in (3, 4)] == ["measure", "value"]
    assert first.split()[3:7] == ["excessive", "sectors", "1", "024"]


def test_json_has_all_figures_of_a_line(tmp_path: Path) -> None:
    trace = open_trace(unpacked(H200 / "attention_sectors", tmp_path))
    document = json.loads("\n".join(report_lines(trace, "lines", "json")))
    assert all(0 <= line["share"] <= 1 for line in document["lines"])
    assert {"kernel", "ptx_line", "measure", "value", "source_line", "others"} <= document["lines"][0].keys()


def test_without_lines_it_says_which_probe_tells_them(tmp_path: Path) -> None:
    trace = open_trace(unpacked(H200 / "attention_blocks", tmp_path))
    assert f"note: {no_lines_text()}" in " ".join(" ".join(line_page(trace).text(80)).split())


def test_lines_without_a_number_are_on_the_page_of_their_kernel(tmp_path: Path) -> None:
    writer = TraceWriter(tmp_path / "trace")
    writer.start(device="Simulated GPU", sms=8)
    add_specimen(writer, 0, "nan_check", tmp_path)
    writer.exit()
    text = " ".join(" ".join(line_page(open_trace(writer.directory)).text(80)).split())
    assert "note: #0: lines of nan_check have no value for sorting." in text
    assert "tui-probe show lines TRACE:KERNEL" in text
    assert "No probe of this trace measures lines" not in text


def test_damaged_result_is_named_and_the_others_are_listed(tmp_path: Path) -> None:
    trace = two_kernels(tmp_path)
    path = trace.results.path(trace.kernels[1].result_rows[-1])
    assert path is not None
    path.write_bytes(path.read_bytes()[:40])
    text = line_page(trace).text(120)
    assert any("strided_store.cu:4" in line for line in text)
    (note,) = (line for line in text if path.name in line)
    assert "note: #1: " in note
