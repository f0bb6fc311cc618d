"""Recent runs as text and data: the runs of one command together, each with what it found."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from tui_probe.draw import units
from tui_probe.draw.hanging import hanging
from tui_probe.draw.shorten import cut_middle
from tui_probe.draw.table import Column, safe, table
from tui_probe.pages.run_verdict import kept_verdict
from tui_probe.trace.recent import families
from tui_probe.trace.secrets import masked_line

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from tui_probe.trace.recent import Brief

VERSION: Final = 1


class Run(NamedTuple):
    """A run, and what it found; "" for nothing."""

    brief: Brief
    found: str


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
    Column("probe", lambda run: run.brief.probe, "probe", lambda run: safe(run.brief.probe or "–"), right=False,
           rank=1),
    Column("device", lambda run: run.brief.device, "device", lambda run: safe(run.brief.device or "–"), right=False,
           rank=2),
    Column("found", lambda run: run.found or None),
    Column("trace", lambda run: str(run.brief.directory), "trace", lambda run: safe(str(run.brief.directory)),
           right=False, narrow=12, shorten=cut_middle),
)  # fmt: skip


def runs_of(traces: Sequence[Brief]) -> list[list[Run]]:
    """The runs of each command, with what each found; an active run has found nothing yet."""
    return [
        [Run(each, "" if each.running else kept_verdict(each.directory)) for each in family]
        for family in families(traces)
    ]


def run_lines(groups: Iterable[Sequence[Run]], cells: int) -> Iterator[str]:
    """A command, a line for each of its runs, and below that what the run found."""
    for number, runs in enumerate(groups):
        if number:
            yield ""
        yield safe(masked_line(runs[0].brief.command)) or "–"
        titles, rule, *rows = table(COLUMNS, runs, cells - 2)
        yield from (f"  {titles}", f"  {rule}")
        for run, row in zip(runs, rows, strict=True):
            yield f"  {row}"
            yield from hanging(f"      {run.found}", cells) if run.found else ()


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
