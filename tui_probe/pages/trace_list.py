"""Recent runs, those of one command together: each with what it found, and what changed against the run before."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final

from tui_probe.draw import units
from tui_probe.draw.hanging import hanging
from tui_probe.draw.spans import pad, width
from tui_probe.draw.table import Column, safe, table
from tui_probe.trace.secrets import masked_line

if TYPE_CHECKING:
    from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from tui_probe.pages.run_verdict import RunVerdict
    from tui_probe.trace.recent import Brief

VERSION: Final = 1


@dataclass(frozen=True, slots=True)
class Run:
    """A run, what it found (None: not read, or it is active), and the run of the same command before it."""

    brief: Brief
    verdict: RunVerdict | None = None
    before: Run | None = None

    @property
    def found(self) -> str:
        """Its verdict in words; "" for none."""
        return "" if self.verdict is None else self.verdict.words

    @property
    def change(self) -> str:
        """``exit 0 → signal 9; probe changed; matmul 1.20 ms → 810 µs (-32.5 %)``; "" for nothing."""
        if self.before is None:
            return ""
        old, new = self.before, self
        parts = [f"{_state(old)} → {_state(new)}"] if not new.brief.running and _state(old) != _state(new) else []
        for name, was, now in (
            ("probe", old.brief.probe, new.brief.probe),
            ("device", old.brief.device, new.brief.device),
        ):
            parts += [f"{name} {safe(was)} → {safe(now)}"] if was and now and was != now else []
        if new.brief.kernels != old.brief.kernels and not new.brief.running:
            parts.append(f"kernels {units.count(old.brief.kernels)} → {units.count(new.brief.kernels)}")
        if new.verdict is None or old.verdict is None:
            return "; ".join(parts)
        told = new.verdict.against(old.verdict, same_probe=old.brief.probe == new.brief.probe)
        return "; ".join(filter(None, [told, *parts]))


@dataclass(frozen=True, slots=True)
class Row:
    """A line of the folded list: the newest run of a command, of ``runs`` in all, or one of the older ones below it."""

    run: Run
    runs: int = 1
    folded: bool = False
    older: bool = False


def families(traces: Iterable[Brief], verdicts: Mapping[Path, RunVerdict]) -> list[list[Run]]:
    """The runs of each command, the newest first, in the order in which the commands come first.

    Runs whose command is not known stand alone.
    """
    found: dict[str, list[Brief]] = {}
    for each in traces:
        found.setdefault(each.command or str(each.directory), []).append(each)
    return [_chained(family, verdicts) for family in found.values()]


def _chained(family: Sequence[Brief], verdicts: Mapping[Path, RunVerdict]) -> list[Run]:
    runs: list[Run] = []
    for each in reversed(family):
        runs.append(Run(each, verdicts.get(each.directory), runs[-1] if runs else None))
    return runs[::-1]


def folded_rows(groups: Iterable[Sequence[Run]], unfolded: Container[str]) -> list[Row]:
    """The lines of a list in which only the commands in ``unfolded`` show their older runs."""
    rows: list[Row] = []
    for runs in groups:
        folded = len(runs) > 1 and runs[0].brief.command not in unfolded
        rows.append(Row(runs[0], len(runs), folded))
        rows += [] if folded else [Row(run, older=True) for run in runs[1:]]
    return rows


def _state(run: Run) -> str:
    brief = run.brief
    if brief.running:
        return "running"
    if brief.status is None:
        return "ended"
    return f"signal {-brief.status}" if brief.status < 0 else f"exit {brief.status}"


def _when(run: Run) -> str:
    """In the time zone of the user, to the second."""
    return datetime.fromtimestamp(run.brief.when).astimezone().isoformat(" ", "seconds")[:19]


COLUMNS: Final[tuple[Column[Run], ...]] = (
    Column("when", lambda run: run.brief.when, "when", _when, right=False),
    Column("state", _state, "state", _state, right=False),
    Column("kernels", lambda run: run.brief.kernels, "kernels", lambda run: units.count(run.brief.kernels), rank=1),
    Column("probe", lambda run: run.brief.probe, "probe", lambda run: run.brief.probe or "–", right=False, rank=1),
    Column("device", lambda run: run.brief.device, "device", lambda run: run.brief.device or "–", right=False, rank=2),
    Column("verdict", lambda run: run.found or None),
    Column("kernel", lambda run: run.verdict.kernel or None if run.verdict else None),
    Column("limit", lambda run: run.verdict.limit if run.verdict else None),
    Column("share_of_time", lambda run: run.verdict.share if run.verdict else None),
    Column("time_ms", lambda run: run.verdict.milliseconds if run.verdict else None),
    Column("change", lambda run: run.change or None),
    Column("trace", lambda run: str(run.brief.directory)),  # in tables the lines below have it
)  # fmt: skip


def _path(run: Run) -> str:
    return safe(str(run.brief.directory))


def run_lines(groups: Iterable[Sequence[Run]], cells: int) -> Iterator[str]:
    """A command; a line for each of its runs, and below that what it found and what changed against the run before.

    The path of a trace is copied from here: it is never cut, and has a line of its own where there is no room beside.
    """
    for number, runs in enumerate(groups):
        if number:
            yield ""
        count = f" ({units.counted(len(runs), 'run')})" if len(runs) > 1 else ""
        yield f"{safe(masked_line(runs[0].brief.command)) or '–'}{count}"
        titles, rule, *rows = table(COLUMNS, runs, cells - 2)
        beside = width(rule) + 4 + max(width(_path(run)) for run in runs) <= cells
        yield f"  {pad(titles, width(rule))}  trace" if beside else f"  {titles}"
        yield f"  {rule}  ─────" if beside else f"  {rule}"
        for run, row in zip(runs, rows, strict=True):
            yield f"  {pad(row, width(rule))}  {_path(run)}" if beside else f"  {row}"
            yield from hanging(f"      {run.found}", cells) if run.found else ()
            yield from hanging(f"      against the run before: {run.change}", cells) if run.change else ()
            yield from () if beside else (f"      {_path(run)}",)


def run_record(groups: Iterable[Sequence[Run]]) -> dict[str, Any]:
    """``{"version": 1, "commands": [{"command", "runs": [{"when", "state", …}]}]}``; times in seconds since 1970."""
    return {
        "version": VERSION,
        "commands": [
            {
                "command": masked_line(runs[0].brief.command) or None,
                "runs": [{each.key: each.value(run) for each in COLUMNS if each.value} for run in runs],
            }
            for runs in groups
        ],
    }
