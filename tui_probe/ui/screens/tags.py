"""A small list to choose the tags of a log from."""

from __future__ import annotations

from typing import TYPE_CHECKING

from textual.screen import ModalScreen

from tui_probe.draw import units
from tui_probe.draw.spans import Line, pad, width
from tui_probe.ui.widgets.lines import Lines

if TYPE_CHECKING:
    from collections.abc import Iterable

    from textual import events
    from textual.app import App, ComposeResult

    from tui_probe.ui.views.log import LogView

INNER = 36


class TagList(Lines, can_focus=True):
    """Tags with their counts, each with a box."""

    DEFAULT_CSS = "TagList { width: auto; height: auto; }"

    def __init__(self, counts: dict[str, int], chosen: frozenset[str]) -> None:
        super().__init__()
        self.counts = counts
        self.names = sorted({*counts, *chosen})
        self.chosen = set(chosen)
        self.place = 0
        self.styles.width = INNER + 2
        self.styles.height = len(self.names) + 5

    def draw(self, width: int, height: int) -> list[Line]:
        """The list in a frame."""
        del width, height
        lines: list[Line] = [(("Tags to show (none: all)", "title"),)]
        for place, name in enumerate(self.names):
            box = "[x]" if name in self.chosen else "[ ]"
            text = f"{box} {pad(name, 14)} {pad(units.count(self.counts.get(name, 0)), 12, right=True)} "
            lines.append(((text, "select" if place == self.place else ""),))
        lines += [
            (
                ("Space", "key"),
                (" toggle  ", "dim"),
                ("Enter", "key"),
                (" show  ", "dim"),
                ("a", "key"),
                (" all", "dim"),
            )
        ]
        lines.insert(len(lines) - 1, ())
        return list(framed(lines, INNER))


def framed(lines: Iterable[Line], inner: int) -> Iterable[Line]:
    """``lines`` in a frame that is ``inner`` cells wide inside."""
    yield (("┌" + "─" * inner + "┐", "rule"),)
    for line in lines:
        used = sum(width(text) for text, _ in line)
        yield (("│ ", "rule"), *line, (" " * (inner - used - 1), ""), ("│", "rule"))
    yield (("└" + "─" * inner + "┘", "rule"),)


class TagScreen(ModalScreen[frozenset[str] | None]):
    """Gives the chosen tags, none for all, or None if left with Escape."""

    DEFAULT_CSS = "TagScreen { align: center middle; background: transparent; }"

    def __init__(self, counts: dict[str, int], chosen: frozenset[str]) -> None:
        super().__init__()
        self.tags = TagList(counts, chosen)

    def compose(self) -> ComposeResult:
        """The list alone."""
        yield self.tags

    def on_key(self, event: events.Key) -> None:
        """Arrows and jk move, space toggles, a clears, Enter takes, Escape leaves."""
        event.stop()
        tags = self.tags
        if event.key in ("up", "k", "down", "j") and tags.names:
            tags.place = (tags.place + (1 if event.key in ("down", "j") else -1)) % len(tags.names)
        elif event.key in ("space", "x") and tags.names:
            tags.chosen ^= {tags.names[tags.place]}
        elif event.key == "a":
            tags.chosen.clear()
        elif event.key == "enter":
            self.dismiss(frozenset(tags.chosen))
            return
        elif event.key in ("escape", "q"):
            self.dismiss(None)
            return
        tags.redraw()


def choose_tags(app: App[None], log: LogView) -> None:
    """Count the tags of a log, have some of them chosen, and show only those."""

    def take(chosen: frozenset[str] | None) -> None:
        if chosen is not None:
            log.set_tags(chosen)

    def choose(counts: dict[str, int]) -> None:
        app.push_screen(TagScreen(counts, log.wanted.tags), take)

    log.count_tags(choose)
