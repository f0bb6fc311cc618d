"""Advice about a kernel is looked up by the code of the reason, not by words that occur in it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.trace.make import TraceWriter
from tui_probe.pages.page_registry import report_lines
from tui_probe.reasons import Reason, because, read_reason
from tui_probe.trace.follow import open_trace
from tui_probe.verdicts.probe_coverage import kernel_advice

FULL_DISK = "./trace/Nov21_024500_7/kernel/0_a9/original.bin: No space left on device"


def test_full_disk_is_not_full_trace() -> None:
    """The path has 'trace' in it, and 'kernel'."""
    advice = kernel_advice("failed", read_reason(f"{FULL_DISK} code disk-full"))
    assert "--max-trace-bytes" not in advice
    assert "The trace's disk or your quota is full" in advice
    assert "--tracedir" in advice


def test_host_memory_is_not_probe_memory() -> None:
    advice = kernel_advice("failed", read_reason("out of host memory code host-memory"))
    assert "--max-probe-memory" not in advice
    assert "host memory" in advice


def test_each_has_its_own_advice() -> None:
    assert "--max-trace-bytes" in kernel_advice("failed", because("trace-full", limit="1M"))
    assert "--max-probe-memory" in kernel_advice("failed", because("probe-memory"))
    assert "Allow 900 bytes" in kernel_advice("failed", because("launch-too-large", needed=900, limit=7))
    assert "--exclude" in kernel_advice("filtered", because("excluded"))
    assert "--kernel" in kernel_advice("filtered", because("not-chosen"))


@pytest.mark.parametrize("words", ["memory, trace, ptxas and engine", "no ptx in sight", "capture the flag"])
@pytest.mark.parametrize("status", ["failed", "skipped", "excluded", "pending"])
def test_words_that_are_not_known_leave_what_the_status_says(status: str, words: str) -> None:
    assert kernel_advice(status, read_reason(words)) == kernel_advice(status, None) != ""


def test_a_probed_kernel_needs_no_advice() -> None:
    assert kernel_advice("probed", because("matched-nothing", probe="dmat", positions="mma")) == ""
    assert kernel_advice("skipped", Reason("later words", "code-of-tomorrow")) == kernel_advice("skipped", None)


def test_a_report_has_text_and_code(tmp_path: Path) -> None:
    writer = TraceWriter(tmp_path / "t")
    writer.start()
    writer.kernel(0, "f", "failed", reason=f"{FULL_DISK} code disk-full")
    writer.kernel(1, "g", "skipped", reason="something new")
    trace = open_trace(writer.directory)
    assert [(kernel.reason, kernel.reason_code) for kernel in trace.kernels] == [
        (FULL_DISK, "disk-full"),
        ("something new", None),
    ]
    data = "".join(report_lines(trace, "kernels", "json"))
    assert f'"reason": "{FULL_DISK}", "reason_code": "disk-full"' in data
    assert '"reason": "something new", "reason_code": null' in data
    summary = " ".join(" ".join(report_lines(trace, "summary", "table")).split())
    assert "The trace's disk or your quota is full" in summary
    assert " code disk-full" not in summary
