"""Global memory requests and sectors, as hardware counters define them.

    requests  a load or store that a warp executed with at least one lane
              l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum (st)
    sectors   the distinct 32-byte sectors that the lanes of a request touch, added up over requests
              l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum (st)
    cp.async  is a load for these counters; its part is told apart, too
    sectors per request = sectors / requests

32 lanes with 4 bytes each, side by side, touch 4 sectors; 8 bytes 8, 16 bytes 16; a lane in a sector of its own gives
32. ``matrix_accesses`` are ``wmma.load`` and ``wmma.store`` in global memory, which these figures leave out.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from tui_probe.analysis.by_line import CountsByLine, line_sums, record_of, totals, worst_of
from tui_probe.analysis.counts import ratio, summed

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from tui_probe.analysis.by_line import LineSums
    from tui_probe.trace.results import Result

_COUNTS: Final = (
    "load_requests", "load_sectors", "store_requests", "store_sectors", "copy_requests", "copy_sectors",
)  # fmt: skip
RECORD: Final = np.dtype([(name, "<u4") for name in (*_COUNTS, "matrix_accesses", "generic_accesses", "threads")])
"""What ``gmem_sectors`` saves for each warp: sums over its lanes."""
SITE: Final = record_of(*_COUNTS, "matrix_accesses", "generic_accesses")
"""What ``gmem_sectors_by_line`` keeps for each instruction."""
_WARP: Final = 32
_GLOBAL_IN_MACHINE_CODE: Final = ("LDG", "STG")
"""How names of instructions begin there: LDG, LDGSTS, STG."""


@dataclass(frozen=True, slots=True)
class MemorySectors:
    """Requests and sectors of one launch; loads are those of ``cp.async``, which are told again as copies, too."""

    load_requests: int
    load_sectors: int
    store_requests: int
    store_sectors: int
    copy_requests: int
    copy_sectors: int
    matrix_accesses: int
    generic_accesses: int
    threads_missing: int

    @property
    def sectors_per_load(self) -> float | None:
        """Sectors per load request."""
        return ratio(self.load_sectors, self.load_requests)

    @property
    def sectors_per_store(self) -> float | None:
        """Sectors per store request."""
        return ratio(self.store_sectors, self.store_requests)

    @property
    def sectors_per_copy(self) -> float | None:
        """Sectors per request of ``cp.async``."""
        return ratio(self.copy_sectors, self.copy_requests)


def analyse(result: Result) -> MemorySectors:
    """The requests and sectors of one launch; TraceError if map 0 holds no records of ``gmem_sectors``."""
    sums = summed(result, RECORD, "gmem_sectors")
    return _of_sums(sums.totals, sums.threads_missing)


def analyse_lines(result: Result, sites: Sequence[int], folder: Path | None = None) -> CountsByLine[MemorySectors]:
    """The same by line, of ``gmem_sectors_by_line``; see :func:`by_line.line_sums`. Raises TraceError."""
    lines = line_sums(result, SITE, "gmem_sectors_by_line", sites, folder)
    sums = totals(lines, SITE)
    whole = _of_sums(sums, threads_missing=0)
    return CountsByLine(whole, lines, worst_of(lines, sectors_per_request))


def _of_sums(sums: dict[str, int], threads_missing: int) -> MemorySectors:
    loads = {f"load_{what}": sums[f"load_{what}"] + sums[f"copy_{what}"] for what in ("requests", "sectors")}
    matrices = {"matrix_accesses": sums["matrix_accesses"] // _WARP}
    return MemorySectors(**sums | loads | matrices, threads_missing=threads_missing)


def is_counted(line: LineSums) -> bool:
    """Whether requests and sectors of a line are counted; wmma and generic accesses are not."""
    if line.opcode is None or line.opcode.startswith(_GLOBAL_IN_MACHINE_CODE):
        return True
    return ".global" in line.opcode and not line.opcode.startswith("wmma.")


def requests_and_sectors(line: LineSums) -> tuple[int, int]:
    """Of loads, stores and copies."""
    kinds = ("load", "store", "copy")
    return line.total(*(f"{kind}_requests" for kind in kinds)), line.total(*(f"{kind}_sectors" for kind in kinds))


def sectors_per_request(line: LineSums) -> float | None:
    """Sectors per request of one line; None if it was never executed."""
    requests, sectors = requests_and_sectors(line)
    return ratio(sectors, requests)
