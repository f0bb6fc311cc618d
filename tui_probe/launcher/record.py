"""run.json: how a trace came to be."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pathlib import Path


def write_record(trace: Path, record: dict[str, Any]) -> None:
    """Write ``run.json`` in one step: a reader sees the old one or the new one, whole."""
    temporary = trace / ".run.json.tmp"
    temporary.write_text(json.dumps(record, indent=1) + "\n")
    temporary.replace(trace / "run.json")
