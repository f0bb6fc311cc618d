"""Traces in a list, the newest first."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from tui_probe.draw import units
from tui_probe.draw.shorten import cut_middle
from tui_probe.draw.spans import Line, pad, wrap
from tui_probe.trace.secrets import masked_line
from tui_probe.ui.state_line import ending
from tui_probe.ui.views.text import contains
from tui_probe.ui.views.view import Desk, View

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from tui_probe.trace.recent import Brief

DAY = 86400
PROBE_FROM, DEVICE_FROM, FOLDER_FROM = 76, 100, 140
"""Cells from which on there is room for these columns."""


class RecentView(View):
    """One line per trace. The selection is a trace, not a place."""

    kind = "recent"

    def __init__(self, desk: Desk, name: str, clock: float | None = None) -> None:
        super().__init__(desk, name)
        self.clock = clock
        self.traces: Sequence[Brief] = ()
        self.loaded = False
        self.selected: Path | None = None
        self.filtered = ""
        self.top = 0

    def show(self, traces: Sequence[Brief]) -> None:
        """Show these traces; the selected one stays selected."""
        self.loaded, self.traces = True, traces
        self.changed()

    @property
    def shown(self) -> Sequence[Brief]:
        """The traces that pass the filter."""
        return [trace for trace in self.traces if contains(_words(trace), self.filtered)]

    @property
    def place(self) -> int:
        """The place of the selected trace, 0 if it is not shown."""
        return next((i for i, trace in enumerate(self.shown) if trace.directory == self.selected), 0)

    @property
    def trace(self) -> Brief | None:
        """The selected trace."""
        shown = self.shown
        return shown[self.place] if shown else None

    def draw(self, width: int, height: int) -> list[Line]:
        """Titles, and the visible traces."""
        shown, room = self.shown, max(1, height - 1)
        self.top = max(0, min(max(min(self.top, self.place), self.place - room + 1), len(shown) - room))
        columns = _columns(width)
        titles = "  ".join(pad(title, cells) for title, cells in columns)
        lines: list[Line] = [((f" {titles}", "head"),)]
        lines += [self._line(trace, columns) for trace in shown[self.top : self.top + room]]
        if not shown:
            lines += [((f" {part}", "dim"),) for part in wrap(self._nothing(), width - 2)]
        return lines

    def _line(self, trace: Brief, columns: list[tuple[str, int]]) -> Line:
        state, role = _state(trace)
        cells = {
            "when": when(trace.when, self.clock or time.time()),
            "state": state,
            "kernels": f"{units.count(trace.kernels)}{'' if trace.all_read else '+'}",
            "probe": trace.probe or "–",
            "device": trace.device or "–",
            "command": masked_line(trace.command) or "–",
            "folder": str(trace.directory.absolute()),
        }
        roles = {"state": role, "when": "dim", "device": "dim", "folder": "dim"}
        chosen = trace is self.trace
        ground = ("select" if self.focused else "idle") if chosen else ""
        spans = [("▌" if chosen else " ", "accent" if chosen else "")]
        for title, size in columns:
            own = "+".join(filter(None, (roles.get(title, ""), ground)))
            text = cut_middle(cells[title], size)
            spans += [(pad(text, size, right=title == "kernels"), own), ("  ", ground)]
        return tuple(spans)

    def _nothing(self) -> str:
        if self.filtered:
            return f"no trace contains “{self.filtered}”: Esc shows all"
        if not self.loaded:
            return "looking for traces"
        return "no traces yet: start a program below, or try the example with “tui-probe demo”"

    def status(self) -> list[str]:
        """Which trace is selected."""
        parts = [f"only “{self.filtered}”"] if self.filtered else []
        return [*parts, f"{self.place + 1} of {len(self.shown)}"] if self.shown else parts

    def move(self, step: int) -> None:
        """Select another trace."""
        shown = self.shown
        if shown:
            self.selected = shown[max(0, min(self.place + step, len(shown) - 1))].directory
            self.changed()

    def move_to(self, end: int) -> None:
        """The newest or the oldest."""
        self.move(len(self.shown) if end else -len(self.shown))

    def search(self, text: str) -> None:
        """A list this short is filtered."""
        self.set_filter(text)

    @property
    def filter_text(self) -> str:
        """What shown traces must contain."""
        return self.filtered

    def set_filter(self, text: str) -> None:
        """Only traces whose command, probe, device or folder contains ``text``."""
        self.filtered = text
        self.changed()

    def clear_search(self) -> bool:
        """Show all again."""
        had, self.filtered = bool(self.filtered), ""
        if had:
            self.changed()
        return had

    def copied(self) -> str:
        """The folder of the selected trace."""
        return "" if self.trace is None else str(self.trace.directory)

    def click(self, row: int, column: int = 0) -> None:
        """Select what is pointed at."""
        del column
        place = self.top + row - 1
        if row >= 1 and place < len(self.shown):
            self.move(place - self.place)


def _columns(width: int) -> list[tuple[str, int]]:
    """Titles and cells of the columns; the command has the rest."""
    columns = [("when", 10), ("state", 11), ("kernels", 7)]
    columns += [("probe", 14)] if width >= PROBE_FROM else []
    columns += [("device", 22)] if width >= DEVICE_FROM else []
    rest = width - 1 - sum(cells + 2 for _, cells in columns)
    if width < FOLDER_FROM:
        return [*columns, ("command", max(8, rest - 1))]
    return [*columns, ("command", rest // 2), ("folder", rest - rest // 2 - 3)]


def _words(trace: Brief) -> str:
    return f"{masked_line(trace.command)} {trace.probe or ''} {trace.device or ''} {trace.directory}"


def _state(trace: Brief) -> tuple[str, str]:
    if trace.running:
        return "● running", "running"
    if trace.status is None:
        return "○ ended", "dim"
    if trace.status < 0:
        return f"✘ signal {-trace.status}", "failed"
    return ending(trace.status)


def when(moment: float, now: float) -> str:
    """How long ago: ``12 min ago``; of another week the day."""
    ago = max(0.0, now - moment)
    for unit, seconds in (("d", DAY), ("h", 3600), ("min", 60), ("s", 1)):
        if ago >= seconds and ago < 100 * DAY:
            return f"{int(ago // seconds)} {unit} ago"
    return "now" if ago < 1 else time.strftime("%Y-%m-%d", time.localtime(moment))
