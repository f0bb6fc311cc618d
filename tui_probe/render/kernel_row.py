"""A kernel as it is shown: an immutable copy of one that may still change."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

    from tui_probe.trace.event_types import Device, Dim3
    from tui_probe.trace.kernels import Resources
    from tui_probe.trace.model import Kernel


@dataclass(frozen=True, slots=True)
class KernelRow:
    """One kernel. What was not measured is None; units are those of :class:`tui_probe.trace.model.Kernel`."""

    index: int
    name: str
    demangled: str
    status: str
    reason: str | None
    launches: int
    launches_probed: int
    grid: Dim3 | None
    block: Dim3 | None
    grid_varies: bool
    block_varies: bool
    shared: int | None
    registers_pruned: int | None
    registers_probed: int | None
    spills_pruned: int | None
    spills_probed: int | None
    blocks_per_sm: int | None
    blocks_per_sm_probed: int | None
    local_original: int | None
    local_probed: int | None
    shared_dynamic: int | None
    driver_original: Resources | None
    driver_probed: Resources | None
    slowdown: float | None
    time_ms: float | None
    time_probed_ms: float | None
    probe_bytes: int | None
    results: int
    """Number of result files."""
    folder: Path | None
    device: Device | None


_COPIED = [name for name in KernelRow.__slots__ if name not in ("results", "device")]


def row_of(kernel: Kernel, device: Device | None) -> KernelRow:
    """A copy of ``kernel`` as it is now. Reads its ``process.log`` the first time."""
    values = {name: getattr(kernel, name) for name in _COPIED}
    return KernelRow(**values, results=len(kernel.result_rows), device=device)
