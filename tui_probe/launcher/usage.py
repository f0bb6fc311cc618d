"""What the files that the launcher writes take on disk, for the budget of the run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

BLOCK: Final = 512
FILES: Final = ("run.json", "read.py", "tensor.trace")
FOLDER: Final = "source"


def blocks_of(paths: Iterable[Path]) -> int:
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
        sources = list((trace / FOLDER).iterdir())
    except OSError:
        sources = []
    return [*(trace / name for name in FILES), trace / FOLDER, *sources]
