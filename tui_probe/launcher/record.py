"""run.json: how a trace came to be."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from tui_probe.json_data import parse_json
from tui_probe.trace.trace_folder import TraceFolder

if TYPE_CHECKING:
    from pathlib import Path

_FILE = "run.json"


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
