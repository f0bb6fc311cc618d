"""The cubins of the corpus: kernels of this project for every architecture, with line information."""

from __future__ import annotations

import lzma
from functools import cache
from pathlib import Path

DATA = Path(__file__).parent.parent / "data" / "cubins"
NAMES = sorted(path.name.removesuffix(".cubin.xz") for path in DATA.glob("*.cubin.xz"))
ARCHITECTURES = sorted({int(name.partition(".sm_")[2]) for name in NAMES})


@cache
def cubin(name: str) -> bytes:
    """The bytes of one: ``lines.sm_80``, ``add.sm_100``, ``softmax.sm_121``."""
    return lzma.decompress((DATA / f"{name}.cubin.xz").read_bytes())
