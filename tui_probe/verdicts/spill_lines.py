"""Source line at which a kernel of a trace spills most, from the machine code that ptxas made."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path, PurePath
from typing import TYPE_CHECKING

from tui_probe.binaries.cubin import Cubin
from tui_probe.binaries.line_tables import source_places
from tui_probe.draw import units
from tui_probe.errors import ImageError, UnsupportedKernelError
from tui_probe.input_limits import CUBIN
from tui_probe.sass.spills import spills_by_line, stack_accesses
from tui_probe.sass.target import GraftTarget
from tui_probe.trace.plain_file import read_within

if TYPE_CHECKING:
    from tui_probe.sass.spills import SpillLine
    from tui_probe.trace.model import KernelFacts


def worst_spill(kernel: KernelFacts) -> SpillLine | None:
    """Return the source line with most loads and stores of the stack; None without SASS or line table."""
    path = kernel.file("pruned.bin")
    if path is None:
        return None
    try:
        lines = _spill_lines(path, path.stat().st_mtime_ns, kernel.name)
    except (ImageError, UnsupportedKernelError, OSError):
        return None
    return next((line for line in lines if line.place is not None), None)


@lru_cache(maxsize=64)
def _spill_lines(path: Path, changed: int, kernel: str) -> list[SpillLine]:
    del changed
    target = GraftTarget.of(Cubin.read(read_within(path, CUBIN)), kernel)
    return spills_by_line(stack_accesses(target), source_places(target.cubin.image, target.name, target.code.size))


def spill_text(line: SpillLine) -> str:
    """``most at attn.py:31 (8 loads, 4 stores, in a loop)``."""
    file, number = line.place or ("", 0)
    counts = f"{units.counted(line.loads, 'load')}, {units.counted(line.stores, 'store')}"
    loop = ", in a loop" if line.depth else ""
    return f"most at {PurePath(file).name}:{number} ({counts}{loop})"
