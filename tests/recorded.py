"""The traces in ``tests/data``: of an H200, and of a simulated GPU with a straggler, a strided store and an idle SM."""

from __future__ import annotations

import lzma
import shutil
from pathlib import Path

DATA = Path(__file__).parent / "data"
H200 = DATA / "h200"
SIMULATED = DATA / "simulated"


def unpacked(trace: Path, folder: Path) -> Path:
    """A copy of a trace in ``folder``, with the files that are kept compressed; made once."""
    copy = folder / trace.parent.name / trace.name
    if not copy.exists():
        shutil.copytree(trace, copy)
        for packed in copy.rglob("*.xz"):
            packed.with_suffix("").write_bytes(lzma.decompress(packed.read_bytes()))
            packed.unlink()
    return copy
