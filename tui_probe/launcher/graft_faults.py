"""Kernels whose machine code had a probe in it when a GPU context failed: the hook leaves them alone from then on.

Their names are in a file beside what the trial of grafts found; see ``hook/src/prepare/graft_faults.h``.
"""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

from tui_probe.engine.cache_folder import default_folder

if TYPE_CHECKING:
    from pathlib import Path


def graft_faults_file() -> Path | None:
    """The file that the hook reads and appends to, its folder made; None where there is no home."""
    folder = default_folder("grafts")
    if folder is None:
        return None
    with contextlib.suppress(OSError):
        folder.mkdir(parents=True, exist_ok=True)
    return folder / "faulted"


def faulted_kernels(path: Path) -> list[str]:
    """The names in the file, each once, in order; none if it is not there. Lines are ``ERROR SECONDS NAME``: the
    driver's number of the error, and when it was, since 1970."""
    try:
        lines = path.read_text(errors="replace").splitlines()
    except OSError:
        return []
    return list(dict.fromkeys(parts[2] for line in lines if len(parts := line.split(" ", 2)) == 3 and parts[2]))
