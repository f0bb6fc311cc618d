"""``collected.json`` in a folder of traces: what became of each run that an evaluation collects there."""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Final

from tui_probe.errors import TraceError
from tui_probe.input_limits import COLLECTION
from tui_probe.json_data import parse_json
from tui_probe.trace.locate import inside, is_trace
from tui_probe.trace.plain_file import read_within

if TYPE_CHECKING:
    from pathlib import Path

FILE: Final = "collected.json"
SCHEMA: Final = "tui-probe.collected"


@dataclass(frozen=True, slots=True)
class Collected:
    """A run. ``command`` is what a person could type; ``problem`` why nothing is kept of it, None if something is.

    ``kept`` is the name of what is: of the trace's directory, or of a file. ``note`` is what must be known of it, such
    as what was left out when it was bundled.
    """

    name: str
    command: str
    problem: str | None = None
    kept: str | None = None
    note: str | None = None

    @property
    def file(self) -> str:
        """The name of what is kept: of the run itself where nothing else is said."""
        return self.kept or self.name


def read_collected(folder: Path) -> dict[str, Collected]:
    """By name, in the order of the collection; empty where the folder has no record. TraceError for a broken one."""
    path = folder / FILE
    if not path.is_file():
        return {}
    try:
        data = parse_json(read_within(path, COLLECTION))
        return {
            name: Collected(name, run["command"], run["problem"], run.get("kept"), run.get("note"))
            for name, run in data["runs"].items()
        }
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise TraceError(f"{path}: it cannot be read ({error}): delete it, and collect again") from error


def write_collected(folder: Path, runs: dict[str, Collected]) -> None:
    """Write the record, whole or not at all."""
    data: dict[str, Any] = {"schema": SCHEMA, "version": 1, "runs": {name: asdict(run) for name, run in runs.items()}}
    new = folder / f"{FILE}.{os.getpid()}"
    new.write_text(json.dumps(data, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    new.replace(folder / FILE)


def is_finished(folder: Path, run: Collected | None, command: str) -> bool:
    """Whether a run of this very command has left what is kept of it in the folder."""
    return run is not None and run.problem is None and run.command == command and is_there(folder, run)


def is_there(folder: Path, run: Collected) -> bool:
    """Whether what was kept of a run is still in the folder. TraceError for a name that leads out of it."""
    kept = inside(folder, run.file)
    if kept is None:
        raise TraceError(f"{folder / FILE}: {run.file!r} leads out of the folder: delete it, and collect again")
    return kept.is_file() or is_trace(kept)
