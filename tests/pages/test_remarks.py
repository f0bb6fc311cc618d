"""The report lists engine remarks on probed kernels apart from probes that matched nothing."""

from __future__ import annotations

from pathlib import Path

from tests.trace.make import TraceWriter
from tui_probe.pages.run_report import run_report
from tui_probe.pages.unprobed_kernels import NO_MATCH_NOTE, REMARKS
from tui_probe.trace.follow import open_trace

LEAN = "gmem is in its form with few registers: the probed kernel has 32, not 40"
NOTHING = "gmem matched no instruction of this kernel, which has no ld.global"


def sections(directory: Path) -> dict[str, str]:
    report = run_report(open_trace(directory)).split("\n\n")
    return {title: text for title, _, text in (section.partition("\n") for section in report)}


def test_report_lists_remarks_apart_from_probes_that_matched_nothing(tmp_path: Path) -> None:
    writer = TraceWriter(tmp_path / "t")
    writer.start()
    writer.kernel(0, "lean", reason=f"{LEAN} code registers-lean")
    writer.kernel(1, "empty", reason=f"{NOTHING} code matched-nothing")
    writer.launch(0)
    writer.launch(1)
    remarks = sections(writer.directory)
    assert "#0 lean" in remarks[REMARKS]
    assert "#1 empty" in remarks[NO_MATCH_NOTE]
    assert "#1" not in remarks[REMARKS]
    assert "#0" not in remarks[NO_MATCH_NOTE]


def test_report_has_no_empty_section_of_remarks(tmp_path: Path) -> None:
    writer = TraceWriter(tmp_path / "t")
    writer.start()
    writer.kernel(0, "plain")
    writer.launch(0)
    assert not {NO_MATCH_NOTE, REMARKS} & sections(writer.directory).keys()
