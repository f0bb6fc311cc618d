"""Entries of the command palette: keys of the current screen that act now, its pages, and looks."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from tui_probe.draw.palette import PALETTES
from tui_probe.pages.findings_page import all_questions
from tui_probe.probe_files import DEFAULT_PROBE
from tui_probe.ui import keys
from tui_probe.ui.rerun import between_choice, survey_choice
from tui_probe.ui.screens.help import show_topic, topic_choices
from tui_probe.ui.screens.lists import PickerItem
from tui_probe.ui.session import BETWEEN_HINT
from tui_probe.ui.widgets.pane import keys_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tui_probe.ui.application import Application
    from tui_probe.ui.screens.view_screen import ViewScreen

MOVES = ("up", "down", "left", "right", "page_up", "page_down", "home", "end", "palette")
"""Rows of the key table that no one looks for in a list."""
BY_NUMBER = ("page_", "view_")
"""Prefix of the ids of rows that show a page by its number."""


def commands_of(app: Application, screen: ViewScreen) -> list[PickerItem]:
    """All that can be done on a screen now; each value is a function."""
    evaluate = PickerItem("choose an evaluation of the traces that are open", "eval", value=app.choose_evaluation)
    asks = _asks_of(app, screen)
    return [
        *screen.commands(),
        *_keys_of(app, screen),
        *_pages_of(app, screen),
        *asks,
        between_choice(partial(screen.notice, BETWEEN_HINT)),
        evaluate,
        *_help_of(screen),
        *_looks_of(app),
    ]


def _keys_of(app: Application, screen: ViewScreen) -> Iterator[PickerItem]:
    active = {active.binding.id: active for active in screen.active_bindings.values()}
    rows = [row for row in keys.rows() if row.id in active and row.id not in MOVES and not row.id.startswith(BY_NUMBER)]
    rows.sort(key=lambda row: row.scope == "app")  # what acts everywhere comes after what acts here
    for row in filter(lambda row: acts(row, screen), rows):
        binding = active[row.id]
        run = partial(app.run_action, binding.binding.action, binding.node)
        yield PickerItem(row.text, "  ".join(map(keys.key_sign, row.keys)), value=run, search_words=row.footer)


def acts(row: keys.Key, screen: ViewScreen) -> bool:
    """Return whether a key does something on what is visible."""
    if not screen.applies(row):
        return False
    if row.scope == "drawing":
        return keys.command_of(row) in screen.view.commands()
    if row.scope == "log":
        return screen.view.key_scope == "log"
    if row.id == "jump":
        return bool(screen.view.target_view())
    return row.id != "interrupt" or screen.probe_app.target_runs


def _pages_of(app: Application, screen: ViewScreen) -> Iterator[PickerItem]:
    asked: dict[str, list[str]] = {}
    for question in all_questions():
        for title in question.pages:
            asked.setdefault(title, []).append(f"{question.text} {question.search_words}")
    pressed = keys_of(screen.page_tabs)
    for tab in screen.page_tabs:
        key = "nothing to show" if tab.empty else pressed[tab.id]
        yield PickerItem(
            f"page: {tab.title}",
            key,
            value=partial(app.run_action, f"page({tab.id!r})", screen),
            search_words=" ".join(asked.get(tab.title, ())),
        )


def _asks_of(app: Application, screen: ViewScreen) -> Iterator[PickerItem]:
    """Questions that another run answers, where it is known what ran."""
    if screen.asks:
        survey = survey_choice(partial(app.run_action, f"ask({DEFAULT_PROBE!r})", screen))
        yield replace(survey, label=f"ask: {survey.note}", note=survey.label)
        again = partial(app.run_action, "ask('')", screen)
        yield PickerItem(
            "open the previous run of this command", "R", value=again, search_words="back earlier run before"
        )
        simulated = app.feed.latest.simulated
        for question in all_questions():
            if question.probe and not (question.needs_gpu and simulated):
                ask = partial(app.run_action, f"ask({question.probe!r})", screen)
                yield PickerItem(
                    f"ask: {question.text}",
                    question.option,
                    value=ask,
                    search_words=f"run again {question.search_words} {' '.join(question.pages)}",
                )


def _help_of(screen: ViewScreen) -> Iterator[PickerItem]:
    for choice in topic_choices():
        yield PickerItem(f"help: {choice.note}", choice.label, value=partial(show_topic, screen.app, choice.value))


def _looks_of(app: Application) -> Iterator[PickerItem]:
    for name in PALETTES:
        now = "now" if name == app.palette.name else ""
        yield PickerItem(f"theme: {name}", now, value=partial(app.use_palette, name))
    plain = "now" if app.ascii_only else ""
    yield PickerItem("characters: ASCII only", plain, value=partial(app.use_ascii, True))
    yield PickerItem("characters: Unicode", "" if plain else "now", value=partial(app.use_ascii, False))
    for text, asked in (("low", True), ("full", False), ("automatic", None)):
        now = "now" if app.appearance.low_bandwidth is asked else ""
        yield PickerItem(f"bandwidth: {text}", now, value=partial(app.use_bandwidth, asked))
