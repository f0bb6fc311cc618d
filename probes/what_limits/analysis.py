"""What a launch asks of each unit, as far as instructions tell.

With the sums over all warps::

    sectors            = those of loads, stores and atomics of global memory
    shared requests    = shared_passes / 32              at least as many passes of shared memory
    tensor operations  = 2 · multiply-adds of all types
    as half            = 2 · (half + 2 · tf32 + byte / 2 + 16 · double)

``as half`` is the number of operations in half precision that take tensor cores as long: they multiply numbers of tf32
half as fast as those of 16 bits, of 8 bits twice as fast, and doubles at a 16th (NVIDIA's white papers of A100 and
H100).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from tui_probe.analysis.counts import summed

if TYPE_CHECKING:
    from tui_probe.trace.results import Result

_COUNTS: Final = (
    "loaded", "stored", "load_requests", "load_sectors", "store_requests", "store_sectors", "load_ideal",
    "store_ideal", "atomic_requests",
    "atomic_sectors", "unsized", "shared_passes", "tensor_half", "tensor_tf32", "tensor_byte", "tensor_double", "wgmma",
    "fp32_operations", "fp64_operations", "half_operations", "fp32_instructions", "fp64_instructions",
    "half_instructions", "memory_instructions", "instructions",
)  # fmt: skip
RECORD: Final = np.dtype(
    {
        "names": [*_COUNTS, "threads"],
        "formats": ["<u8"] * len(_COUNTS) + ["<u4"],
        "offsets": [8 * place for place in range(len(_COUNTS) + 1)],
        "itemsize": 8 * (len(_COUNTS) + 1),
    }
)
"""What the probe saves for each warp: sums over its lanes."""
_WARP, _WARPS_OF_WGMMA = 32, 128


@dataclass(frozen=True, slots=True)
class Asked:
    """Sums of one launch, by the names of ``probe.toml``."""

    sums: dict[str, int]
    threads_missing: int

    @property
    def read(self) -> int | None:
        """Bytes read from global memory; None where copies by tensor map state no size."""
        return None if self.sums["unsized"] else self.sums["loaded"]

    @property
    def written(self) -> int | None:
        """Bytes written to global memory, likewise."""
        return None if self.sums["unsized"] else self.sums["stored"]

    @property
    def sectors(self) -> int | None:
        """Sectors of global memory, likewise."""
        kinds = ("load_sectors", "store_sectors", "atomic_sectors")
        return None if self.sums["unsized"] else sum(self.sums[kind] for kind in kinds)

    @property
    def shared_requests(self) -> int:
        """Requests to shared memory, those of several matrices counted for each."""
        return self.sums["shared_passes"] // _WARP

    @property
    def wgmma(self) -> int:
        """Matrix instructions of four warps."""
        return self.sums["wgmma"] // _WARPS_OF_WGMMA

    @property
    def tensor_operations(self) -> int:
        """Operations of matrix instructions."""
        return 2 * sum(self.sums[f"tensor_{kind}"] for kind in ("half", "tf32", "byte", "double"))

    @property
    def tensor_as_half(self) -> float:
        """Operations in half precision that take as long."""
        longer = {"half": 1.0, "tf32": 2.0, "byte": 0.5, "double": 16.0}
        return 2 * sum(times * self.sums[f"tensor_{kind}"] for kind, times in longer.items())


def analyse(result: Result) -> Asked:
    """What one launch asked for; TraceError if map 0 holds no records of ``what_limits``."""
    sums = summed(result, RECORD, "what_limits")
    return Asked(sums.totals, sums.threads_missing)
