"""List of recent traces, newest first, with their findings; older runs of a command are folded."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from tui_probe.draw import units
from tui_probe.draw.shorten import cut_middle, fitted_command
from tui_probe.draw.spans import Line, clip, pad, wrap
from tui_probe.draw.table import cell, in_tables
from tui_probe.draw.table_content import UNSORTED, heading
from tui_probe.pages.trace_list import CHANGE_TITLE, FALLING_TITLES, RUN_COLUMNS, RunPage, RunRow
from tui_probe.trace.run_info import mask_line
from tui_probe.ui.views.view import PaneView, ViewHost, contains

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from tui_probe.trace.recent import TraceSummary
    from tui_probe.verdicts.run_verdict import RunVerdict

DAY = 86400
"""Seconds of a day."""
PROBE_FROM, DEVICE_FROM, CHANGE_FROM = 100, 150, 170
"""Cells from which on there is room for these columns."""
FEW_ROWS = 8
"""Rows below which the text about the selected run has one line."""
_MAX_SUMMARY_ROWS = 4
"""Rows of this text at most: its last ones, with the directory."""


class RecentView(PaneView):
    """One line per trace, and below them the findings of the selected one.

    The selection is a trace, not a place: it stays on its trace while others come.
    """

    search_hides_others = True

    def __init__(self, view_host: ViewHost, name: str, clock: float | None = None) -> None:
        super().__init__(view_host, name)
        self.clock = clock
        self.traces: Sequence[TraceSummary] = ()
        self.verdicts: dict[Path, RunVerdict] = {}
        """Findings of each run, of those read so far."""
        self.unfolded: set[str] = set()
        """The commands whose older runs are shown."""
        self.is_loaded = False
        self.selected_directory: Path | None = None
        self._filter = ""
        self._rows: list[RunRow] = []
        self._drawn_places = range(0)
        """Places of the rows that were drawn last."""
        self._order = UNSORTED

    def show(self, traces: Sequence[TraceSummary]) -> None:
        """Show these traces; the selected one stays selected."""
        self.is_loaded, self.traces = True, traces
        self._arrange()

    def learn(self, trace: Path, verdict: RunVerdict) -> None:
        """Take the findings of a run."""
        self.verdicts[trace] = verdict
        self._arrange()

    def _arrange(self) -> None:
        passing = [trace for trace in self.traces if not self._filter or contains(_searched_text(trace), self._filter)]
        self._rows = RunPage(passing, self.verdicts).rows(self.unfolded, self._order)
        self.request_redraw()

    @property
    def place(self) -> int:
        """The place of the selected trace, 0 if it is not shown."""
        return next(
            (i for i, row in enumerate(self._rows) if row.listed_run.brief.directory == self.selected_directory), 0
        )

    @property
    def row(self) -> RunRow | None:
        """The selected line."""
        return self._rows[self.place] if self._rows else None

    @property
    def trace(self) -> TraceSummary | None:
        """The selected trace; None if there is none."""
        return None if self.row is None else self.row.listed_run.brief

    @property
    def previous_run(self) -> TraceSummary | None:
        """The run of the same command before the selected one."""
        previous_run = None if self.row is None else self.row.listed_run.previous
        return None if previous_run is None else previous_run.brief

    @property
    def unread(self) -> Path | None:
        """The first visible trace whose verdict is to be read, or the one before it: of a run that has ended."""
        visible_rows = (self._rows[place] for place in self._window(self.height - 1))
        briefs = (
            run.brief for row in visible_rows for run in (row.listed_run, row.listed_run.previous) if run is not None
        )
        return next((b.directory for b in briefs if not b.is_running and b.directory not in self.verdicts), None)

    @property
    def has_older(self) -> bool:
        """True if there are older runs of the selected one's command."""
        return self.row is not None and (self.row.run_count > 1 or self.row.is_older)

    def fold(self) -> None:
        """Show the older runs of the selected one's command, or fold them; then its newest is selected."""
        if self.trace is None or not self.has_older:
            return
        command = self.trace.command
        self.unfolded ^= {command}
        if command not in self.unfolded:
            newest_row = next(row for row in self._rows if row.listed_run.brief.command == command)
            self.selected_directory = newest_row.listed_run.brief.directory
        self._arrange()

    def shift(self, step: int) -> None:
        """Right shows the older runs, left folds them."""
        if self.trace is not None and (self.trace.command in self.unfolded) == (step < 0):
            self.fold()

    def draw(self, width: int, height: int) -> list[Line]:
        """Titles, the visible traces, and what is reported of the selected one."""
        summary = self._selected_lines(width, height)
        self._drawn_places = self._window(height - 1 - len(summary))
        columns = _columns(width)
        titles = "".join(heading(title, cells, self._order.arrow(title)) for title, cells in columns)
        lines: list[Line] = [((f" {titles}"[:width], "head"),)]
        lines += [self._line(self._rows[place], columns) for place in self._drawn_places]
        if not self._drawn_places:
            role = "select" if self.focused and self.is_loaded and not self._filter else "dim"
            lines += [((f" {part}", role),) for part in wrap(self._empty_message(), width - 2)]
        return [*lines, *[()] * (height - len(lines) - len(summary)), *summary]

    def _window(self, room: int) -> range:
        """Return the places of as many rows as there is room for, the selected one among them, scrolled the least."""
        room, count = max(1, room), len(self._rows)
        top = max(0, min(max(min(self._drawn_places.start, self.place), self.place - room + 1), count - room))
        return range(top, min(top + room, count))

    def _selected_lines(self, width: int, height: int) -> list[Line]:
        """Return findings, change and directory of the selected run; one line if there is little room."""
        if self.row is None:
            return []
        run = self.row.listed_run
        if height < FEW_ROWS:
            return [((f" {clip(run.sentences[-1], width - 2)}", ""),)] if run.sentences else []
        parts = [*run.sentences, str(run.brief.directory.absolute())]
        lines = [part for part_text in parts for part in wrap(part_text, width - 2)]
        return [((f" {part}", "dim" if part == parts[-1] else ""),) for part in lines[-_MAX_SUMMARY_ROWS:]]

    def _line(self, row: RunRow, columns: list[tuple[str, int]]) -> Line:
        trace = row.listed_run.brief
        mark, role = _state_mark(trace)
        texts = {column.title: cell(column, row.listed_run) for column in in_tables(RUN_COLUMNS)}
        cells = {
            **texts,
            "when": age_text(trace.modified_at, self.clock or time.time()),
            "state": f"{mark} {texts['state']}",
            "command": f"{_mark(row)}{trace.directory.name if row.is_older else row.listed_run.command}",
        }
        roles = {"state": role, "when": "dim", "device": "dim"} | ({"command": "dim"} if row.is_older else {})
        is_selected = trace is self.trace
        ground = ("select" if self.focused else "idle") if is_selected else ""
        spans = [("▌" if is_selected else " ", "accent" if is_selected else "")]
        for title, size in columns:
            style = "+".join(filter(None, (roles.get(title, ""), ground)))
            text = cells[title]
            text = cut_middle(fitted_command(text, size), size) if title == "command" else clip(text, size)
            spans += [(pad(text, size, right=title == "kernels"), style), ("  ", ground)]
        return tuple(spans)

    def _empty_message(self) -> str:
        if self._filter:
            return f"no trace contains “{self._filter}”: press Esc to see all"
        if not self.is_loaded:
            return "looking for traces"
        if self.focused:
            return "no traces yet: press Enter to run the demo, or Tab to start a program"
        return "no traces yet: start a program below, or press Esc, then Enter to run the demo"

    def status(self) -> list[str]:
        """Return the filter and the position of the selected trace."""
        parts = [f"only “{self._filter}”"] if self._filter else []
        row = self.row
        if row is None:
            return parts
        runs = [f"{units.counted(row.run_count, 'run')} of this command"] if row.run_count > 1 else []
        return [*parts, *runs, f"{units.count(self.place + 1)} of {units.count(len(self._rows))}"]

    def move(self, step: int) -> None:
        """Select another trace."""
        if self._rows:
            self.selected_directory = self._rows[
                max(0, min(self.place + step, len(self._rows) - 1))
            ].listed_run.brief.directory
            self.request_redraw()

    def move_to(self, end: int) -> None:
        """The newest or the oldest."""
        self.move(len(self._rows) if end else -len(self._rows))

    def sortable(self) -> Mapping[str, str]:
        """Return the titles of the visible columns."""
        return {title: title for title, _ in _columns(self.width)}

    @property
    def sorted_column(self) -> str:
        """The title of the column that commands are sorted by."""
        return self._order.key

    def sort_by(self, key: str) -> None:
        """Sort commands by their newest runs; the same column again reverses them. The selected run stays visible."""
        self._order = self._order.choose(key, is_descending=key in FALLING_TITLES)
        self._arrange()

    def search(self, text: str) -> None:
        """A list this short is filtered."""
        self.set_filter(text)

    @property
    def filter_text(self) -> str:
        """Text that shown traces must contain."""
        return self._filter

    def set_filter(self, text: str) -> None:
        """Only traces whose command, probe, device or folder contains ``text``."""
        self._filter = text
        self._arrange()

    def clear_search(self) -> bool:
        """Show all again."""
        had_filter, self._filter = bool(self._filter), ""
        if had_filter:
            self._arrange()
        return had_filter

    def text_to_copy(self) -> str:
        """The folder of the selected trace."""
        return "" if self.trace is None else str(self.trace.directory)

    def click(self, row: int, column: int = 0) -> None:
        """Select the clicked trace; titles, and the text about the selected one, are not traces."""
        del column
        if 1 <= row <= len(self._drawn_places):
            self.move(self._drawn_places[row - 1] - self.place)


def _columns(width: int) -> list[tuple[str, int]]:
    """Titles and cells of the columns; the command, what was found and what changed have the rest."""
    columns = [("when", 10), ("state", 11)]
    columns += [("kernels", 7), ("probe", 14)] if width >= PROBE_FROM else []
    columns += [("device", 22)] if width >= DEVICE_FROM else []
    remaining = width - 2 - sum(cells + 2 for _, cells in columns)
    if width < CHANGE_FROM:
        command = max(8, remaining * 2 // 5)
        return [*columns, ("command", command), ("found", max(8, remaining - command - 2))]
    part = (remaining - 4) // 3
    return [*columns, ("command", part), ("found", remaining - 2 * part - 4), (CHANGE_TITLE, part)]


def _mark(row: RunRow) -> str:
    """Return the text before a command: the number of runs folded into it, or a mark that this is one of them."""
    if row.is_older:
        return "└ "
    return f"{'▶' if row.is_folded else '▼'}{row.run_count} " if row.run_count > 1 else ""


def _searched_text(trace: TraceSummary) -> str:
    return f"{mask_line(trace.command)} {trace.probe or ''} {trace.device or ''} {trace.directory}"


def _state_mark(trace: TraceSummary) -> tuple[str, str]:
    """Return the mark before a state, and its role."""
    if trace.is_running:
        return "●", "running"
    if trace.status is None:
        return "○", "dim"
    return ("✔", "finished") if trace.status == 0 else ("✘", "failed")


def age_text(moment: float, now: float) -> str:
    """Return the age as text: ``12 min ago``; of another week the day."""
    age = max(0.0, now - moment)
    for unit, seconds in (("d", DAY), ("h", 3600), ("min", 60), ("s", 1)):
        if age >= seconds and age < 100 * DAY:
            return f"{int(age // seconds)} {unit} ago"
    return "now" if age < 1 else time.strftime("%Y-%m-%d", time.localtime(moment))
