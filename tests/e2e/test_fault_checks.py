"""Checks of the simulated GPU in a run: the example of the help page, and programs that stay as they are."""

from __future__ import annotations

import re
import sys
from typing import TYPE_CHECKING

from tests.help.pages import blocks
from tui_probe.probekit.page_kinds import ViewSource
from tui_probe.trace.follow import open_trace
from tui_probe.verdicts.findings import findings_by_probe

if TYPE_CHECKING:
    import pytest

    from .conftest import Tool


def _without_addresses(text: str) -> str:
    return re.sub(r"0x7f\w+", "0x7f", " ".join(text.split()))


def test_run_reports_example_of_help_page(tool: Tool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TUI_PROBE_SIM_CHECK", "1")
    (tool.folder / "shift.py").write_text(blocks("sanitizer", "python")[0])
    (shown,) = blocks("sanitizer", "text")
    result, trace = tool.run([sys.executable, "shift.py"])
    assert result.returncode == 0
    read = open_trace(trace)
    (kernel,) = read.kernels
    (found,) = [result for result in findings_by_probe(ViewSource(read, kernel)) if result.probe == "(no probe)"]
    finding = found.findings[0]
    assert _without_addresses(f"{finding.label}: {finding.words}") == _without_addresses(shown)
    assert (finding.page, finding.line) == ("ptx", 12)
    unchecked, other = tool.run([sys.executable, "shift.py"], "--no-check")
    assert unchecked.returncode == 0
    assert open_trace(other).state.faults == []
