"""Findings in the kernel table: largest shares first, a few at a time, and again as results come."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from tests.ui.conftest import on_stage
from tests.ui.synthetic import TraceWriter
from tui_probe.trace.follow import open_trace
from tui_probe.ui.live import results
from tui_probe.ui.live.results import find_more, is_due
from tui_probe.ui.session import Session
from tui_probe.verdicts import finding_summary as brief_module
from tui_probe.verdicts.finding_summary import FindingSummary, summarize_findings
from tui_probe.verdicts.kernel_snapshot import KernelSnapshot, kernel_snapshot

if TYPE_CHECKING:
    from pathlib import Path

    from tui_probe.trace.model import Trace


@pytest.fixture
def trace(tmp_path: Path) -> Trace:
    writer = TraceWriter(tmp_path / "trace")
    for name in ("first", "second", "third"):
        kernel = writer.kernel(name)
        writer.result(kernel, writer.launch(kernel))
    writer.kernel("never launched")
    writer.exit()
    return open_trace(writer.directory)


@pytest.fixture
def rows(trace: Trace) -> tuple[KernelSnapshot, ...]:
    """The third has most of the time."""
    return tuple(replace(kernel_snapshot(k, None), time_share=k.index / 10) for k in trace.kernels)


def test_findings_come_by_share(
    trace: Trace, rows: tuple[KernelSnapshot, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(results, "PORTION_SECONDS", -1.0)  # one in a tick
    seen: dict[int, int] = {}
    for index in (2, 1, 0):
        findings = find_more(trace, rows, seen, is_running=True)
        assert list(findings) == [index]
        assert findings[index].words == summarize_findings(trace, trace.kernels[index]).words != ""
    assert find_more(trace, rows, seen, is_running=True) == {}


@pytest.mark.parametrize(
    ("results", "seen", "running", "again"),
    [(0, 0, True, False), (1, 0, True, True), (7, 4, True, True), (15, 9, True, False), (18, 9, True, True),
     (15, 9, False, True), (7, 7, False, False)],
)  # fmt: skip
def test_a_kernel_is_read_again_as_its_results_double_and_at_the_end(
    results: int, seen: int, running: bool, again: bool
) -> None:
    assert is_due(results, seen, is_running=running) is again


def test_notable_kernels_without_results_are_read_once_at_the_end(
    trace: Trace, rows: tuple[KernelSnapshot, ...]
) -> None:
    silent = [replace(row, results=0, time_share=share) for row, share in zip(rows[:3], (0.001, 0.3, 0.6), strict=True)]
    seen: dict[int, int] = {}
    assert find_more(trace, silent, seen, is_running=True) == {}
    assert sorted(find_more(trace, silent, seen, is_running=False)) == [1, 2]
    assert find_more(trace, silent, seen, is_running=False) == {}


def test_kernels_whose_results_were_lost_are_read_at_the_end(trace: Trace, rows: tuple[KernelSnapshot, ...]) -> None:
    """Its launch may have told of a fault, or reach few SMs."""
    lost = [
        replace(row, results=0, time_share=None, failures=("1 result dropped",) if row.index == 1 else ())
        for row in rows[:3]
    ]
    assert sorted(find_more(trace, lost, {}, is_running=False)) == [1]
    trace.state.faults.append(json.dumps({"kind": "race", "kernel": rows[2].name, "place": {}}))
    assert sorted(find_more(trace, lost, {}, is_running=False)) == [1, 2]


def test_a_large_result_is_not_read_unasked(trace: Trace, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(brief_module, "MAX_UNASKED_BYTES", 100)
    assert "open the kernel to read them" in summarize_findings(trace, trace.kernels[0]).words


def test_a_result_that_cannot_be_read_says_why(trace: Trace) -> None:
    path = trace.results.path(0)
    assert path is not None
    path.write_bytes(b"cut")
    text = summarize_findings(trace, trace.kernels[0]).words
    assert "the file is truncated" in text
    assert not text.startswith(";")


async def test_the_page_of_results_has_a_few_lines_for_each_kernel(tmp_path: Path) -> None:
    writer = TraceWriter(tmp_path / "many")
    writer.event("[exec] save result/stray.bin size 4144")
    for name in ("often", "seldom"):
        kernel = writer.kernel(name)
        for _ in range(300 if name == "often" else 2):
            writer.result(kernel, writer.launch(kernel))
    async with on_stage(Session(traces=(writer.directory,)), (120, 50)) as stage:
        await stage.press("0", "r")
        lines = [line.strip() for line in stage.inside.split("\n")]
        assert "300 results, 32 of them read (evenly spaced from first to last)" in lines, stage.text
        assert sum(line.startswith("running  ") for line in lines) == 1
        assert sum(" cycles per slot" in line for line in lines) == 2
        assert "1 result of unknown kernels" in lines
        for _ in range(3):
            writer.result(1, writer.launch(1))
        await stage.refresh()
        assert stage.text.count(" cycles per slot") == 5


async def test_the_table_says_what_was_found(trace: Trace) -> None:
    finding = summarize_findings(trace, trace.kernels[1]).words.partition(",")[0]
    async with on_stage(Session(traces=(trace.directory,)), (160, 40)) as stage:
        for _ in range(3):  # read, told to the feed, shown
            await stage.refresh()
        assert stage.text.count(finding) == 3
        assert "found in launch 0 by -p block_sched" in stage.text  # the page of the selected kernel


async def test_page_of_a_kernel_says_that_its_findings_are_computed(
    trace: Trace, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(results.KernelFindings, "update", lambda *_, **__: None)  # not read yet
        async with on_stage(Session(traces=(trace.directory,)), (160, 40)) as stage:
            stage.live.table.select(1)
            await stage.refresh()
            assert "findings        computing…" in stage.text
            patch.undo()
            for _ in range(3):  # read, told to the feed, shown
                await stage.refresh()
            assert "computing…" not in stage.text
            assert "found in launch 1 by -p block_sched" in stage.text
            stage.live.table.select(3)
            await stage.refresh()
            assert "computing…" not in stage.text, "a kernel without results has nothing to compute"


async def test_the_key_of_the_worst_goes_through_the_kernels_that_stand_out(tmp_path: Path) -> None:
    writer = TraceWriter(tmp_path / "several")
    for number in range(4):
        writer.kernel(f"kernel_{number}", "skipped", "no PTX in image")
    writer.exit()
    async with on_stage(Session(traces=(writer.directory,)), (120, 40)) as stage:
        process = stage.live.process
        assert process is not None
        texts = {1: "! first words", 2: "as it should be", 3: "! last words"}
        stage.app.feed.add_findings(process, {index: FindingSummary(text) for index, text in texts.items()})
        await stage.refresh()
        for index, notice in ((1, "flagged kernel 1 of 2: ! first words"), (3, "flagged kernel 2 of 2: ! last words")):
            await stage.press("exclamation_mark")
            assert stage.live.table.selected_index == index
            assert notice in stage.text
        await stage.press("exclamation_mark")
        assert stage.live.table.selected_index == 1, "after the last comes the first"
        await stage.press("down", "exclamation_mark")
        assert stage.live.table.selected_index == 1, "from elsewhere it goes to the first"
