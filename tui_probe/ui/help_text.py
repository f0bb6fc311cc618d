"""Texts of help: the topic of the visible page, and the pages of ``tui-probe help`` with generated tables."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tui_probe import help as help_pages
from tui_probe import input_limits, settings
from tui_probe.draw.shorten import view_heading
from tui_probe.pages.views import kind_of, names
from tui_probe.ui import keys

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tui_probe.ui.views.view import PaneView


@dataclass(frozen=True)
class PageTopic:
    """``keys`` are those that only what is visible answers to, each with what it does there."""

    title: str
    paragraphs: Sequence[str]
    keys: Sequence[tuple[keys.Key, str]]


def topic_of(view: PaneView, title: str) -> PageTopic:
    """Return the help topic of a view, which is a page with a ``title`` if it has one."""
    kind = kind_of(view.name) if view.name in names() else None
    heading = view_heading(kind.title, kind.description) if kind is not None and title else title or view.name.title()
    commands = view.commands()
    rows = keys.in_scope("drawing", "pages")
    topic_keys = [(key, commands[name]) for key in rows if (name := keys.command_of(key)) in commands]
    if view.key_scope in ("table", "log"):
        topic_keys = [(key, key.text) for key in keys.in_scope(view.key_scope)]
    return PageTopic(heading, view.explanation(), topic_keys)


def help_page(topic: str) -> str:
    """The Markdown of a topic, whole. Raises HelpError."""
    tables = {
        "keys": keys.readme_section,
        "page_keys": keys.page_table,
        "settings": settings.readme_section,
        "architectures": _architectures,
        "formats": _formats,
        "input_limits": input_limits.markdown_table,
    }
    return help_pages.read_page(topic, tables)


def _architectures() -> str:
    """GPUs by what works on them; their module brings the parser of PTX."""
    from tui_probe.engine.refusals import architecture_table

    return architecture_table()


def _formats() -> str:
    """Files of other profilers; their module takes long to import."""
    from tui_probe.nsight.importers.formats import markdown_table

    return markdown_table()
