"""Record of a run: its outcome, and run.json of each trace."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tui_probe.input_limits import parse_json
from tui_probe.trace.plain_file import TraceFolder

_FILE = "run.json"


@dataclass(frozen=True)
class Outcome:
    """Traces are named as the user named their root."""

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

    def words(self) -> dict[str, Any]:
        """Return the outcome for JSON."""
        return {
            "first_trace": None if self.first_trace is None else str(self.first_trace),
            "traces": [str(trace) for trace in self.traces],
            "cache_counts": self.cache_counts,
            "engine_failure": self.engine_failure,
            "asked_to_end": self.asked_to_end,
            "no_trace": self.no_trace,
            "incomplete": {str(trace): why for trace, why in self.incomplete.items()},
            "messages": self.messages,
            "untraced": self.untraced,
            "lost_output": self.lost_output,
            "program_failure": self.program_failure,
        }

    @classmethod
    def from_words(cls, words: dict[str, Any]) -> Outcome:
        """Read the outcome that ``words`` returned."""
        first = words["first_trace"]
        return cls(
            first_trace=None if first is None else Path(first),
            traces=[Path(trace) for trace in words["traces"]],
            cache_counts=words["cache_counts"],
            engine_failure=words["engine_failure"],
            asked_to_end=words["asked_to_end"],
            no_trace=words["no_trace"],
            incomplete={Path(trace): why for trace, why in words["incomplete"].items()},
            messages=words["messages"],
            untraced=words["untraced"],
            lost_output=words["lost_output"],
            program_failure=words["program_failure"],
        )


def add_message(trace: Path, text: str) -> None:
    """Add a line to the ``messages`` of a trace's ``run.json``. OSError if it cannot be written."""
    with TraceFolder(trace) as folder:
        try:
            record = parse_json(folder.read(_FILE))
        except ValueError as error:
            raise OSError(f"{trace / _FILE}: {error}") from error
        _put(folder, record | {"messages": [*record.get("messages", []), text]})


def write_record(trace: Path, record: dict[str, Any]) -> None:
    """Write ``run.json`` in one step: a reader sees the old one or the new one, whole. OSError as ``TraceFolder``."""
    with TraceFolder(trace) as folder:
        _put(folder, record)


def _put(folder: TraceFolder, record: dict[str, Any]) -> None:
    folder.put(_FILE, (json.dumps(record, indent=1) + "\n").encode())
