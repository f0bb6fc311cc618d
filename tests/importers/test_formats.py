"""The list of files that are read."""

from __future__ import annotations

from typing import get_args

from tui_probe.cli.import_command import _IMPORTERS, TOOLS
from tui_probe.nsight.importers.file_kinds import Tool
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


def test_each_tool_has_an_importer() -> None:
    """``import`` takes the tool of ``file_kinds`` by name: another one would have no arguments."""
    assert _IMPORTERS.keys() == TOOLS.keys() == set(get_args(Tool))
