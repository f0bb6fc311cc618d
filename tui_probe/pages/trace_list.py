"""List of recent runs by command, each with its verdict and its change against the previous run."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final

from tui_probe.draw import units
from tui_probe.draw.printable import printable
from tui_probe.draw.spans import hang_line, pad, width
from tui_probe.draw.table import Column, as_record, table
from tui_probe.draw.table_content import UNSORTED
from tui_probe.trace.run_info import mask_line

if TYPE_CHECKING:
    from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from tui_probe.draw.table_content import ColumnOrder
    from tui_probe.trace.recent import TraceSummary
    from tui_probe.verdicts.run_verdict import RunVerdict

SCHEMA: Final = "tui-probe.list"
VERSION: Final = 1
CHANGE_TITLE: Final = "compared with the previous run"
_ORDER_VALUES: Final[Mapping[str, Callable[[ListedRun], Any]]] = {
    "when": lambda run: run.brief.modified_at,
    "state": lambda run: _state_text(run),
    "kernels": lambda run: run.brief.kernels,
    "probe": lambda run: run.brief.probe,
    "device": lambda run: run.brief.device,
    "command": lambda run: run.command,
    "found": lambda run: run.verdict_column or None,
    CHANGE_TITLE: lambda run: run.change or None,
}
"""Values by which the list is sorted, by the title of the column."""
FALLING_TITLES: Final = ("when", "kernels")
"""Columns whose largest value comes first."""
_BELOW_ROW: Final = ("verdict", "change")
"""Columns that are lines of their own in the report, as the trace is, since their texts are sentences."""


@dataclass(frozen=True, slots=True)
class ListedRun:
    """A run, what it found (None: not read, or it is active), and the run of the same command before it."""

    brief: TraceSummary
    verdict: RunVerdict | None = None
    previous: ListedRun | None = None

    @property
    def command(self) -> str:
        """Command with secrets masked; a dash if it is unknown."""
        return mask_line(self.brief.command) or "–"

    @property
    def verdict_text(self) -> str:
        """Verdict as a sentence; "" for none."""
        return "" if self.verdict is None else self.verdict.sentence

    @property
    def verdict_column(self) -> str:
        """Verdict for a column; "" for none."""
        return "" if self.verdict is None else self.verdict.column

    @property
    def sentences(self) -> list[str]:
        """Return its name, its verdict and the change since the previous run, if known."""
        name = f"name: {printable(self.brief.name)}" if self.brief.name else ""
        change = f"{CHANGE_TITLE}: {self.change}" if self.change else ""
        return [*filter(None, (name, self.verdict_text, change))]

    @property
    def change(self) -> str:
        """``exit 0 → signal 9; probe changed; matmul 1.20 ms → 810 µs (-32.5 %)``; "" for nothing."""
        if self.previous is None:
            return ""
        parts = self._changes_since(self.previous)
        if self.verdict is None or self.previous.verdict is None:
            return "; ".join(parts)
        text = self.verdict.change_since(
            self.previous.verdict, same_probe=self.previous.brief.probe == self.brief.probe
        )
        return "; ".join(filter(None, [text, *parts]))

    def _changes_since(self, previous: ListedRun) -> list[str]:
        """Return the changes of the outcome, the probe, the device and the number of kernels."""
        parts = []
        outcomes = _state_text(previous), _state_text(self)
        if not self.brief.is_running and outcomes[0] != outcomes[1]:
            parts.append(" → ".join(outcomes))
        for name in ("probe", "device"):
            old_value, new_value = getattr(previous.brief, name), getattr(self.brief, name)
            if old_value and new_value and old_value != new_value:
                parts.append(f"{name} {printable(old_value)} → {printable(new_value)}")
        if self.brief.kernels != previous.brief.kernels and not self.brief.is_running:
            parts.append(f"kernels {units.count(previous.brief.kernels)} → {units.count(self.brief.kernels)}")
        return parts


@dataclass(frozen=True, slots=True)
class RunRow:
    """A line of the folded list: the newest of ``run_count`` runs of a command, or one of the older runs below it."""

    listed_run: ListedRun
    run_count: int = 1
    is_folded: bool = False
    is_older: bool = False


def runs_by_command(traces: Iterable[TraceSummary], verdicts: Mapping[Path, RunVerdict]) -> list[list[ListedRun]]:
    """Return the runs of each command, the newest first, in the order in which the commands come first.

    Runs whose command is not known are separate.
    """
    groups: dict[str, list[TraceSummary]] = {}
    for brief in traces:
        groups.setdefault(brief.command or str(brief.directory), []).append(brief)
    return [_linked_runs(group, verdicts) for group in groups.values()]


def _linked_runs(briefs: Sequence[TraceSummary], verdicts: Mapping[Path, RunVerdict]) -> list[ListedRun]:
    runs: list[ListedRun] = []
    for brief in reversed(briefs):
        runs.append(ListedRun(brief, verdicts.get(brief.directory), runs[-1] if runs else None))
    return runs[::-1]


def _state_text(run: ListedRun) -> str:
    brief = run.brief
    if brief.is_running:
        return "running"
    if brief.status is None:
        return "ended"
    return f"signal {-brief.status}" if brief.status < 0 else f"exit {brief.status}"


def _start_text(run: ListedRun) -> str:
    """Format the start in the user's time zone, to the second."""
    return datetime.fromtimestamp(run.brief.modified_at).astimezone().isoformat(" ", "seconds")[:19]


def _kernels_text(run: ListedRun) -> str:
    """Format the number of kernels, with a plus if only the first part of the log was read."""
    return f"{units.count(run.brief.kernels)}{'' if run.brief.all_read else '+'}"


RUN_COLUMNS: Final[tuple[Column[ListedRun], ...]] = (
    Column("when", lambda run: run.brief.modified_at, "when", _start_text, right=False),
    Column("state", _state_text, "state", _state_text, right=False),
    Column("kernels", lambda run: run.brief.kernels, "kernels", _kernels_text, rank=1),
    Column("probe", lambda run: run.brief.probe, "probe", lambda run: run.brief.probe or "–", right=False, rank=1),
    Column("device", lambda run: run.brief.device, "device", lambda run: run.brief.device or "–", right=False, rank=2),
    Column("verdict", lambda run: run.verdict_text or None, "found", lambda run: run.verdict_column or "–",
           right=False),
    Column("kernel", lambda run: run.verdict.kernel or None if run.verdict else None),
    Column("limit", lambda run: run.verdict.limit if run.verdict else None),
    Column("share_of_time", lambda run: run.verdict.share if run.verdict else None),
    Column("time_ms", lambda run: run.verdict.milliseconds if run.verdict else None),
    Column("change", lambda run: run.change or None, CHANGE_TITLE, lambda run: run.change or "–", right=False),
    Column("trace", lambda run: str(run.brief.directory)),
    Column("name", lambda run: run.brief.name),
)  # fmt: skip


class RunPage:
    """Recent runs by command: rows and cells of the report, of the data and of the home screen."""

    def __init__(self, traces: Iterable[TraceSummary], verdicts: Mapping[Path, RunVerdict]) -> None:
        self.commands = runs_by_command(traces, verdicts)

    def rows(self, unfolded: Container[str], order: ColumnOrder = UNSORTED) -> list[RunRow]:
        """Return the lines of a list in which only the commands in ``unfolded`` show their older runs; the commands
        are sorted by their newest runs.
        """
        rows: list[RunRow] = []
        for runs in order.sort_rows(self.commands, lambda runs: _ORDER_VALUES[order.key](runs[0])):
            is_folded = len(runs) > 1 and runs[0].brief.command not in unfolded
            rows.append(RunRow(runs[0], len(runs), is_folded))
            rows += [] if is_folded else [RunRow(run, is_older=True) for run in runs[1:]]
        return rows

    def lines(self, cells: int) -> Iterator[str]:
        """A command; a line for each of its runs, and below that its findings and changes since the previous run."""
        for number, runs in enumerate(self.commands):
            if number:
                yield ""
            count = f" ({units.counted(len(runs), 'run')})" if len(runs) > 1 else ""
            yield f"{printable(runs[0].command)}{count}"
            yield from _command_lines(runs, cells)

    def record(self) -> dict[str, Any]:
        """Return ``{"schema", "version", "commands": [{"command", "runs": [{"when", …}]}]}``; times are Unix times."""
        return {
            "schema": SCHEMA,
            "version": VERSION,
            "commands": [
                {
                    "command": mask_line(runs[0].brief.command) or None,
                    "runs": [as_record(RUN_COLUMNS, run) for run in runs],
                }
                for runs in self.commands
            ],
        }


def _command_lines(runs: Sequence[ListedRun], cells: int) -> Iterator[str]:
    """Yield the runs of a command.

    The path of a trace is copied from here: it is never cut, and has its own line if the table leaves no room for it.
    """
    columns = [column for column in RUN_COLUMNS if column.key not in _BELOW_ROW]
    titles, rule, *rows = table(columns, runs, cells - 2)
    has_trace_column = width(rule) + 4 + max(width(_trace_path(run)) for run in runs) <= cells
    yield f"  {pad(titles, width(rule))}  trace" if has_trace_column else f"  {titles}"
    yield f"  {rule}  ─────" if has_trace_column else f"  {rule}"
    for run, row in zip(runs, rows, strict=True):
        yield f"  {pad(row, width(rule))}  {_trace_path(run)}" if has_trace_column else f"  {row}"
        yield from (part for text in run.sentences for part in hang_line(f"      {text}", cells))
        yield from () if has_trace_column else (f"      {_trace_path(run)}",)


def _trace_path(run: ListedRun) -> str:
    return printable(str(run.brief.directory))
