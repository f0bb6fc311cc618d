"""Traces of a run: their directories as they appear, disk usage of the launcher's files, run.json and the outcome."""

from __future__ import annotations

import json
import re
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from tui_probe.input_limits import parse_json
from tui_probe.reasons import read_reason
from tui_probe.trace.plain_file import open_plain
from tui_probe.trace.trace_directory import TraceDirectory

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

MAX_NOTE_BYTES = 16 << 20
"""Bytes of the file that are read: the program may write to it, too."""
MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
TRACE_NAME = re.compile(rf"({'|'.join(MONTHS)})\d\d_\d{{6}}_(?P<pid>\d+)[\w.+-]*", re.ASCII)
BLOCK: Final = 512
"""Unit of ``st_blocks``, no matter what the file system's own block is."""
RUN_FILE: Final = "run.json"
LAUNCHER_FILES: Final = (RUN_FILE, "read.py", "tensor.trace")
SOURCE_FOLDER: Final = "source"


@dataclass
class RunNotes:
    """Notes of the run, read so far. Each line is "PID WORD TEXT"; hook/src/log/run_notes.h lists the words."""

    path: Path
    _offset: int = 0
    failures: dict[str, list[int]] = field(default_factory=dict)
    """Processes that launch kernels and have no trace, by reason."""
    unanswered: list[int] = field(default_factory=list)
    """Processes whose first message the probe engine did not answer."""

    stuck: dict[int, str] = field(default_factory=dict)
    """The launch of each process that does not end, the first of several; with the reason if it was not watched."""

    interrupted: dict[tuple[int, str], int] = field(default_factory=dict)
    """Requests to end since a launch of a process was made, by pid and launch; the launch was running then."""

    def new_traces(self) -> list[str]:
        """The names of trace directories that were made since the last call, in their order."""
        names = []
        for pid, word, text in self._new_lines():
            number, _, detail = text.partition(" ")
            match word:
                case "trace":
                    names.append(text)
                case "no-trace":
                    self.failures.setdefault(text, []).append(pid)
                case "no-engine":
                    self.unanswered.append(pid)
                case "stuck":
                    self.stuck.setdefault(pid, text)
                case "unwatched":
                    self.stuck.setdefault(pid, f"{number} {read_reason(detail).sentence}")
                case "interrupted" if number.isdecimal():
                    self.interrupted[pid, detail] = int(number)
        return names

    def _new_lines(self) -> Iterator[tuple[int, str, str]]:
        try:
            with open_plain(self.path) as file:
                file.seek(self._offset)
                complete_lines = file.read(MAX_NOTE_BYTES - self._offset).rpartition(b"\n")[0]
        except OSError:
            return
        self._offset += len(complete_lines) + 1 if complete_lines else 0
        for line in complete_lines.decode(errors="surrogateescape").split("\n"):
            match line.split(" ", 2):
                case [pid, word, text] if pid.isdecimal():
                    yield int(pid), word, text


def stamp_of(seconds: float) -> str:
    """``<Mon>DD_HHMMSS`` of a time since the epoch, local, in English in any locale."""
    moment = time.localtime(seconds)
    return f"{MONTHS[moment.tm_mon - 1]}{moment.tm_mday:02}_{moment.tm_hour:02}{moment.tm_min:02}{moment.tm_sec:02}"


class TraceWatch:
    """Finds the directories in ``root`` that the processes of this launcher's run make, and have noted.

    Several runs may share a root, so a directory that this run's notes do not name belongs to another run.
    """

    def __init__(self, root: Path, notes: RunNotes) -> None:
        self._root = root
        self._notes = notes
        self._first_name: str | None = None
        self.traces: list[Path] = []

    def expect(self, name: str) -> None:
        """Set the name of the directory that the target's own process will have."""
        self._first_name = name

    def poll(self) -> list[Path]:
        """The directories that are new since the last call, the target's own before others."""
        names = dict.fromkeys(name for name in self._notes.new_traces() if TRACE_NAME.fullmatch(name))
        traces = [self._root / name for name in sorted(names, key=lambda name: name != self._first_name)]
        new_traces = [trace for trace in traces if trace not in self.traces]
        self.traces += new_traces
        return new_traces


def disk_bytes(paths: Iterable[Path]) -> int:
    """Bytes of the blocks of these files; one that is not there takes none."""
    total = 0
    for path in paths:
        try:
            total += path.lstat().st_blocks * BLOCK
        except OSError:
            continue
    return total


def launcher_files(trace: Path) -> list[Path]:
    """The files of a trace that its hook has not written: ours, names of tensors, the engine's copies of sources."""
    try:
        sources = list((trace / SOURCE_FOLDER).iterdir())
    except OSError:
        sources = []
    return [*(trace / name for name in LAUNCHER_FILES), trace / SOURCE_FOLDER, *sources]


@dataclass(frozen=True)
class Outcome:
    """Outcome of a run. Traces are named as the user named their root."""

    first_trace: Path | None = None
    """Trace of the command itself: missing if the command launched no kernel."""
    traces: list[Path] = field(default_factory=list)
    cache_counts: dict[str, int] | None = None
    """``hits`` and ``misses`` of the cache of prepared kernels; None without a cache."""
    engine_failure: str | None = None
    """Reason why the engine ended before the run; None if it did not."""
    asked_to_end: bool = False
    """True if a signal asked the run to end: nothing waits for long then."""
    no_trace: str | None = None
    """Reason why nothing was recorded; None if it could be."""
    incomplete: dict[Path, str] = field(default_factory=dict)
    """Traces that could not be written whole, and why."""
    messages: list[str] = field(default_factory=list)
    """Other notices for the user; run.json of each trace has them."""

    untraced: list[str] = field(default_factory=list)
    """Part of ``messages``: why kernels may have been launched without a trace."""
    program_failure: str | None = None
    """Failure of the program's own environment, and the usual fix; None if nothing is known."""
    lost_output: list[str] = field(default_factory=list)
    """Part of ``messages``: streams that could not be passed on whole, and why."""

    def to_json(self) -> dict[str, Any]:
        """Return the outcome as plain data, which a supervisor sends."""
        return {
            "first_trace": None if self.first_trace is None else str(self.first_trace),
            "traces": [str(trace) for trace in self.traces],
            "cache_counts": self.cache_counts,
            "engine_failure": self.engine_failure,
            "asked_to_end": self.asked_to_end,
            "no_trace": self.no_trace,
            "incomplete": {str(trace): reason for trace, reason in self.incomplete.items()},
            "messages": self.messages,
            "untraced": self.untraced,
            "lost_output": self.lost_output,
            "program_failure": self.program_failure,
        }

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Outcome:
        """Read the outcome that ``to_json`` returned."""
        first_trace = data["first_trace"]
        return cls(
            first_trace=None if first_trace is None else Path(first_trace),
            traces=[Path(trace) for trace in data["traces"]],
            cache_counts=data["cache_counts"],
            engine_failure=data["engine_failure"],
            asked_to_end=data["asked_to_end"],
            no_trace=data["no_trace"],
            incomplete={Path(trace): reason for trace, reason in data["incomplete"].items()},
            messages=data["messages"],
            untraced=data["untraced"],
            lost_output=data["lost_output"],
            program_failure=data["program_failure"],
        )


def add_message(trace: Path, text: str) -> None:
    """Add a line to the ``messages`` of a trace's ``run.json``. OSError if it cannot be written."""
    with TraceDirectory(trace) as folder:
        try:
            record = parse_json(folder.read(RUN_FILE))
        except ValueError as error:
            raise OSError(f"{trace / RUN_FILE}: {error}") from error
        _write_file(folder, record | {"messages": [*record.get("messages", []), text]})


def write_record(trace: Path, record: dict[str, Any]) -> None:
    """Write ``run.json`` in one step: a reader sees the old one or the new one, whole. Raises OSError."""
    with TraceDirectory(trace) as folder:
        _write_file(folder, record)


def _write_file(folder: TraceDirectory, record: dict[str, Any]) -> None:
    folder.write(RUN_FILE, (json.dumps(record, indent=1) + "\n").encode())
