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

MOVE_KEYS = ("up", "down", "left", "right", "page_up", "page_down", "home", "end", "palette")
"""Rows of the key table that no one looks for in a list."""
NUMBERED_PREFIXES = ("page_", "view_")
"""Prefix of the ids of rows that show a page by its number."""


def commands_of(app: Application, screen: ViewScreen) -> list[PickerItem]:
    """All that can be done on a screen now; each value is a function."""
    evaluate = PickerItem("choose an evaluation of the traces that are open", "eval", value=app.choose_evaluation)
    questions = _question_items(app, screen)
    return [
        *screen.commands(),
        *_key_items(app, screen),
        *_page_items(app, screen),
        *questions,
        between_choice(partial(screen.notice, BETWEEN_HINT)),
        evaluate,
        *_help_items(screen),
        *_appearance_items(app),
    ]


def _key_items(app: Application, screen: ViewScreen) -> Iterator[PickerItem]:
    active = {active.binding.id: active for active in screen.active_bindings.values()}
    rows = [
        row
        for row in keys.rows()
        if row.id in active and row.id not in MOVE_KEYS and not row.id.startswith(NUMBERED_PREFIXES)
    ]
    rows.sort(key=lambda row: row.scope == "app")  # what acts everywhere comes after what acts here
    for row in filter(lambda row: has_effect(row, screen), rows):
        binding = active[row.id]
        action = partial(app.run_action, binding.binding.action, binding.node)
        yield PickerItem(row.text, "  ".join(map(keys.key_sign, row.keys)), value=action, search_words=row.footer)


def has_effect(row: keys.Key, screen: ViewScreen) -> bool:
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


def _page_items(app: Application, screen: ViewScreen) -> Iterator[PickerItem]:
    questions_by_page: dict[str, list[str]] = {}
    for question in all_questions():
        for title in question.pages:
            questions_by_page.setdefault(title, []).append(f"{question.text} {question.search_words}")
    tab_keys = keys_of(screen.page_tabs)
    for tab in screen.page_tabs:
        key = "nothing to show" if tab.is_empty else tab_keys[tab.id]
        yield PickerItem(
            f"page: {tab.title}",
            key,
            value=partial(app.run_action, f"page({tab.id!r})", screen),
            search_words=" ".join(questions_by_page.get(tab.title, ())),
        )


def _question_items(app: Application, screen: ViewScreen) -> Iterator[PickerItem]:
    """Questions that another run answers, where it is known what ran."""
    if screen.can_ask:
        survey = survey_choice(partial(app.run_action, f"ask({DEFAULT_PROBE!r})", screen))
        yield replace(survey, label=f"ask: {survey.note}", note=survey.label)
        open_rerun = partial(app.run_action, "ask('')", screen)
        yield PickerItem(
            "open the previous run of this command", "R", value=open_rerun, search_words="back earlier run before"
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


def _help_items(screen: ViewScreen) -> Iterator[PickerItem]:
    for choice in topic_choices():
        yield PickerItem(f"help: {choice.note}", choice.label, value=partial(show_topic, screen.app, choice.value))


def _appearance_items(app: Application) -> Iterator[PickerItem]:
    for name in PALETTES:
        note = "now" if name == app.palette.name else ""
        yield PickerItem(f"theme: {name}", note, value=partial(app.use_palette, name))
    ascii_note = "now" if app.ascii_only else ""
    yield PickerItem("characters: ASCII only", ascii_note, value=partial(app.use_ascii, True))
    yield PickerItem("characters: Unicode", "" if ascii_note else "now", value=partial(app.use_ascii, False))
    for text, is_low in (("low", True), ("full", False), ("automatic", None)):
        note = "now" if app.appearance.low_bandwidth is is_low else ""
        yield PickerItem(f"bandwidth: {text}", note, value=partial(app.use_bandwidth, is_low))
