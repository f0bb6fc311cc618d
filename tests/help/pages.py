"""The pages of help, and the blocks of code in them."""

from __future__ import annotations

import re

from tui_probe.help import topics
from tui_probe.ui.help_text import help_page

NAMES = [topic.name for topic in topics()]
_BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def blocks(topic: str, language: str) -> list[str]:
    """The texts of the blocks of a language on a page."""
    return [text for kind, text in _BLOCK.findall(help_page(topic)) if kind == language]
