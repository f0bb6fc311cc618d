"""NaNs and infinities that a launch stored to global memory: which was first, and what was not looked at.

stores    executions of a store by a warp in which at least one lane stores such a number; all are counted
records   the first four stores of each warp, each with the values of the lowest such lane
first     the record with the earliest time; at the same time, of the lowest clock, block and warp. The timer
          ticks only every so many nanoseconds, so of SMs that store within a tick any may have been first.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from tui_probe.analysis.known_sites import sites_of
from tui_probe.errors import TraceError
from tui_probe.ptx.value_types import FLOAT_BITS
from tui_probe.trace.result_layout import WARP_SIZE

if TYPE_CHECKING:
    from pathlib import Path

    from tui_probe.analysis.known_sites import KnownSites
    from tui_probe.trace.results import Result
    from tui_probe.trace.shapes import Dim3
    from tui_probe.trace.source_lines import SourceLine

RECORD: Final = np.dtype(
    [("time", "<u8"), ("address", "<u8"), ("value", "<u8")]
    + [(name, "<u4") for name in ("clock", "line", "lane", "kind")]
)
"""What ``nan_check`` saves."""
KINDS: Final = {1: "f16", 2: "bf16", 3: "f32", 4: "f64"}


@dataclass(frozen=True, slots=True)
class NotFinite:
    """One store of a NaN or an infinity. ``block`` and ``thread`` are indices as in CUDA, (x, y, z)."""

    time_ns: int
    block: Dim3
    thread: Dim3
    address: int
    value: float
    kind: str
    line: int
    source: SourceLine | None

    @property
    def words(self) -> str:
        """``NaN``, ``inf`` or ``-inf``, and of which type."""
        return f"{'NaN' if math.isnan(self.value) else self.value} ({self.kind})"


@dataclass(frozen=True, slots=True)
class Unchecked:
    """A store that was not looked at, since nothing tells what it stores."""

    line: int
    opcode: str
    source: SourceLine | None


@dataclass(frozen=True, slots=True)
class NanCheck:
    """One launch: ``found`` in the order of time, ``stores`` how many there were."""

    stores: int
    found: tuple[NotFinite, ...]
    unchecked: tuple[Unchecked, ...]
    threads_missing: int = 0

    @property
    def first(self) -> NotFinite | None:
        return self.found[0] if self.found else None


def analyse(result: Result, folder: Path | None = None) -> NanCheck:
    """The launch's stores of NaN and infinity; ``folder`` is its kernel's in the trace, for the source lines.

    TraceError if map 0 holds no records of ``nan_check``.
    """
    records, attempts = result.records(0, RECORD), result.attempts(0)
    kept, totals = result.kept(0), result.totals(0)
    if attempts is None or kept is None or totals is None or result.sections[0].level != "warp":
        raise TraceError(f"{result.path}: its records are not of nan_check")
    known = sites_of(folder)
    unchecked = tuple(Unchecked(one.line, one.opcode, one.source) for one in known.unchecked())
    block, warp, place = np.nonzero(np.arange(records.shape[2]) < kept[:, :, np.newaxis])
    found = records[block, warp, place]
    order = np.lexsort((warp, block, found["clock"], found["time"])).tolist()
    ordered = tuple(_not_finite(result, found[i], int(block[i]), int(warp[i]), known) for i in order)
    return NanCheck(totals[1], ordered, unchecked)


def _not_finite(result: Result, record: np.void, block: int, warp: int, known: KnownSites) -> NotFinite:
    kind, line = KINDS.get(int(record["kind"]), "?"), int(record["line"])
    return NotFinite(
        time_ns=int(record["time"]),
        block=_index(result.blocks[block], result.header.grid),
        thread=_index(warp * WARP_SIZE + int(record["lane"]), result.header.block),
        address=int(record["address"]),
        value=_value(int(record["value"]), kind),
        kind=kind,
        line=line,
        source=known.ptx_line(line),
    )


def _index(linear: int, extent: Dim3) -> Dim3:
    x, y, _ = extent
    return linear % x, linear // x % y, linear // (x * y)


def _value(bits: int, kind: str) -> float:
    """The number with these bits; bf16 is the upper half of f32."""
    if kind == "bf16":
        bits, kind = bits << 16, "f32"
    if kind not in FLOAT_BITS:
        return math.nan
    raw = bits.to_bytes(8, "little")[: FLOAT_BITS[kind] // 8]
    return float(np.frombuffer(raw, f"<f{FLOAT_BITS[kind] // 8}")[0])
