"""A kernel as it is shown: an immutable copy of one that may still change."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tui_probe.pages.failures import located_failures

if TYPE_CHECKING:
    from pathlib import Path

    from tui_probe.reasons import Reason
    from tui_probe.trace.gpu_time import GpuTime
    from tui_probe.trace.kernel_events import Way
    from tui_probe.trace.model import Kernel
    from tui_probe.trace.process_events import Device
    from tui_probe.trace.shapes import Dim3

TREND = 8
"""Launches whose times a row has."""


@dataclass(frozen=True, slots=True)
class KernelRow:
    """One kernel. What was not measured is None; units are those of :class:`tui_probe.trace.model.Kernel`."""

    index: int
    name: str
    demangled: str
    status: str
    way: Way | None
    """How its probe is in it; None where it is not."""
    why: Reason | None
    """Why it was not probed; of a probed kernel what the engine remarks."""
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
    """Bytes per block of the original, as the driver says, else ptxas; the same for ``static_shared_probed``."""
    static_shared_probed: int | None
    slowdown: float | None
    slowdown_doubt: float | None
    slowdown_pairs: int
    time_share: float | None
    gpu_time: GpuTime | None
    time_ms: float | None
    time_probed_ms: float | None
    probe_bytes: int | None
    results: int
    """Number of results that the log tells of."""
    folder: Path | None
    device: Device | None
    read: bool
    """Whether it has what the folder of the kernel tells: without, that is None."""
    trend: tuple[float, ...] = ()
    """GPU time in ns of the last launches that were timed without the probe, else with it; at most ``TREND``."""
    files: int | None = None
    """How many of their files are there; None where that was not looked for, while the process runs."""
    failures: tuple[str, ...] = ()
    """What went wrong with its launches, the worst first."""
    finding: str = ""
    """What its probes found in words, with ``!`` before what stands out; "" where that was not read."""

    @property
    def stands_out(self) -> bool:
        """Does something of what was found stand out?"""
        return self.finding.startswith("!")

    @property
    def reason(self) -> str | None:
        """The words of ``why``."""
        return None if self.why is None else self.why.text

    @property
    def reason_code(self) -> str | None:
        """The code of ``why``."""
        return None if self.why is None else self.why.code


_MADE = ("results", "device", "folder", "read", "trend", "files", "finding")
_COPIED = [name for name in KernelRow.__slots__ if name not in _MADE]
_OF_FOLDER = (
    "registers_pruned", "registers_probed", "spills_pruned", "spills_probed", "shared", "static_shared",
    "static_shared_probed", "why",
)  # fmt: skip
_OF_LOG = [name for name in _COPIED if name not in _OF_FOLDER]
_NONE = dict.fromkeys(_OF_FOLDER)


def row_of(kernel: Kernel, device: Device | None) -> KernelRow:
    """A copy of ``kernel`` as it is now. Reads its ``process.log`` the first time, and the PTX of a bad access."""
    values = {name: getattr(kernel, name) for name in _COPIED}
    values["failures"] = located_failures(kernel)
    return KernelRow(
        **values,
        results=len(kernel.result_rows),
        device=device,
        folder=kernel.folder if has_folder(kernel) else None,
        read=True,
        trend=_trend(kernel),
        files=None if kernel.trace.state.running else kernel.result_files(),
    )


def first_row_of(kernel: Kernel, device: Device | None) -> KernelRow:
    """What the log alone tells of a kernel that has a folder: no file is read."""
    values = {name: getattr(kernel, name) for name in _OF_LOG}
    values |= _NONE
    values["why"] = kernel.stated_reason
    return KernelRow(
        **values, results=len(kernel.result_rows), device=device, folder=None, read=False, trend=_trend(kernel)
    )


def _trend(kernel: Kernel) -> tuple[float, ...]:
    time = kernel.gpu_time
    return () if time is None else kernel.samples.last(TREND, probed=time.with_probe)


def has_folder(kernel: Kernel) -> bool:
    """Whether the engine may have left a folder: a process may launch very many kernels that the engine never saw."""
    return kernel.folder_name is not None or kernel.status in ("probed", "failed", "pending")
