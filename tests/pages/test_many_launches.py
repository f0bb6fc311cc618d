"""Pages of a trace with very many launches: text stays short and says what it leaves out, data has all."""

from __future__ import annotations

import re
from itertools import pairwise
from typing import TYPE_CHECKING

import pytest

from tests.ui.synthetic import TraceWriter
from tui_probe.pages.page_registry import report_lines
from tui_probe.pages.run_report import run_report
from tui_probe.probekit import result_tables
from tui_probe.probekit.result_tables import spread_rows
from tui_probe.trace.follow import open_trace

if TYPE_CHECKING:
    from tui_probe.trace.model import KernelFacts, Trace

LAUNCHES = 1200


@pytest.fixture(scope="module")
def trace(tmp_path_factory: pytest.TempPathFactory) -> Trace:
    """Three kernels, the last with three launches; every third launch of the others has a result."""
    writer = TraceWriter(tmp_path_factory.mktemp("many") / "trace")
    kernels = [writer.kernel(f"kernel_{place}") for place in range(3)]
    for place in range(LAUNCHES):
        kernel = kernels[2] if place >= LAUNCHES - 3 else kernels[place % 2]
        number = writer.launch(kernel)
        if place % 3 == 0 or kernel == kernels[2]:
            writer.result(kernel, number, blocks=8 + place // 100)
    writer.exit()
    return open_trace(writer.directory)


def reads(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The rows of results that are read from now on."""
    rows: list[int] = []
    real = result_tables.analyse_result

    def noted(trace: Trace, kernel: KernelFacts, row: int) -> result_tables.AnalysedResult:
        rows.append(row)
        return real(trace, kernel, row)

    monkeypatch.setattr(result_tables, "analyse_result", noted)
    return rows


@pytest.mark.parametrize("page", ["results", "blocks"])
def test_results_of_a_kernel_are_a_spread(trace: Trace, page: str, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = reads(monkeypatch)
    lines = list(report_lines(trace, page, width=120))
    assert len(lines) < 80
    assert len(rows) == 32 + 32 + 3
    text = "\n".join(lines)
    assert "200 results, 32 of them read (evenly spaced from first to last)" in text
    (span, *_) = (line for line in lines if line.lstrip().startswith("span"))
    least, median, most = (float(number.replace(" ", "")) for number in re.findall(r"(\d[\d ]*\.\d\d) cycles", span))
    assert least < median < most
    more = "… to show all results, add --format csv; to show one result, run"
    more += f" tui-probe show results {trace.directory}:0@LAUNCH"
    assert "".join(more.split()) in "".join(text.replace("\\\n", "").split())
    assert [line.split(":")[0] for line in lines if line.startswith("  launch ")] == [
        f"  launch {LAUNCHES - place}" for place in (3, 2, 1)
    ]  # a few have a line each


@pytest.mark.parametrize(("page", "rows"), [("blocks", 402), ("launches", LAUNCHES)])
def test_data_has_every_row(trace: Trace, page: str, rows: int) -> None:
    assert len(list(report_lines(trace, page, "csv"))) == 1 + rows


def test_launches_are_those_at_both_ends(trace: Trace) -> None:
    lines = list(report_lines(trace, "launches", width=200))
    elided = next(place for place, line in enumerate(lines) if line.startswith("…"))
    assert lines[elided] == "… 1 000 more launches; to list all launches, use --format csv"
    assert lines[elided + 1].startswith("  launches of one kernel: tui-probe show launches ")
    assert (lines[elided - 1].split()[0], lines[elided + 2].split()[0]) == ("99", "1100")
    assert lines[-1].split()[0] == str(LAUNCHES - 1)


def test_a_report_in_a_hurry_counts_the_kernels_that_it_leaves_out(trace: Trace) -> None:
    assert "for 3 more kernels: tui-probe report" in run_report(trace, width=200, seconds=-1)
    assert "kernels more" not in run_report(trace, width=200)


def test_rows_are_spread_from_the_first_to_the_last() -> None:
    rows = range(1000, 3000)
    chosen = spread_rows(rows, 32)
    assert (len(chosen), chosen[0], chosen[-1]) == (32, 1000, 2999)
    assert {later - earlier for earlier, later in pairwise(chosen)} <= {64, 65}
    assert spread_rows([4, 5], 3) == [4, 5]
