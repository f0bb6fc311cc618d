"""The pages of ``tui-probe help`` with their tables: of keys and of settings, from the code. Imports no Textual."""

from __future__ import annotations

from tui_probe import help as pages
from tui_probe import settings
from tui_probe.ui import keys


def page_of(topic: str) -> str:
    """The Markdown of a topic, whole. Raises HelpError."""
    return pages.read_page(topic, {"keys": keys.readme_section, "settings": settings.readme_section})
