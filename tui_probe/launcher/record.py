"""run.json: how a trace came to be."""

from __future__ import annotations

import contextlib
import json
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pathlib import Path


def add_message(trace: Path, text: str) -> None:
    """Add a line to the ``messages`` of a trace's ``run.json``. OSError if it cannot be written."""
    try:
        record = json.loads((trace / "run.json").read_text())
    except ValueError as error:
        raise OSError(f"{trace / 'run.json'}: {error}") from error
    write_record(trace, record | {"messages": [*record.get("messages", []), text]})


def write_record(trace: Path, record: dict[str, Any]) -> None:
    """Write ``run.json`` in one step: a reader sees the old one or the new one, whole.

    On a full disk the new one goes to the place of the old, which has about its size. OSError all the same.
    """
    text = json.dumps(record, indent=1) + "\n"
    temporary = trace / ".run.json.tmp"
    try:
        temporary.write_text(text)
        temporary.replace(trace / "run.json")
    except OSError:
        with contextlib.suppress(OSError):
            temporary.unlink(missing_ok=True)
            with (trace / "run.json").open("r+") as file:
                file.write(text)
                file.truncate()
        raise
