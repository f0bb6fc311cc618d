"""Reports of Nsight Compute, read through a stand-in for NVIDIA's package."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, cast

import pytest

from tests.importers.fake_report import Action, Metric, Package, SourceLocation, launch
from tests.importers.files import details, identity, write
from tui_probe.cli.main import main
from tui_probe.errors import ImportFileError
from tui_probe.nsight.analysis.launch_means import counts_by_line
from tui_probe.nsight.analysis.probed_counts import probed_lines
from tui_probe.nsight.importers.file_kinds import tool_of
from tui_probe.nsight.importers.ncu import read_ncu
from tui_probe.nsight.importers.ncu_table import NcuTable
from tui_probe.nsight.pages import source_page
from tui_probe.nsight.pages.ncu_pages import NcuReport
from tui_probe.nsight.pages.opening import NcuSources, ncu_page
from tui_probe.nsight.pages.source_page import lines_page, probed_accesses
from tui_probe.probekit.lines import LineRow
from tui_probe.trace.follow import open_trace
from tui_probe.trace.source_lines import SourceLine

if TYPE_CHECKING:
    from tui_probe.nsight.pages.explanations import NcuPage
    from tui_probe.trace.model import Trace

TIME, BYTES = "gpu__time_duration.sum", "dram__bytes.sum"


@pytest.fixture
def report(tmp_path: Path) -> Path:
    path = tmp_path / "run.ncu-rep"
    path.write_bytes(b"NVR\0whatever")
    return path


def recorded(monkeypatch: pytest.MonkeyPatch, package: Package) -> None:
    monkeypatch.setitem(sys.modules, "ncu_report", package)  # type: ignore[arg-type]


def test_pages_of_a_report(monkeypatch: pytest.MonkeyPatch, report: Path) -> None:
    metrics = {TIME: Metric(2.5, of="us"), BYTES: Metric(4, of="Kbyte"), "launch__func_cache_config": Metric("Prefer")}
    recorded(monkeypatch, Package([launch("scale(float*)", grid, **metrics) for grid in (4, 8)]))
    table = read_ncu([report])
    assert [(row.kernel, row.grid, row.block, row.number) for row in table.launches] == [
        ("scale(float*)", (4, 1, 1), (64, 1, 1), 0),
        ("scale(float*)", (8, 1, 1), (64, 1, 1), 1),
    ]
    assert (table.column(TIME, unit="ns").tolist(), table.column(BYTES).tolist()) == ([2500, 2500], [4000, 4000])
    assert "Prefer" in table.texts.values()
    (traffic,) = ncu_page("traffic", NcuSources(table)).record()["traffic"]
    assert (traffic["dram_bytes"], traffic["time_ns"]) == (8000, 5000)
    assert len(ncu_page("averages", NcuSources(table)).rows) == 2 * 8


def test_report_without_the_package_says_what_to_do(monkeypatch: pytest.MonkeyPatch, report: Path) -> None:
    monkeypatch.setitem(sys.modules, "ncu_report", None)
    assert tool_of(report) == "ncu"
    with pytest.raises(ImportFileError, match=r"run\.ncu-rep: .*tui-probe\[ncu\].*ncu --import .*run\.ncu-rep"):
        read_ncu([report])


def test_report_that_is_damaged_or_empty_is_named(monkeypatch: pytest.MonkeyPatch, report: Path) -> None:
    recorded(monkeypatch, Package([]))
    with pytest.raises(ImportFileError, match=r"run\.ncu-rep: the report has no kernels"):
        read_ncu([report])
    broken = report.rename(report.with_name("broken.ncu-rep"))
    with pytest.raises(ImportFileError, match=r"broken\.ncu-rep: ncu-report cannot read this report .*bad header"):
        read_ncu([broken])


def test_report_that_is_cut_off_is_refused(monkeypatch: pytest.MonkeyPatch, report: Path) -> None:
    """The package gives launches without a name and without a metric for it: names are the last part of a report."""
    recorded(monkeypatch, Package([Action(None, {})]))
    with pytest.raises(ImportFileError, match=r"run\.ncu-rep: truncated"):
        read_ncu([report])


@pytest.mark.parametrize("size", [100, 20_000, 150_000, -500])
def test_recorded_report_that_is_cut_off_is_refused(tmp_path: Path, size: int) -> None:
    pytest.importorskip("ncu_report")
    path = tmp_path / "part.ncu-rep"
    path.write_bytes((RECORDED / "stores.ncu-rep").read_bytes()[:size])
    with pytest.raises(ImportFileError, match=r"part\.ncu-rep: "):
        read_ncu([path])


def test_identifiers_of_a_report_are_those_of_csv(monkeypatch: pytest.MonkeyPatch, report: Path) -> None:
    metrics = {"launch__device_id": Metric(0), "launch__stream_id": Metric(7)}
    recorded(monkeypatch, Package([launch("k(int)", 4, **metrics)]))
    (only,) = read_ncu([report]).launches
    assert (only.device, only.stream) == ("0", "7")


CODE = {
    0x7F00: ("S2R R0, SR_TID.X", SourceLocation("/src/k.cu", 5)),
    0x7F10: ("LDG.E R2,  [R4]", SourceLocation("/src/k.cu", 6)),
    0x7F20: ("STG.E [R4], R2", SourceLocation("/src/k.cu", 6)),
    0x7F30: ("EXIT", None),
}


def counted(executed: float = 8) -> Action:
    """A launch that executes every instruction so often."""
    stalled = "smsp__pcsamp_warps_issue_stalled_"
    by_instruction = {
        "inst_executed": dict.fromkeys(CODE, executed),
        "memory_l2_theoretical_sectors_global": {0x7F10: 4 * executed, 0x7F20: 8 * executed, 0x7F00: 0},
        "memory_l2_theoretical_sectors_global_ideal": {0x7F10: 4 * executed, 0x7F20: 4 * executed},
        f"{stalled}long_scoreboard": {0x7F20: 30},
        f"{stalled}wait": {0x7F20: 3, 0x7F00: 1},
        f"{stalled}wait_not_issued": {0x7F20: 3},
    }
    metrics = {name: Metric(1, values) for name, values in by_instruction.items()}
    return replace(launch("k(int)", 4, **metrics), code=CODE)


def test_counters_of_lines_and_instructions(monkeypatch: pytest.MonkeyPatch, report: Path) -> None:
    recorded(monkeypatch, Package([counted(8), counted(16)]))
    table = read_ncu([report])
    lines = ncu_page("lines", NcuSources(table)).record()["lines"]
    keys = ("place", "samples", "stall_reason", "executed", "requests", "sectors", "ideal")
    assert [tuple(row[key] for key in keys) for row in lines] == [
        ("k.cu:6", 33, "long_scoreboard", 24, 24, 144, 96),
        ("k.cu:5", 1, "wait", 12, None, 0, None),
        (None, 0, None, 12, None, None, None),
    ]
    sass = ncu_page("sass", NcuSources(table)).record()["sass"]
    assert [(row["offset"], row["instruction"], row["executed"]) for row in sass] == [
        (16 * place, " ".join(text.split()), 12) for place, (text, _) in enumerate(CODE.values())
    ]


TRACE = cast("Trace", SimpleNamespace(directory="trace"))


def measured(accesses: Sequence[tuple[str, int, int, int]], graft: object = None) -> Callable[[object], object]:
    """Lines of a trace: opcode, line of source or offset in SASS, requests and sectors of each access."""

    def lines_of(_: object) -> Iterator[object]:
        kernel = SimpleNamespace(demangled="k(int)", index=0, read_info=lambda: SimpleNamespace(graft=graft))
        for opcode, line, requests, sectors in accesses:
            source = None if graft else SourceLine("elsewhere/k.cu", line)
            row = LineRow(line, source, {"requests": requests, "sectors": sectors})
            yield SimpleNamespace(kernel=kernel, row=row, opcode=opcode)

    return lambda trace: SimpleNamespace(lines=lines_of(trace))


def test_probe_counts_pair_with_those_of_ncu(monkeypatch: pytest.MonkeyPatch, report: Path) -> None:
    accesses = [("ld.global.u32", 6, 8, 32), ("st.global.u32", 6, 8, 64), ("ld.global.u32", 5, 8, 1)]
    lines_of = measured(accesses)
    monkeypatch.setattr(source_page, "measured_lines", lines_of)
    recorded(monkeypatch, Package([counted()]))
    page = lines_page(NcuReport(read_ncu([report])), [TRACE])
    assert [(row.place, row.differences) for row in page.rows] == [
        ("k.cu:6", []),
        ("k.cu:5", ["sectors"]),
        (None, None),
    ]
    assert page.texts.findings == ["2 lines compared with a probe, 1 differ"]
    assert "≠ sectors" in "\n".join(page.text(160))


@pytest.mark.parametrize(("graft", "places"), [(None, (6, 6)), (SimpleNamespace(), (0x10, 0x20))])
def test_probe_counts_pair_with_instructions(
    monkeypatch: pytest.MonkeyPatch, report: Path, graft: object, places: tuple[int, int]
) -> None:
    """By the only load and the only store of a line in PTX; by the offset in SASS."""
    load, store = ("LDG.E", "STG.E") if graft else ("ld.global.u32", "st.global.u32")
    accesses = [(load, places[0], 8, 32), (store, places[1], 8, 65)]
    monkeypatch.setattr(source_page, "measured_lines", measured(accesses, graft))
    recorded(monkeypatch, Package([counted()]))
    page = ncu_page("sass", NcuSources(read_ncu([report]), [TRACE]))
    rows = {row["instruction"]: (row["probe_sectors"], row["differences"]) for row in page.record()["sass"]}
    assert rows["LDG.E R2, [R4]"] == (32, [])
    assert rows["STG.E [R4], R2"] == (65, ["sectors"])
    assert page.texts.findings == ["2 instructions compared with a probe, 1 differ"]


def test_instructions_of_equal_kind_in_a_line_are_not_compared(monkeypatch: pytest.MonkeyPatch, report: Path) -> None:
    """The compiler may move, merge or repeat them."""
    accesses = [("st.global.u32", 6, 8, 32), ("st.global.u32", 6, 8, 32)]
    monkeypatch.setattr(source_page, "measured_lines", measured([*accesses, ("ld.global.u32", 6, 8, 32)]))
    recorded(monkeypatch, Package([counted()]))
    page = ncu_page("sass", NcuSources(read_ncu([report]), [TRACE]))
    assert [row.counts.text for row in page.rows if row.probe_counts is not None] == ["LDG.E R2, [R4]"]
    assert page.texts.notes[-1].startswith("1 access not compared")


@pytest.mark.parametrize("page", ["lines", "sass"])
def test_trace_without_the_accesses_is_noted(monkeypatch: pytest.MonkeyPatch, report: Path, page: NcuPage) -> None:
    monkeypatch.setattr(source_page, "measured_lines", measured([]))
    recorded(monkeypatch, Package([counted()]))
    notes = ncu_page(page, NcuSources(read_ncu([report]), [TRACE])).texts.notes
    assert "run it with tui-probe run" in notes[-1]


@pytest.mark.parametrize("page", ["lines", "sass"])
def test_report_without_lines_names_the_options(monkeypatch: pytest.MonkeyPatch, report: Path, page: NcuPage) -> None:
    without = replace(counted(), code={address: (text, None) for address, (text, _) in CODE.items()})
    recorded(monkeypatch, Package([without]))
    (note,) = ncu_page(page, NcuSources(read_ncu([report]))).texts.notes
    assert note.startswith("the report has no source lines: ")
    assert "nvcc -lineinfo" in note
    assert "--import-source yes" in note
    recorded(monkeypatch, Package([without, replace(counted(), kernel="g(int)")]))
    (note,) = ncu_page(page, NcuSources(read_ncu([report]))).texts.notes
    assert "for 1 of 2 kernels" in note


def test_probe_counts_of_template_instances_and_of_repeated_traces_stay_apart(
    monkeypatch: pytest.MonkeyPatch, report: Path
) -> None:
    def lines_of(_: object) -> Iterator[object]:
        for index, (name, sectors) in enumerate((("void k<int>(int*)", 96), ("void k<long>(long*)", 7))):
            counted_values = {"requests": 8, "sectors": sectors}
            kernel = SimpleNamespace(demangled=name, index=index, read_info=lambda: None)
            yield SimpleNamespace(
                kernel=kernel, row=LineRow(1, SourceLine("/src/k.cu", 6), counted_values), opcode="ld.u32"
            )

    monkeypatch.setattr(source_page, "measured_lines", lambda trace: SimpleNamespace(lines=lines_of(trace)))
    launches = [replace(counted(), kernel=name) for name in ("void k<int>(int *)", "void k<long>(long *)")]
    recorded(monkeypatch, Package(launches))
    traces = [SimpleNamespace(directory="t"), SimpleNamespace(directory="u")]
    page = lines_page(NcuReport(read_ncu([report])), traces)  # type: ignore[arg-type]
    compared = [
        (row.counts.shape.kernel, row.probe_counts and row.probe_counts.sectors)
        for row in page.rows
        if row.probe_counts
    ]
    assert sorted(compared) == [("void k<int>(int *)", 96), ("void k<long>(long *)", 7)]


def test_csv_has_no_counters_of_instructions(tmp_path: Path) -> None:
    text = details([(identity(0, "f"), {("", TIME, "ns"): "1"})])
    page = ncu_page("lines", NcuSources(read_ncu([write(tmp_path, text)])))
    assert "--section SourceCounters" in "\n".join(page.texts.notes)


RECORDED = Path(__file__).parents[1] / "data" / "ncu"
ON_PAPER = {
    ("coalesced", 7): (256, 1024, 1024),
    ("strided", 13): (256, 8192, 1024),
    ("strided", 14): (256, 8192, 1024),
    ("sums", 20): (256, 1024, 1024),
    ("sums", 27): (32, 32, 32),
}
"""Requests, sectors and ideal sectors of each line of ``record/stores.cu`` that accesses global memory: 256 warps of 32
lanes, of 4 bytes side by side or 32 bytes apart; ``sums`` stores one value per block."""


def access_counts(table: NcuTable) -> dict[tuple[str, int | None], tuple[float | None, ...]]:
    return {
        (line.shape.kernel.partition("(")[0], line.line): (line.requests, line.sectors, line.ideal)
        for line in counts_by_line(table)
        if line.requests is not None
    }


def test_lines_of_a_recorded_report_are_as_on_paper() -> None:
    pytest.importorskip("ncu_report")
    assert access_counts(read_ncu([RECORDED / "stores.ncu-rep"])) == ON_PAPER


def test_recorded_report_without_lines_has_the_same_counts() -> None:
    pytest.importorskip("ncu_report")
    sums: dict[str, tuple[int, ...]] = {}
    for (kernel, _), counts in ON_PAPER.items():
        sums[kernel] = tuple(map(sum, zip(sums.get(kernel, (0, 0, 0)), counts, strict=True)))
    counts_by_line = access_counts(read_ncu([RECORDED / "plain.ncu-rep"]))
    assert {kernel: counts for (kernel, _), counts in counts_by_line.items()} == sums
    assert {line for _, line in counts_by_line} == {None}


def test_lines_of_a_report_and_a_trace_of_one_program_are_equal() -> None:
    """The trace and the report are of one program and one GPU; only the report counts what probes do not."""
    pytest.importorskip("ncu_report")
    trace = open_trace(RECORDED / "stores_trace")
    by_line = probed_lines(probed_accesses([trace]))
    counted = {(place.kernel.partition("(")[0], place.line): tuple(counts) for place, counts in by_line.items()}
    table = read_ncu([RECORDED / "stores.ncu-rep"])
    assert counted == {line: counts[:2] for line, counts in access_counts(table).items()}
    page = lines_page(NcuReport(table), [trace])
    assert page.texts.findings == ["5 lines compared with a probe, 0 differ"]
    sass = ncu_page("sass", NcuSources(table, [trace]))
    assert sass.texts.findings == ["5 instructions compared with a probe, 0 differ"]
    sectors = ncu_page("sectors", NcuSources(table, [trace])).record()["sectors"]
    assert [row["differences"] for row in sectors] == [[]] * 6


def test_trace_that_a_page_does_not_use_is_reported(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    text = details([(identity(0, "f"), {("", TIME, "ns"): "1"})])
    path, trace = write(tmp_path, text), RECORDED / "stores_trace"
    for page, used in (("kernels", False), ("sectors", True)):
        assert main(["import", "ncu", str(path), "--page", page, "--trace", str(trace)]) == 0
        assert ("use --trace with --page critical or lines or sass or sectors" in capfd.readouterr().err) is not used
