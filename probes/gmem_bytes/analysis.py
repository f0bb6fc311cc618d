"""Global memory bytes: what the threads of a launch loaded and stored, by the way it went.

Unit: bytes that executed instructions asked for, a predicate that was false asking for nothing. Each figure is the
plain sum over all warps of the launch::

    loaded       ld, ldu, wmma.load                     bytes of the access × threads that executed it
    stored       st, wmma.store
    copied       cp.async from global to shared memory  bytes read: fewer than written where the rest is zeros
    bulk loaded  cp.async.bulk from global memory       the size operand
    bulk stored  cp.async.bulk and cp.reduce.async.bulk to global memory
    read         loaded + copied + bulk loaded
    written      stored + bulk stored

Copies by tensor map (``cp.async.bulk.tensor``) name no size. They are counted as instructions, and where there are
any, ``read`` or ``written`` is not known: None.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from tui_probe.analysis.by_line import CountsByLine, line_sums, record_of, totals, worst_of
from tui_probe.analysis.counts import summed

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from tui_probe.analysis.by_line import LineSums
    from tui_probe.trace.results import Result

_SIZES: Final = ("loaded", "stored", "copied", "bulk_loaded", "bulk_stored")
RECORD: Final = np.dtype(
    {
        "names": [*_SIZES, "tensor_loads", "tensor_stores", "threads"],
        "formats": ["<u8"] * 5 + ["<u4"] * 3,
        "offsets": [0, 8, 16, 24, 32, 40, 44, 48],
        "itemsize": 56,
    }
)
"""What ``gmem_bytes`` saves for each warp."""
SITE: Final = record_of(*_SIZES, "tensor_loads", "tensor_stores")
"""What ``gmem_bytes_by_line`` keeps for each instruction."""


@dataclass(frozen=True, slots=True)
class MemoryBytes:
    """Bytes of one launch, except ``tensor_loads`` and ``tensor_stores``, which are executed instructions."""

    loaded: int
    stored: int
    copied: int
    bulk_loaded: int
    bulk_stored: int
    tensor_loads: int
    tensor_stores: int
    threads_missing: int

    @property
    def read(self) -> int | None:
        """All bytes read from global memory, if they are known."""
        return None if self.tensor_loads else self.loaded + self.copied + self.bulk_loaded

    @property
    def written(self) -> int | None:
        """All bytes written to global memory, if they are known."""
        return None if self.tensor_stores else self.stored + self.bulk_stored


def analyse(result: Result) -> MemoryBytes:
    """The bytes of one launch; TraceError if map 0 holds no records of ``gmem_bytes``."""
    sums = summed(result, RECORD, "gmem_bytes")
    return MemoryBytes(**sums.totals, threads_missing=sums.threads_missing)


def analyse_lines(result: Result, sites: Sequence[int], folder: Path | None = None) -> CountsByLine[MemoryBytes]:
    """The same by line, of ``gmem_bytes_by_line``; see :func:`by_line.line_sums`. Raises TraceError.

    No line has the most bytes where those of another are not known.
    """
    lines = line_sums(result, SITE, "gmem_bytes_by_line", sites, folder)
    whole = MemoryBytes(**totals(lines, SITE), threads_missing=0)
    known = all(bytes_of(line) is not None for line in lines)
    worst = worst_of(lines, lambda line: bytes_of(line) or None) if known else None
    return CountsByLine(whole, lines, worst)


def bytes_of(line: LineSums) -> int | None:
    """Bytes that one line moved, 0 if it was never executed; None if it did so by tensor map."""
    return None if line.total("tensor_loads", "tensor_stores") else line.total(*_SIZES)
