"""Traces in a list, the newest first."""

from __future__ import annotations

import time
from itertools import chain
from typing import TYPE_CHECKING

from tui_probe.draw import units
from tui_probe.draw.shorten import cut_middle
from tui_probe.draw.spans import Line, clip, pad, wrap
from tui_probe.trace.recent import families
from tui_probe.trace.secrets import masked_line
from tui_probe.ui.state_line import ending
from tui_probe.ui.views.text import contains
from tui_probe.ui.views.view import Desk, View

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from tui_probe.trace.recent import Brief

DAY = 86400
PROBE_FROM, VERDICT_FROM, DEVICE_FROM, FOLDER_FROM = 76, 100, 150, 180
"""Cells from which on there is room for these columns."""
AGAIN = "└ again"


class RecentView(View):
    """One line per trace. The selection is a trace, not a place."""

    kind = "recent"

    def __init__(self, desk: Desk, name: str, clock: float | None = None) -> None:
        super().__init__(desk, name)
        self.clock = clock
        self.traces: Sequence[Brief] = ()
        self.verdicts: dict[Path, str] = {}
        """What each run found, as far as that was read."""
        self.together = False
        """Whether runs of one command stand together."""
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
        passing = [trace for trace in self.traces if contains(_words(trace), self.filtered)]
        return list(chain.from_iterable(families(passing))) if self.together else passing

    @property
    def unread(self) -> Path | None:
        """The first visible trace whose verdict is to be read: of a run that has ended."""
        visible = self.shown[self.top : self.top + max(1, self.height - 1)]
        return next((t.directory for t in visible if not t.running and t.directory not in self.verdicts), None)

    def learn(self, trace: Path, verdict: str) -> None:
        """What a run found."""
        self.verdicts[trace] = verdict
        self.changed()

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
        visible = shown[self.top : self.top + room]
        before = [shown[self.top - 1] if self.top else None, *visible]
        for above, trace in zip(before, visible, strict=False):
            again = self.together and above is not None and above.command == trace.command
            lines.append(self._line(trace, columns, again=again))
        if not shown:
            lines += [((f" {part}", "dim"),) for part in wrap(self._nothing(), width - 2)]
        return lines

    def _line(self, trace: Brief, columns: list[tuple[str, int]], *, again: bool) -> Line:
        state, role = _state(trace)
        cells = {
            "when": when(trace.when, self.clock or time.time()),
            "state": state,
            "kernels": f"{units.count(trace.kernels)}{'' if trace.all_read else '+'}",
            "probe": trace.probe or "–",
            "device": trace.device or "–",
            "found": self.verdicts.get(trace.directory) or "–",
            "command": AGAIN if again else masked_line(trace.command) or "–",
            "folder": str(trace.directory.absolute()),
        }
        roles = {"state": role, "when": "dim", "device": "dim", "folder": "dim"} | ({"command": "dim"} if again else {})
        chosen = trace is self.trace
        ground = ("select" if self.focused else "idle") if chosen else ""
        spans = [("▌" if chosen else " ", "accent" if chosen else "")]
        for title, size in columns:
            own = "+".join(filter(None, (roles.get(title, ""), ground)))
            text = clip(cells[title], size) if title == "found" else cut_middle(cells[title], size)
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
        parts += ["by command"] if self.together else []
        trace = self.trace
        if trace is None:
            return parts
        verdict = self.verdicts.get(trace.directory, "") if self.width < VERDICT_FROM else ""
        return [*([verdict] if verdict else []), *parts, f"{self.place + 1} of {len(self.shown)}"]

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
    if width < VERDICT_FROM:
        return [*columns, ("command", max(8, rest - 1))]
    if width < FOLDER_FROM:
        return [*columns, ("command", rest * 2 // 5), ("found", rest - rest * 2 // 5 - 3)]
    part = rest // 4
    return [*columns, ("command", part), ("found", rest - 2 * part - 5), ("folder", part)]


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
