"""A kernel as it is shown: an immutable copy of one that may still change."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

    from tui_probe.trace.event_types import Device, Dim3
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
    static_shared: int | None
    """Bytes a block of the original, as the driver says, else ptxas; the same for ``static_shared_probed``."""
    static_shared_probed: int | None
    slowdown: float | None
    time_ms: float | None
    time_probed_ms: float | None
    probe_bytes: int | None
    results: int
    """Number of result files."""
    folder: Path | None
    device: Device | None


_MADE = ("results", "device", "folder")
_COPIED = [name for name in KernelRow.__slots__ if name not in _MADE]


def row_of(kernel: Kernel, device: Device | None) -> KernelRow:
    """A copy of ``kernel`` as it is now. Reads its ``process.log`` the first time."""
    # Files are looked for only where the engine left some: a process may launch very many kernels that it never saw.
    reached_engine = kernel.folder_name is not None or kernel.status in ("probed", "failed", "pending")
    return KernelRow(
        **{name: getattr(kernel, name) for name in _COPIED},
        results=len(kernel.result_rows),
        device=device,
        folder=kernel.folder if reached_engine else None,
    )
