"""Names of runs: ``run --name NAME`` stores one in run.json, and commands take it instead of a path."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from tui_probe.trace.locate import is_trace
from tui_probe.trace.recent import brief, newest_traces
from tui_probe.trace.run_info import RunInfo, read_run_info

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

_NAME: Final = re.compile(r"\w[\w.+=,-]{0,63}")
_MAX_TRACES: Final = 2000
"""Traces in which a name is looked for, the newest first."""


def is_run_name(text: str) -> bool:
    """Return whether a text can be the name of a run: it is neither a path nor an address ``TRACE:KERNEL@LAUNCH``."""
    return _NAME.fullmatch(text) is not None


def named_traces(folders: Iterable[Path]) -> Iterator[tuple[str, Path, RunInfo]]:
    """Yield name, trace and record of each trace of a named run, the newest trace first."""
    for trace in newest_traces(folders, _MAX_TRACES):
        info = read_run_info(trace / "run.json")
        if info is not None and info.name:
            yield info.name, trace, info


def run_of_name(name: str, folders: Iterable[Path]) -> tuple[Path, ...]:
    """Return the traces of the newest run with this name, that of its command first; () if there is none."""
    runs = [(info.started or 0.0, trace, info) for known, trace, info in named_traces(folders) if known == name]
    if not runs:
        return ()
    _, newest, info = max(runs, key=lambda run: run[0])
    siblings = [newest.parent / process for process in info.processes if "/" not in process]
    traces = [trace for trace in siblings if is_trace(trace)] or [newest]
    return tuple(sorted(traces, key=lambda trace: not _is_of_command(trace)))


def _is_of_command(trace: Path) -> bool:
    known = brief(trace)
    return known is not None and known.of_command
