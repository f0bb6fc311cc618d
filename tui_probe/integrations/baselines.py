"""Baselines of a gate: counts of two runs, as small text files that can be committed.

``DIRECTORY/NAME/COMMIT.json``; without git the commit is ``none``. The baseline of a program is that of the newest
commit in the history of HEAD that has one.
"""

from __future__ import annotations

import json
import re
import subprocess
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from tui_probe.errors import UsageError
from tui_probe.verdicts.gate import counts_of, kernel_values
from tui_probe.version import __version__

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from tui_probe.trace.model import Trace
    from tui_probe.verdicts.gate import Counts

SCHEMA: Final = "tui-probe baseline"
VERSION: Final = 1
NO_COMMIT: Final = "none"
MAX_BYTES: Final = 16 << 20
"""Bytes of a baseline file."""
MAX_COMMITS: Final = 2000
"""Commits of the history that are searched for a baseline."""
_NAME: Final = re.compile(r"[\w.+=-]{1,64}")


@dataclass(frozen=True)
class Baseline:
    """Counts of repeated runs, and what made them."""

    commit: str
    command: tuple[str, ...]
    tools: dict[str, str]
    runs: tuple[Counts, ...]


def tools_of(trace: Trace) -> dict[str, str]:
    """Return what changes counts of the same source: the GPU, and the versions of driver, ptxas and tui-probe."""
    device, info = trace.state.device, trace.run_info
    return {
        "tui-probe": __version__,
        "gpu": device.name if device else "",
        "capability": (device.capability or "") if device else "",
        "ptxas": (info.ptxas or "") if info else "",
    }


def have_same_assembler(baseline: dict[str, str], candidate: dict[str, str]) -> bool:
    """Return whether registers and instructions of two runs may be compared."""
    return all(baseline.get(key) == candidate.get(key) for key in ("capability", "ptxas"))


def save_baseline(directory: Path, name: str, command: Sequence[str], traces: Sequence[Trace]) -> Path:
    """Write a baseline of the current commit, and return its path. Raises UsageError where that is not possible."""
    document = {
        "schema": SCHEMA,
        "version": VERSION,
        "command": list(command),
        "tools": tools_of(traces[0]),
        "runs": [counts_of(kernel_values(trace)) for trace in traces],
    }
    path = _folder(directory, name) / f"{head_commit()}.json"
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(document, indent=1, sort_keys=True) + "\n", encoding="utf-8")
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror}; pass a writable --directory") from None
    return path


def find_baseline(directory: Path, name: str) -> Baseline | None:
    """Return the baseline of the newest commit in the history of HEAD; None if there is none."""
    folder = _folder(directory, name)
    for commit in (*history(), NO_COMMIT):
        path = folder / f"{commit}.json"
        if path.is_file():
            return read_baseline(path)
    return None


def read_baseline(path: Path) -> Baseline:
    """Read a baseline. Raises UsageError, with the path, for any other file."""
    try:
        if path.stat().st_size > MAX_BYTES:
            raise ValueError(f"larger than {MAX_BYTES >> 20} MiB")
        document: Any = json.loads(path.read_text(encoding="utf-8"))
        if (document["schema"], document["version"]) != (SCHEMA, VERSION):
            raise ValueError(f"schema {document['schema']!r} version {document['version']!r}")
        runs = tuple(
            {
                str(name): {str(key): float(value) for key, value in counts.items()}
                for name, counts in run_counts.items()
            }
            for run_counts in document["runs"]
        )
        tools = {str(key): str(value) for key, value in document["tools"].items()}
        return Baseline(path.stem, tuple(map(str, document["command"])), tools, runs)
    except (OSError, ValueError, LookupError, TypeError, AttributeError) as error:
        raise UsageError(f"{path} is not a baseline ({error}): record it again with tui-probe gate --record") from None


def head_commit() -> str:
    """Return the commit of the working directory, ``none`` outside of a git repository."""
    return next(iter(history(1)), NO_COMMIT)


def history(max_commits: int = MAX_COMMITS) -> list[str]:
    """Return the newest commits of HEAD's history, the newest first; none without git."""
    try:
        process = subprocess.run(
            ["git", "rev-list", f"--max-count={max_commits}", "HEAD"], capture_output=True, text=True, check=False
        )
    except OSError:
        return []
    return process.stdout.split() if process.returncode == 0 else []


def _folder(directory: Path, name: str) -> Path:
    if not _NAME.fullmatch(name) or name.startswith("."):
        raise UsageError(f"{name!r} is not a valid baseline name; use up to 64 letters, digits and . _ - + =")
    return directory / name
