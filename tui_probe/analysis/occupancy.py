"""How full an SM is with the warps of one kernel."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tui_probe.trace.shapes import Dim3

WARP = 32

# Resident warps per SM, by compute capability: CUDA C++ Programming Guide, "Technical Specifications per Compute
# Capability", maximum number of resident warps per SM.
_MAX_WARPS = {
    "7.0": 64, "7.2": 64, "7.5": 32, "8.0": 64, "8.6": 48, "8.7": 48, "8.9": 48, "9.0": 64, "10.0": 64, "10.3": 64,
    "11.0": 48, "12.0": 48, "12.1": 48,
}  # fmt: skip


def warps_of(block: Dim3) -> int:
    """Warps of a block of this size in threads; a warp that is not full counts."""
    threads = block[0] * block[1] * block[2]
    return -(-threads // WARP)


def occupancy(blocks_per_sm: int | None, block: Dim3 | None, capability: str | None) -> float | None:
    """Resident warps of a kernel over the most an SM of this compute capability holds, in 0…1; None if unknown."""
    most = _MAX_WARPS.get(capability or "")
    if blocks_per_sm is None or block is None or most is None:
        return None
    return min(1.0, blocks_per_sm * warps_of(block) / most)
