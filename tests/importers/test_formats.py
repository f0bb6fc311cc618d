"""The list of files that are read."""

from __future__ import annotations

from tui_probe.cli.import_command import TOOLS
from tui_probe.nsight.importers.formats import FORMATS, REPORT_KINDS
from tui_probe.ui.help_text import help_page


def test_help_names_every_format_and_report() -> None:
    page = help_page("nsight")
    for input_format in FORMATS:
        row = next(line for line in page.splitlines() if input_format.made_with in line)
        assert input_format.versions in row
    assert all(kind.name in page for kind in REPORT_KINDS)


def test_every_tool_has_a_format() -> None:
    assert {input_format.tool for input_format in FORMATS} == {*TOOLS}
