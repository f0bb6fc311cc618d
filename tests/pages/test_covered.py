"""Probed share of a run, in a sentence and as data."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.trace.make import TraceWriter
from tui_probe.pages.page_registry import report_lines
from tui_probe.pages.run_report import run_report
from tui_probe.trace.follow import open_trace
from tui_probe.verdicts.probe_coverage import percent, probe_coverage

CLOSED = "SASS of {} is not probed by default code closed-library"


@pytest.fixture
def writer(tmp_path: Path) -> TraceWriter:
    writer = TraceWriter(tmp_path / "trace")
    writer.start()
    return writer


def closed(writer: TraceWriter, index: int, library: str, *, ns: int | None = None, launches: int = 1) -> None:
    reason = CLOSED.format(library)
    writer.kernel(index, f"kernel_{index}", "skipped", reason=reason)
    for _ in range(launches):
        number = writer.pass_through(index, reason)
        if ns is not None:
            writer.time(index, number, ns)


def sentence(writer: TraceWriter) -> str:
    coverage = probe_coverage(open_trace(writer.directory))
    assert coverage is not None
    return coverage.sentence


def test_shares_are_of_gpu_time_and_libraries_are_named_as_people_call_them(writer: TraceWriter) -> None:
    writer.kernel(0, "mine")
    writer.time(0, writer.launch(0), 960_000, probed=True)
    for index, library in enumerate(("libcudnn_cnn.so.9", "libcudnn_ops.so.9", "libcublasLt.so.13", "nvjet_"), 1):
        closed(writer, index, library, ns=10_000)
    assert sentence(writer) == (
        "96% of GPU time (1 of 5 kernels); not probed: 2 kernels of cuBLAS (probe with --machine-code all); "
        "2 kernels of cuDNN (probe with --machine-code all)"
    )


def in_a_graph(writer: TraceWriter, kernels: tuple[int, ...], ns: int) -> None:
    """Ten replays of a graph of these kernels one behind the other, each replay taking so long."""
    writer.lines(f"[graph] 0 executable 0x1 nodes {len(kernels)} kernels {len(kernels)} flags 0 replays 0")
    for node, kernel in enumerate(kernels):
        shape = "grid 8 1 1 block 128 1 1 shared 0"
        writer.lines(f"[node] 0 {node} kernel in - after - kernel {kernel} {shape} captured -")
    writer.lines("[graph] 0 replayed 10", f"[time] graph 0 replay 1 original ns {ns} for 10 call 5000")


def test_graph_replays_count_in_gpu_time(writer: TraceWriter) -> None:
    """They are timed as wholes: a kernel that was timed by itself is not counted twice."""
    for index in range(3):
        writer.kernel(index, f"kernel_{index}")
    writer.time(0, writer.launch(0), 10_000, probed=True)
    in_a_graph(writer, (0, 1, 2), 89_000)
    assert sentence(writer) == (
        "12% of GPU time (1 of 3 kernels), 88% in graph replays (0 of 2 kernels recorded); not probed: 2 kernels"
        " (no launch recorded)"
    )
    trace = open_trace(writer.directory)
    assert trace.kernels[0].time_share == pytest.approx(11 * 10_000 / (11 * 10_000 + 10 * 79_000))


def test_a_graph_whose_kernels_were_all_timed_has_no_part_of_its_own(writer: TraceWriter) -> None:
    writer.kernel(0, "mine")
    writer.time(0, writer.launch(0), 10_000, probed=True)
    in_a_graph(writer, (0,), 30_000)
    assert sentence(writer) == "100% of GPU time (1 of 1 kernel)"


def test_shares_are_of_launches_without_times(writer: TraceWriter) -> None:
    writer.kernel(0, "mine")
    for _ in range(3):
        writer.launch(0)
    closed(writer, 1, "libother.so")
    assert sentence(writer) == (
        "75% of launches (1 of 2 kernels); not probed: 1 kernel of libother.so (probe with --machine-code all)"
    )


def test_a_kernel_of_which_no_launch_had_the_probe_is_not_covered(writer: TraceWriter) -> None:
    writer.kernel(0, "mine")
    writer.launch(0)
    writer.kernel(1, "large")
    writer.pass_through(1, "probe memory full code probe-memory")
    missing = "1 kernel (no launch recorded: probe memory full)"
    assert sentence(writer) == f"50% of launches (1 of 2 kernels); not probed: {missing}"


def test_covered_omits_captured_launches(writer: TraceWriter) -> None:
    writer.kernel(0, "mine")
    writer.launch(0)
    writer.kernel(1, "captured")
    writer.pass_through(1, "stream is capturing code capturing")
    assert sentence(writer) == "100% of launches (1 of 1 kernel)"


def test_smallest_shares_are_summed(writer: TraceWriter) -> None:
    for index in range(5):
        writer.kernel(index, f"k{index}", "failed", reason=f"because {index}")
        for _ in range(5 - index):
            writer.pass_through(index, "because")
    assert sentence(writer).endswith("1 kernel (because 0); 1 kernel (because 1); 1 kernel (because 2); 2 more kernels")
    assert sentence(writer).startswith("0% of launches (0 of 5 kernels); not probed: ")


def test_everything(writer: TraceWriter) -> None:
    writer.kernel(0, "mine")
    writer.launch(0)
    assert sentence(writer) == "100% of launches (1 of 1 kernel)"


def test_nothing(writer: TraceWriter) -> None:
    assert probe_coverage(open_trace(writer.directory)) is None


@pytest.mark.parametrize(
    ("share", "text"),
    [(1.0, "100%"), (0.99996, "99.9%"), (0.992, "99.2%"), (0.96, "96%"), (0.004, "less than 1%"), (0.0, "0%")],
)
def test_less_than_all_never_reads_as_all(share: float, text: str) -> None:
    assert percent(share) == text


def test_the_report_says_it_first_and_json_has_it(writer: TraceWriter) -> None:
    writer.kernel(0, "mine")
    writer.launch(0)
    closed(writer, 1, "libcufft.so.12")
    trace = open_trace(writer.directory)
    lines = run_report(trace, width=200).splitlines()
    sentence = next(line for line in lines if line.startswith("Probed "))
    assert sentence == (
        "Probed kernels: 50% of launches (1 of 2 kernels); "
        "not probed: 1 kernel of cuFFT (probe with --machine-code all)"
    )
    assert lines.index(sentence) < next(number for number, line in enumerate(lines) if line.startswith("#"))
    record = json.loads("".join(report_lines(trace, "kernels", "json")))["covered"]
    assert record == {
        "kernels": 2,
        "kernels_probed": 1,
        "share_probed": 0.5,
        "share_of": "launches",
        "graphs": None,
        "left_out": [{"reason": "of cuFFT (probe with --machine-code all)", "kernels": 1, "share": 0.5}],
    }


def test_the_way_is_a_column_where_a_kernel_was_grafted(writer: TraceWriter) -> None:
    writer.kernel(0, "from_ptx")
    writer.launch(0)
    before = "\n".join(report_lines(open_trace(writer.directory), width=200))
    writer.kernel(1, "grafted", way="graft")
    writer.launch(1)
    closed(writer, 2, "libcufft.so.12")
    after = list(report_lines(open_trace(writer.directory), width=200))
    assert " mode " not in before
    title = next(line for line in after if line.startswith("#"))
    at = title.index(" mode ") + 1
    rows = {line.split()[1]: line[at : at + 5].strip() for line in after if line[:1].isdigit()}
    assert rows == {"from_ptx": "PTX", "grafted": "graft", "kernel_2": "–"}
    kernels = json.loads("".join(report_lines(open_trace(writer.directory), "kernels", "json")))["kernels"]
    assert {kernel["name"]: kernel["way"] for kernel in kernels} == {
        "from_ptx": "ptx",
        "grafted": "graft",
        "kernel_2": None,
    }


def test_report_says_that_another_run_has_launches_that_were_missed(writer: TraceWriter) -> None:
    """Once, with the option that lets launches wait."""
    missed = "the kernel was still being prepared code being-prepared"
    for index, name in enumerate(("first", "second")):
        writer.kernel(index, name)
        writer.pass_through(index, missed)
        writer.launch(index)
    report = " ".join(run_report(open_trace(writer.directory)).partition("Not probed\n")[2].split())
    assert report.startswith(
        "1 of 2 launches ran unprobed, the kernel was still being prepared: #0 first fix: Kernels are prepared"
    )
    assert report.count("or run it again: prepared kernels are cached") == 1
    assert report.endswith("the kernel was still being prepared: #1 second")


def test_kernel_whose_launches_all_came_too_early_has_their_reason(writer: TraceWriter) -> None:
    """It was prepared behind its last launch: probed, and yet without a result. A measured kernel has no reason."""
    for index, name in enumerate(("early", "measured")):
        writer.kernel(index, name)
        writer.pass_through(index, "the kernel was still being prepared code being-prepared")
    writer.launch(1)
    trace = open_trace(writer.directory)
    kernels = json.loads("".join(report_lines(trace, "kernels", "json")))["kernels"]
    shown = {kernel["name"]: (kernel["reason"], kernel["reason_code"]) for kernel in kernels}
    assert shown == {"early": ("the kernel was still being prepared", "being-prepared"), "measured": (None, None)}
    summary = "\n".join(report_lines(trace, "summary"))
    assert summary.count("no result was saved: the kernel was still being prepared") == 1
