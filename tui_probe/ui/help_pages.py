"""The pages of ``tui-probe help`` with their tables, which are made from the code. Imports no Textual."""

from __future__ import annotations

from tui_probe import help as pages
from tui_probe import input_limits, settings
from tui_probe.engine import architectures
from tui_probe.ui import keys


def page_of(topic: str) -> str:
    """The Markdown of a topic, whole. Raises HelpError."""
    tables = {
        "keys": keys.readme_section,
        "settings": settings.readme_section,
        "architectures": architectures.table,
        "formats": _formats,
        "input_limits": input_limits.markdown_table,
    }
    return pages.read_page(topic, tables)


def _formats() -> str:
    """Files of other profilers; their module takes long to import."""
    from tui_probe.nsight.importers.formats import markdown_table

    return markdown_table()
