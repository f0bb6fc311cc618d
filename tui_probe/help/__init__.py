"""The pages of ``tui-probe help``: Markdown next to this module, one file per topic.

The first line of a page, ``# name: what it is about``, is its line in the list of topics. A page may have a line
``{{keys}}`` or the like, instead of a table that is made from the code, so that it cannot fall behind.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from tui_probe.errors import HelpError, did_you_mean

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

_FOLDER = Path(__file__).parent
_FIRST_TOPICS = ("tutorial", "tour", "keys", "glossary")
"""Topics for new users."""


@dataclass(frozen=True, slots=True)
class Topic:
    """A page: ``name`` is what one asks for, ``summary`` what the list says of it."""

    name: str
    summary: str


@cache
def topics() -> tuple[Topic, ...]:
    """All topics: those to read first, then the others by name."""
    topics = sorted((_topic(path) for path in _FOLDER.glob("*.md")), key=lambda topic: topic.name)
    return tuple(
        sorted(
            topics,
            key=lambda topic: _FIRST_TOPICS.index(topic.name) if topic.name in _FIRST_TOPICS else len(_FIRST_TOPICS),
        )
    )


def _topic(path: Path) -> Topic:
    with path.open(encoding="utf-8") as file:
        title = file.readline().removeprefix("# ").strip()
    return Topic(path.stem, title.partition(": ")[2] or title)


def read_page(name: str, tables: Mapping[str, Callable[[], str]]) -> str:
    """The Markdown of a topic, its ``{{table}}`` lines replaced by what ``tables`` makes. Raises HelpError.

    ``event.log`` and ``event_log`` mean ``event-log``.
    """
    topic = name.lower().replace(".", "-").replace("_", "-")
    names = [entry.name for entry in topics()]
    if topic not in names:
        raise HelpError(f"there is no help on {name!r}{did_you_mean(topic, names, 3) or _heading_hint(topic)}")
    return "\n".join(_expand(line, tables) for line in _lines(topic)) + "\n"


def topics_with_word(word: str) -> list[str]:
    """The names of the topics whose pages have a word."""
    return [topic.name for topic in topics() if re.search(rf"\b{re.escape(word)}\b", "\n".join(_lines(topic.name)))]


def _lines(topic: str) -> list[str]:
    return (_FOLDER / f"{topic}.md").read_text(encoding="utf-8").splitlines()


def _heading_hint(word: str) -> str:
    """``: it is a part of formats``, for a word in the heading of a part of a page."""
    pages = [
        topic.name
        for topic in topics()
        if any(line.startswith("## ") and word in line.lower() for line in _lines(topic.name))
    ]
    return f": it is a part of {' and of '.join(pages)}" if pages else ""


def _expand(line: str, tables: Mapping[str, Callable[[], str]]) -> str:
    if not (line.startswith("{{") and line.endswith("}}")):
        return line
    return tables[line[2:-2]]().rstrip("\n")
