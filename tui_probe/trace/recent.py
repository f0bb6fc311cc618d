"""Newest and recently opened traces: summarized from the beginning and the end of their logs, listed, and found by the
name of their run or as the previous run of the same command.
"""

from __future__ import annotations

import contextlib
import re
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

from tui_probe.errors import TraceError
from tui_probe.trace.locate import LOG, is_trace, traces_in
from tui_probe.trace.plain_file import open_plain
from tui_probe.trace.run_info import RunInfo, is_alive, read_run_info, traces_of_run
from tui_probe.trace.user_state import MAX_OPENED, opened_traces

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

HEAD_BYTES: Final = 1 << 20
"""Bytes read from the beginning of a log, which records the process, its device and its kernels."""
TAIL_BYTES: Final = 1 << 12
"""Bytes read from the end of a log, which records how the process ended."""
_PID: Final = re.compile(rb"^\[(?:init\] )?pid\]? (\d{1,9})\s*$", re.MULTILINE)
_COMMAND: Final = re.compile(rb"^\[(?:init\] )?cmd\]? \d+ (.*)$", re.MULTILINE)
_DEVICE: Final = re.compile(rb"^\[init\] device 0 .* name (.*)$", re.MULTILINE)
_KERNEL: Final = re.compile(rb"^\[kernel\] (\d{1,9}) (?:probed|skipped|failed|filtered) ", re.MULTILINE)
_END: Final = re.compile(rb"^\[exit\] ", re.MULTILINE)
_ENDING: Final = re.compile(rb"^\[exit\] (status|signal) (\d{1,3})$", re.MULTILINE)
_COUNTS: Final = re.compile(rb"^\[exit\] launches (\d{1,20}) probed (\d{1,20}) dropped (\d{1,20})", re.MULTILINE)
_MAX_TRACES: Final = 2000
"""Max traces in which a name is searched, the newest first."""


class TraceSummary(NamedTuple):
    """Summary of a trace for a line in a list; None: unknown."""

    directory: Path
    modified_at: float
    """Modification time of the log, in seconds since 1970: that of the last event."""
    command: str = ""
    probe: str | None = None
    device: str | None = None
    kernels: int = 0
    """Kernels in the part of the log that was read."""
    all_read: bool = True
    """True if that part is the whole log."""
    is_running: bool = False
    status: int | None = None
    """Exit status, or minus the number of the signal that ended it."""
    name: str | None = None
    """The name of its run."""
    is_of_command: bool = True
    """False for a trace of a child process of the command."""


def summarize_trace(directory: Path) -> TraceSummary | None:
    """Return the summary of a trace; None if its log cannot be read."""
    log = directory / LOG
    try:
        status = log.stat()
        with open_plain(log) as file:
            text = file.read(HEAD_BYTES)
            file.seek(max(len(text), status.st_size - TAIL_BYTES))
            end = text[-TAIL_BYTES:] + file.read(TAIL_BYTES)
    except OSError:
        return None
    info = read_run_info(directory / "run.json") or RunInfo()
    log_command, number = _first_match(_COMMAND, text) or "", _first_match(_PID, text)
    pid = int(number) if number else None
    own_info = info if info.is_of(pid) else RunInfo()
    has_ended = own_info.ended is not None or _END.search(end) is not None
    return TraceSummary(
        directory=directory,
        modified_at=status.st_mtime,
        command=log_command or " ".join(info.command),
        probe=info.probe,
        device="simulated GPU" if info.simulated else _first_match(_DEVICE, text),
        kernels=len(set(_KERNEL.findall(text))),
        all_read=len(text) == status.st_size,
        is_running=not has_ended and is_alive(pid, log_command or " ".join(info.command)),
        status=_status(own_info, end),
        name=info.name,
        is_of_command=info.is_of(pid),
    )


class ExitCounts(NamedTuple):
    """Counts of the hook: launches, probed launches, and results that were not saved."""

    launches: int
    probed_launches: int
    dropped_results: int


def exit_counts(directory: Path) -> ExitCounts | None:
    """Return the counts at the end of a log; None if the log ends before them."""
    try:
        with open_plain(directory / LOG) as file:
            file.seek(max(0, (directory / LOG).stat().st_size - TAIL_BYTES))
            counts = _COUNTS.findall(file.read(TAIL_BYTES))
    except OSError:
        return None
    return ExitCounts(*map(int, counts[-1])) if counts else None  # the first is of an exec that failed


def _status(info: RunInfo, end: bytes) -> int | None:
    """Return the exit status, or minus the signal number: from run.json, else from the log's last lines."""
    if info.signal is not None:
        return -info.signal
    ending = _ENDING.search(end) if info.exit_status is None else None
    if ending is None:
        return info.exit_status
    return int(ending[2]) if ending[1] == b"status" else -int(ending[2])


def _first_match(pattern: re.Pattern[bytes], text: bytes) -> str | None:
    match = pattern.search(text)
    return match[1].decode("utf-8", "backslashreplace").strip() if match else None


def running_traces(directory: Path) -> list[Path]:
    """Return the traces of running processes in a directory, the oldest first. Raises TraceError."""
    return [
        path for path in traces_in(directory) if (summary := summarize_trace(path)) is not None and summary.is_running
    ]


def recent_traces(directories: Iterable[Path], limit: int, *, include_opened: bool = True) -> list[TraceSummary]:
    """Return summaries of the traces that ``newest_traces`` returns, without unreadable ones."""
    paths = newest_traces(directories, limit, include_opened=include_opened)
    return [summary for path in paths if (summary := summarize_trace(path)) is not None]


def find_previous_run(directory: Path, *, any_probe: bool = False) -> Path | None:
    """Return the newest earlier run of the same command and device in the same directory; None if there is none.

    It must have the same probe unless ``any_probe``. Other processes of this run do not count as earlier runs.
    """
    reference = summarize_trace(directory)
    if reference is None or not reference.command:
        return None
    info = read_run_info(directory / "run.json") or RunInfo()
    candidates = recent_traces([directory.parent], MAX_OPENED, include_opened=False)
    earlier_directories = (other.directory for other in candidates if _is_before(other, reference, any_probe=any_probe))
    return next((path for path in earlier_directories if path.name not in info.processes), None)


def _is_before(candidate: TraceSummary, reference: TraceSummary, *, any_probe: bool) -> bool:
    is_comparable = (candidate.command, candidate.device) == (reference.command, reference.device) and (
        any_probe or candidate.probe == reference.probe
    )
    return (
        is_comparable
        and not candidate.is_running
        and candidate.modified_at < reference.modified_at
        and candidate.directory.name != reference.directory.name
    )


def newest_traces(directories: Iterable[Path], limit: int, *, include_opened: bool = True) -> list[Path]:
    """Return up to ``limit`` traces in these directories, the newest first; recently opened ones too if
    ``include_opened``.
    """
    traces = {path.absolute(): path for path in opened_traces() if is_trace(path)} if include_opened else {}
    for directory in directories:
        with contextlib.suppress(TraceError):  # there may be no such directory yet
            traces.update((path.absolute(), path) for path in traces_in(directory))
    return sorted(traces.values(), key=_modification_time, reverse=True)[:limit]


_Stamp: TypeAlias = tuple[tuple[int, int] | None, ...]


class _KnownTrace(NamedTuple):
    """Summary of a trace, and the ``stamp`` of its files when they were read."""

    stamp: _Stamp
    summary: TraceSummary | None


class RecentTraces:
    """Recent traces, for repeated calls: only changes since the last call are read."""

    def __init__(self, directories: Iterable[Path], limit: int) -> None:
        self._directories = tuple(directories)
        self._limit = limit
        self._traces: dict[Path, _KnownTrace] = {}

    def __call__(self) -> list[TraceSummary]:
        """Return the newest traces as they are now, the newest first."""
        self._traces = {path: self._refreshed(path) for path in newest_traces(self._directories, self._limit)}
        return [entry.summary for entry in self._traces.values() if entry.summary is not None]

    def _refreshed(self, path: Path) -> _KnownTrace:
        """Return the known trace, read again if its files changed or its process was running, which may have ended."""
        stamp, trace = _stamp(path), self._traces.get(path)
        if trace is not None and trace.stamp == stamp and trace.summary is not None and not trace.summary.is_running:
            return trace
        return _KnownTrace(stamp, summarize_trace(path))


def _stamp(path: Path) -> _Stamp:
    """Return size and modification time of each file that a summary is read from; None for a missing file."""
    return tuple(_size_and_time(path / name) for name in (LOG, "run.json"))


def _size_and_time(file: Path) -> tuple[int, int] | None:
    try:
        status = file.stat()
    except OSError:
        return None
    return status.st_size, status.st_mtime_ns


def _modification_time(path: Path) -> float:
    try:
        return (path / LOG).stat().st_mtime
    except OSError:
        return 0.0


def named_traces(directories: Iterable[Path]) -> Iterator[tuple[str, Path, RunInfo]]:
    """Yield name, trace and record of each trace of a named run, the newest trace first."""
    for trace in newest_traces(directories, _MAX_TRACES):
        info = read_run_info(trace / "run.json")
        if info is not None and info.name:
            yield info.name, trace, info


def run_of_name(name: str, directories: Iterable[Path]) -> tuple[Path, ...]:
    """Return the traces of the newest run with this name, that of its command first; () if there is none."""
    runs = [
        (info.started or 0.0, trace, info) for run_name, trace, info in named_traces(directories) if run_name == name
    ]
    if not runs:
        return ()
    _, newest_trace, info = max(runs, key=lambda entry: entry[0])
    return tuple(sorted(traces_of_run(newest_trace, info), key=lambda trace: not _is_of_command(trace)))


def _is_of_command(trace: Path) -> bool:
    summary = summarize_trace(trace)
    return summary is not None and summary.is_of_command
