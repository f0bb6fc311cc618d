"""The pages of help, and the blocks of code in them.

Commands in a ``console`` block are run by ``test_sessions.py``, those in a block marked ``gpu`` by
``tests/gpu/test_help_sessions.py``, with a GPU, Nsight tools and minutes of time.
"""

from __future__ import annotations

import re

from tui_probe.help import topics
from tui_probe.ui.help_text import help_page

NAMES = [topic.name for topic in topics()]
_BLOCK = re.compile(r"^```(\w+)(?P<mark> gpu)?\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def blocks(topic: str, language: str, *, gpu: bool | None = None) -> list[str]:
    """The texts of the blocks of a language on a page: all, or those with or without the mark ``gpu``."""
    all_blocks = [(kind, bool(mark), text) for kind, mark, text in _BLOCK.findall(help_page(topic))]
    return [text for kind, mark, text in all_blocks if kind == language and gpu in (None, mark)]


def commands(block: str) -> list[str]:
    """The commands of a ``console`` block."""
    return [line.removeprefix("$ ") for line in block.splitlines() if line.startswith("$ ")]
