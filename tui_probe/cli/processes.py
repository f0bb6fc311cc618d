"""What is said of a run of many processes: a line for each of a few, else a line for each command."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from tui_probe.trace.locate import LOG
from tui_probe.trace.recent import brief

from .output import inform

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

ALONE: Final = 4
"""Traces that each have a report of their own; of more, one of each command has, and so many commands."""
TOLD: Final = 8
"""Traces of a run that are told one by one, and commands that are."""


class TraceTeller:
    """Tells of the traces of a run as they appear, each by a line; on a terminal then only that there are more."""

    def __init__(self, descriptor: int = 2) -> None:
        self._descriptor = descriptor
        self._told = 0

    def __call__(self, trace: Path) -> None:
        if self._told < TOLD or not os.isatty(self._descriptor):
            inform(f"trace in {trace}", self._descriptor)
        elif self._told == TOLD:
            inform(f"more processes launch kernels: their traces are in {trace.parent}, too", self._descriptor)
        self._told += 1


@dataclass(frozen=True, slots=True)
class Group:
    """The traces of one command, the longest log first."""

    command: str
    traces: tuple[Path, ...]


def groups_of(traces: Sequence[Path]) -> list[Group]:
    """The traces by command: the command with the most of them first."""
    found: dict[str, list[Path]] = {}
    for trace in traces:
        known = brief(trace)
        found.setdefault(known.command if known else "", []).append(trace)
    groups = [Group(command, tuple(sorted(own, key=log_size, reverse=True))) for command, own in found.items()]
    return sorted(groups, key=lambda group: len(group.traces), reverse=True)


def log_size(trace: Path) -> int:
    """Bytes of its event.log; 0 if there is none."""
    try:
        return (trace / LOG).stat().st_size
    except OSError:
        return 0


def reported(traces: Sequence[Path]) -> Sequence[Path]:
    """Those that have a report: all of a few; of many, the longest of each of the most frequent commands."""
    return traces if len(traces) <= ALONE else [group.traces[0] for group in groups_of(traces)[:ALONE]]


def group_lines(traces: Sequence[Path], cells: int) -> Iterator[str]:
    """How many processes each command had, where they are many; nothing for a few."""
    from tui_probe.draw import units
    from tui_probe.draw.shorten import shorten
    from tui_probe.draw.table import safe

    if len(traces) <= ALONE:
        return
    groups = groups_of(traces)
    shown = len(groups[:ALONE])
    processes = units.counted(len(traces), "process")
    yield f"{processes} launched kernels; reports of {shown}, the longest of each command, follow"
    for group in groups[:TOLD]:
        yield f"  {len(group.traces):>5} × {shorten(safe(group.command) or units.NOT_MEASURED, max(20, cells - 10))}"
    if len(groups) > TOLD:
        rest = sum(len(group.traces) for group in groups[TOLD:])
        yield f"  {rest:>5} of {units.counted(len(groups) - TOLD, 'other command')}"
    yield f"  all of them: {safe(str(traces[0].parent))}; the report of another: tui-probe report TRACE"
