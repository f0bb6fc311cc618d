"""Traces in brief, as a list shows them, without going through whole logs; runs by name; and which were looked at
lately.
"""

from __future__ import annotations

import contextlib
import re
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

from tui_probe.errors import TraceError
from tui_probe.trace.locate import LOG, is_trace, traces_in
from tui_probe.trace.plain_file import open_plain
from tui_probe.trace.run_info import RunInfo, is_alive, read_run_info
from tui_probe.trace.user_state import read_state, write_state

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

HEAD_BYTES: Final = 1 << 20
"""Bytes of a log that are read for its line in a list."""
TAIL_BYTES: Final = 1 << 12
"""Bytes of its end, which says how the process ended."""
REMEMBERED: Final = 50
"""Traces that were looked at lately, at most."""
_PID: Final = re.compile(rb"^\[(?:init\] )?pid\]? (\d{1,9})\s*$", re.MULTILINE)
_COMMAND: Final = re.compile(rb"^\[(?:init\] )?cmd\]? \d+ (.*)$", re.MULTILINE)
_DEVICE: Final = re.compile(rb"^\[init\] device 0 .* name (.*)$", re.MULTILINE)
_KERNEL: Final = re.compile(rb"^\[kernel\] (\d{1,9}) (?:probed|skipped|failed|filtered) ", re.MULTILINE)
_END: Final = re.compile(rb"^\[exit\] ", re.MULTILINE)
_ENDING: Final = re.compile(rb"^\[exit\] (status|signal) (\d{1,3})$", re.MULTILINE)
_COUNTS: Final = re.compile(rb"^\[exit\] launches (\d{1,20}) probed (\d{1,20}) dropped (\d{1,20})", re.MULTILINE)
_NAME: Final = re.compile(r"\w[\w.+=,-]{0,63}")
_MAX_TRACES: Final = 2000
"""Traces in which a name is looked for, the newest first."""


class Brief(NamedTuple):
    """A trace in one line. ``when`` is the time of its last event, in seconds since 1970; None: not known.

    ``kernels`` counts those in the part of the log that was read, ``all_read`` says whether that is all of it.
    """

    directory: Path
    when: float
    command: str = ""
    probe: str | None = None
    device: str | None = None
    kernels: int = 0
    all_read: bool = True
    is_running: bool = False
    status: int | None = None
    """Exit status, or minus the number of the signal that ended it."""
    name: str | None = None
    """The name of its run."""
    of_command: bool = True
    """False for a trace of a child process of the command."""


def brief(directory: Path) -> Brief | None:
    """A trace in brief; None if it cannot be read."""
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
    return Brief(
        directory=directory,
        when=status.st_mtime,
        command=log_command or " ".join(info.command),
        probe=info.probe,
        device="simulated GPU" if info.simulated else _first_match(_DEVICE, text),
        kernels=len(set(_KERNEL.findall(text))),
        all_read=len(text) == status.st_size,
        is_running=not has_ended and is_alive(pid, log_command or " ".join(info.command)),
        status=_status(own_info, end),
        name=info.name,
        of_command=info.is_of(pid),
    )


class ExitCounts(NamedTuple):
    """Counts of the hook: launches, probed ones among them, and their results that were not kept."""

    launches: int
    probed_launches: int
    dropped_results: int


def exit_counts(directory: Path) -> ExitCounts | None:
    """The counts at the end of a log; None if it broke off."""
    try:
        with open_plain(directory / LOG) as file:
            file.seek(max(0, (directory / LOG).stat().st_size - TAIL_BYTES))
            counts = _COUNTS.findall(file.read(TAIL_BYTES))
    except OSError:
        return None
    return ExitCounts(*map(int, counts[-1])) if counts else None  # the first is of an exec that failed


def _status(info: RunInfo, end: bytes) -> int | None:
    """An exit status, or minus a signal: as the launcher tells it, else as the process said at its end."""
    if info.signal is not None:
        return -info.signal
    ending = _ENDING.search(end) if info.exit_status is None else None
    if ending is None:
        return info.exit_status
    return int(ending[2]) if ending[1] == b"status" else -int(ending[2])


def _first_match(pattern: re.Pattern[bytes], text: bytes) -> str | None:
    match = pattern.search(text)
    return match[1].decode("utf-8", "backslashreplace").strip() if match else None


def running_traces(folder: Path) -> list[Path]:
    """The traces in a folder whose process runs, the oldest first. Raises TraceError."""
    return [path for path in traces_in(folder) if (entry := brief(path)) is not None and entry.is_running]


def recent_traces(folders: Iterable[Path], limit: int, *, looked_at: bool = True) -> list[Brief]:
    """The newest traces of these folders, and of those ``looked_at`` lately, the newest first."""
    paths = newest_traces(folders, limit, looked_at=looked_at)
    return [entry for path in paths if (entry := brief(path)) is not None]


def find_previous_run(directory: Path, *, any_probe: bool = False) -> Path | None:
    """The newest run of the same command with the same probe in the folder of this one, before it; None for none.

    ``any_probe``: also one with another probe. Other processes of this run are none before it.
    """
    reference = brief(directory)
    if reference is None or not reference.command:
        return None
    info = read_run_info(directory / "run.json") or RunInfo()
    candidates = recent_traces([directory.parent], REMEMBERED, looked_at=False)
    earlier_directories = (other.directory for other in candidates if _is_before(other, reference, any_probe=any_probe))
    return next((path for path in earlier_directories if path.name not in info.processes), None)


def _is_before(candidate: Brief, reference: Brief, *, any_probe: bool) -> bool:
    is_comparable = (candidate.command, candidate.device) == (reference.command, reference.device) and (
        any_probe or candidate.probe == reference.probe
    )
    return (
        is_comparable
        and not candidate.is_running
        and candidate.when < reference.when
        and candidate.directory.name != reference.directory.name
    )


def newest_traces(folders: Iterable[Path], limit: int, *, looked_at: bool = True) -> list[Path]:
    """Return up to ``limit`` traces of these folders, and of those ``looked_at`` lately, the newest first."""
    traces = {path.absolute(): path for path in remembered() if is_trace(path)} if looked_at else {}
    for folder in folders:
        with contextlib.suppress(TraceError):  # there may be no such folder yet
            traces.update((path.absolute(), path) for path in traces_in(folder))
    return sorted(traces.values(), key=_modification_time, reverse=True)[:limit]


_Stamp: TypeAlias = tuple[tuple[int, int] | None, ...]


class _KnownTrace(NamedTuple):
    """A trace as it was read when its files had this ``stamp``."""

    stamp: _Stamp
    brief: Brief | None


class RecentTraces:
    """Recent traces, for repeated calls: only changes since the last call are read."""

    def __init__(self, folders: Iterable[Path], limit: int) -> None:
        self._folders = tuple(folders)
        self._limit = limit
        self._traces: dict[Path, _KnownTrace] = {}

    def __call__(self) -> list[Brief]:
        """The newest traces as they are now, the newest first."""
        self._traces = {path: self._refreshed(path) for path in newest_traces(self._folders, self._limit)}
        return [entry.brief for entry in self._traces.values() if entry.brief is not None]

    def _refreshed(self, path: Path) -> _KnownTrace:
        """The trace as known, or read anew if its files changed; the process of a running one may have ended."""
        stamp, trace = _stamp(path), self._traces.get(path)
        if trace is not None and trace.stamp == stamp and trace.brief is not None and not trace.brief.is_running:
            return trace
        return _KnownTrace(stamp, brief(path))


def _stamp(path: Path) -> _Stamp:
    """Size and time of what a brief is read from."""
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


def remembered() -> list[Path]:
    """The traces that were looked at lately, the newest first; some may be gone."""
    return [Path(line) for line in read_state("recent").splitlines() if line.startswith("/")][:REMEMBERED]


def remember(trace: Path) -> None:
    """Put a trace at the head of those looked at lately. Where that cannot be written, nothing else suffers."""
    path = trace.absolute()
    if "\n" in str(path):
        return
    lines = [str(path), *(str(path_before) for path_before in remembered() if path_before != path)][:REMEMBERED]
    write_state("recent", "".join(f"{line}\n" for line in lines))


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
    runs = [(info.started or 0.0, trace, info) for run_name, trace, info in named_traces(folders) if run_name == name]
    if not runs:
        return ()
    _, newest_trace, info = max(runs, key=lambda entry: entry[0])
    return tuple(sorted(traces_of_run(newest_trace, info), key=lambda trace: not _is_of_command(trace)))


def traces_of_run(trace: Path, info: RunInfo | None) -> list[Path]:
    """Return the traces of all processes of a trace's run; only itself where run.json does not name it."""
    processes = info.processes if info is not None else ()
    siblings = [trace.parent / process for process in processes if "/" not in process]
    traces = [sibling for sibling in siblings if is_trace(sibling)]
    return traces if any(sibling.name == trace.name for sibling in traces) else [trace]


def _is_of_command(trace: Path) -> bool:
    entry = brief(trace)
    return entry is not None and entry.of_command
