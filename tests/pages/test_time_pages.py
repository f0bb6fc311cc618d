"""Pages of a trace in which launches were timed: kernels rank by their part of the GPU time."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import tui_probe
from tests.formats import check_formats
from tests.golden import golden
from tests.sizes import WIDTHS, golden_widths
from tests.trace.make import TraceWriter
from tui_probe.draw.spans import plain
from tui_probe.pages.kernel_detail import detail_lines
from tui_probe.pages.page_registry import report_lines
from tui_probe.pages.run_report import run_report
from tui_probe.probekit.page_kinds import Format
from tui_probe.trace.follow import open_trace
from tui_probe.trace.model import Trace
from tui_probe.verdicts.kernel_snapshot import kernel_snapshot


@pytest.fixture
def timed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Trace:
    """Timed both ways; without PTX; launched once, with the probe; never timed; and one sample of many launches."""
    monkeypatch.chdir(tmp_path)
    writer = TraceWriter(Path("timed"))
    writer.start()
    writer.kernel(0, "never_timed")
    writer.kernel(1, "both_ways")
    writer.kernel(2, "library", "skipped", reason="no PTX in image")
    writer.kernel(3, "once")
    writer.kernel(4, "one_of_many", "skipped", reason="no PTX in image")
    writer.launch(0)
    for i in range(6):
        launch = writer.launch(1)
        writer.time(1, launch, 30_000 + 1000 * i, probed=True)
        writer.pass_through(1, "not sampled")
        writer.time(1, launch + 1, 20_000 + 500 * i, host=2000 if i < 4 else None)
    for i in range(200):
        writer.pass_through(2, "no PTX in image")
        if i % 20 == 19:
            writer.time(2, i, 5_000_000 + 40_000 * (i % 7), weight=20)
    writer.time(3, writer.launch(3), 250_000, probed=True)
    for _ in range(3):
        writer.pass_through(4, "no PTX in image")
    writer.time(4, 0, 900_000, weight=3)
    writer.exit()
    writer.run_json(ended="2026-07-25T17:21:05+00:00")
    return open_trace("timed")


def text_of(trace: Trace, form: Format = "table", **options: Any) -> str:
    return "".join(f"{line}\n" for line in report_lines(trace, "kernels", form, **options))


def test_kernels_rank_by_their_share(timed: Trace) -> None:
    golden_widths("timed-kernels.txt", lambda width, ascii_only: text_of(timed, width=width, ascii_only=ascii_only))
    for width in WIDTHS:
        assert list(run_report(timed, width=width).splitlines()[:5]) == text_of(timed, width=width).splitlines()[:5]


def test_the_exit_report_ranks_them_too(timed: Trace) -> None:
    head, mark, table = text_of(timed, width=120).partition("Probed kernels: ")
    report = run_report(timed, width=120)
    assert report.startswith(head)
    assert mark + table in report


def test_timed_kernels_have_the_same_cells_in_all_formats(timed: Trace) -> None:
    golden("timed-kernels.json", text_of(timed, "json"))
    check_formats(lambda form: text_of(timed, form, width=400), "kernels")


def test_shares_add_up_and_unknown_doubts_are_null(timed: Trace) -> None:
    kernels = {load["name"]: load for load in json.loads(text_of(timed, "json"))["kernels"]}
    assert sum(kernel["time_share"] or 0 for kernel in kernels.values()) == pytest.approx(1)
    assert kernels["never_timed"]["time_share"] is kernels["never_timed"]["time_mean_ms"] is None
    assert (kernels["once"]["time_of"], kernels["library"]["time_of"]) == ("probed", "original")
    assert kernels["one_of_many"]["time_total_doubt_ms"] is None
    assert kernels["library"]["time_total_doubt_ms"] > 0
    assert kernels["both_ways"]["time_samples_host_bound"] == 4


@pytest.mark.parametrize("name", ["both_ways", "once", "one_of_many", "never_timed"])
def test_the_page_of_a_kernel(timed: Trace, name: str) -> None:
    kernel = next(kernel for kernel in timed.kernels if kernel.name == name)
    lines = [plain(line).rstrip() for line in detail_lines(kernel_snapshot(kernel, timed.state.device), 118)]
    golden("timed-kernel.txt", "\n".join(lines) + "\n", name, width=118)


def test_times_in_python(timed: Trace) -> None:
    kernel = tui_probe.open(timed.directory).kernel("library")
    assert kernel.gpu_time is not None
    assert kernel.gpu_time.preferred_variant.samples == 10
    assert kernel.time_share == pytest.approx(0.9, abs=0.1)
    assert "share" in repr(tui_probe.open(timed.directory).kernels)
