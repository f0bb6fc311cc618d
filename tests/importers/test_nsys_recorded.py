"""Reports of nsys about its own recording: messages, graphs as wholes, ranges that were cut off, GPUs by process."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.importers.export import CALL, KERNEL, PROCESS, Table, call, kernel, span, tables, write_export
from tui_probe.errors import ImportFileError
from tui_probe.nsight.importers.nsys import read_nsys
from tui_probe.nsight.importers.nsys_model import NsysReport
from tui_probe.nsight.pages.nsys_pages import gaps_page, kernels_page, ranges_page, totals_page
from tui_probe.nsight.pages.nsys_profile import NsysSources
from tui_probe.nsight.pages.timeline import StreamTimeline, stream_labels

GRAPH = ("start", "end", "deviceId", "contextId", "streamId", "correlationId", "globalPid", "graphId", "graphExecId")


def diagnostics(*messages: tuple[int, str]) -> dict[str, Table]:
    return {"DIAGNOSTIC_EVENT": (("severity", "text"), messages)}


def traced(*kinds: str) -> dict[str, Table]:
    names = [(f"PROCESS_0:COLLECT_{kind}_TRACE", "true") for kind in kinds]
    return {"META_DATA_CAPTURE": (("name", "value"), names)}


def read(folder: Path, there: dict[str, Table]) -> NsysReport:
    return read_nsys([write_export(folder / "x.sqlite", there)])


def one_kernel() -> dict[str, Table]:
    return tables([kernel(100, 150, 1)], [call(10, 12, 1)], [span(5, 30, "step")])


def test_warnings_of_the_recorder_are_the_first_notes(tmp_path: Path) -> None:
    messages = diagnostics((1, "Started."), (2, "Some CUDA events are\nmissing."), (3, "It broke."), (4, "Verbose."))
    there = one_kernel() | messages | traced("CUDA")
    del there["NVTX_EVENTS"]
    assert read(tmp_path, there).notes == (
        "nsys reports: Some CUDA events are missing.",
        "nsys reports: It broke.",
        "no NVTX ranges were recorded: profile with nsys profile --trace=cuda,nvtx",
    )


def test_repeated_and_foreign_messages_are_few_notes(tmp_path: Path) -> None:
    messages = [(2, f"Lost {number}.") for number in range(7)] + [(2, "Lost 0."), (2, "No OpenGL events collected.")]
    notes = read(tmp_path, one_kernel() | diagnostics(*messages)).notes
    assert len(notes) == 6
    assert notes[0] == "nsys reports: Lost 0. (2 times)"
    assert notes[-1].startswith("nsys reports 2 more warnings")


def test_advice_does_not_repeat_what_was_done(tmp_path: Path) -> None:
    there = one_kernel() | traced("CUDA", "NVTX")
    del there["NVTX_EVENTS"]
    assert read(tmp_path, there).notes == ("no NVTX ranges were recorded, although nsys traced NVTX",)


@pytest.mark.parametrize("asked", [True, False])
def test_empty_capture_says_why(tmp_path: Path, asked: bool) -> None:
    there = diagnostics((3, "CUPTI could not be loaded.")) | (traced("CUDA") if asked else {})
    with pytest.raises(ImportFileError) as raised:
        read(tmp_path, there)
    before, _, after = str(raised.value).partition("nsys reports: CUPTI could not be loaded.")
    assert before.endswith("x.sqlite: ")
    assert ("--trace=cuda,nvtx" in after) is not asked


def test_range_without_an_end_lasts_until_that_of_the_capture(tmp_path: Path) -> None:
    spans = [span(5, None, "training"), span(8, 30, "step"), span(40, None, "late")]
    there = tables([kernel(100, 150, 1), kernel(200, 900, 2)], [call(10, 12, 1), call(60, 70, 2)], spans)
    report = read(tmp_path, there)
    assert report.notes == (
        "2 NVTX ranges were never closed; they are shown until the end of the capture: “training”, “late”",
    )
    rows = [(row.name, row.level, row.kernels, row.host_end) for row in ranges_page(NsysSources(report)).rows]
    assert rows == [("training", 0, 2, 900), ("step", 1, 1, 30), ("late", 1, 1, 900)]


def with_graphs(rows: Sequence[Sequence[object]], calls: Sequence[Sequence[object]]) -> dict[str, Table]:
    there = tables([kernel(100, 124, 1)], [call(10, 12, 1), *calls], [span(5, 90, "decode")])
    return there | {"CUPTI_ACTIVITY_KIND_GRAPH_TRACE": (GRAPH, rows)}


def test_whole_graphs_are_rows_of_their_own(tmp_path: Path) -> None:
    rows = [(200, 688, 0, None, 7, 2, PROCESS, 5, 105), (688, 1176, 0, None, 7, 3, PROCESS, 5, 105)]
    sources = NsysSources(read(tmp_path, with_graphs(rows, [call(20, 30, 2), call(40, 50, 3)])))
    totals = [(row.name, row.total.launches, row.total.total, row.total.share) for row in totals_page(sources).rows]
    assert totals == [("CUDA graph 5", 2, 976, 0.976), ("f(int)", 1, 24, 0.024)]
    (note,) = sources.report.notes
    assert "97.6 % of the GPU time" in note
    assert "--cuda-graph-trace=node" in note
    (decode,) = ranges_page(sources).rows
    assert (decode.kernels, decode.graphs, decode.busy) == (1, 2, 1000)
    assert [(gap.gap.start, gap.gap.length) for gap in gaps_page(sources).rows] == [(124, 76)]
    text = "\n".join(kernels_page(sources).text(120))
    assert "1 kernel, 2 graph executions, 1 stream" in text
    assert [row.has_few_blocks for row in kernels_page(sources).rows] == [None] * 3
    assert "CUDA graph 5" in StreamTimeline(sources).lanes[0].names


def test_graphs_of_the_same_number_are_distinguished(tmp_path: Path) -> None:
    other = PROCESS + (1 << 24)
    rows = [(200, 300, 0, None, 7, 2, PROCESS, 5, 1), (300, 400, 0, None, 7, 3, PROCESS, 5, 2),
            (300, 400, 0, None, 7, 2, other, 5, 1)]  # fmt: skip
    page = totals_page(NsysSources(read(tmp_path, with_graphs(rows, []))))
    assert {row.name for row in page.rows} == {
        "CUDA graph 5 (process 7, executable 1)",
        "CUDA graph 5 (process 7, executable 2)",
        "CUDA graph 5 (process 8)",
        "f(int)",
    }


def test_devices_are_those_of_the_machine(tmp_path: Path) -> None:
    """Both processes call their GPU device 0; their streams have the same number."""
    other = PROCESS + (1 << 24)
    second = (*kernel(100, 150, 1)[:5], other, *kernel(100, 150, 1)[6:])
    there = {
        "CUPTI_ACTIVITY_KIND_KERNEL": (KERNEL, [kernel(100, 150, 1), second, kernel(200, 250, 2)]),
        "CUPTI_ACTIVITY_KIND_RUNTIME": (CALL, [call(10, 12, 1)]),
        "TARGET_INFO_GPU": (("id", "name", "smCount"), [(0, "Small", 2), (1, "Large", 132), (2, "Other", 2)]),
        "TARGET_INFO_CUDA_DEVICE": (("gpuId", "cudaId", "pid"), [(1, 0, 7), (2, 0, 8), (None, 1, 7)]),
    }
    sources = NsysSources(read(tmp_path, there))
    assert [(row.process, row.device, row.has_few_blocks) for row in kernels_page(sources).rows] == [
        (7, 1, True),
        (8, 2, False),
        (7, 1, True),
    ]
    assert [(gap.stream.process, gap.gap.length) for gap in gaps_page(sources).rows] == [(7, 50)]
    assert stream_labels(sources.report.kernels.streams) == ["7 GPU 1 stream 7", "8 GPU 2 stream 7"]
    assert len(StreamTimeline(sources).lanes) == 2
