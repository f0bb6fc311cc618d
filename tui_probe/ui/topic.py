"""What is visible, in words: its name, how to read it, and what its own keys do."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tui_probe.draw.heading import named
from tui_probe.pages.views import kind_of, names
from tui_probe.ui import keys

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tui_probe.ui.views.view import View


@dataclass(frozen=True)
class Topic:
    """``keys`` are those that only what is visible answers to, each with what it does there."""

    title: str
    paragraphs: Sequence[str]
    keys: Sequence[tuple[keys.Key, str]]


def topic_of(view: View, title: str) -> Topic:
    """About a view, which is a page with a ``title`` if it has one."""
    known = kind_of(view.name) if view.name in names() else None
    words = named(known.title, known.about) if known is not None and title else title or view.name.title()
    commands = view.commands()
    rows = keys.in_scope("drawing", "pages")
    own = [(key, commands[name]) for key in rows if (name := keys.command_of(key)) in commands]
    if view.kind in ("table", "log"):
        own = [(key, key.text) for key in keys.in_scope(view.kind)]
    return Topic(words, view.explanation(), own)
