"""Immutable copy of a kernel that a live trace still changes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from tui_probe.probekit.finding import NO_FINDING
from tui_probe.trace.kernel_status import ended_context

if TYPE_CHECKING:
    from pathlib import Path

    from tui_probe.probekit.finding import Finding, FindingOrder
    from tui_probe.reasons import Reason
    from tui_probe.trace.event_types import Device
    from tui_probe.trace.gpu_time import GpuTime
    from tui_probe.trace.launch_events import ProbeMode
    from tui_probe.trace.launch_shape import Dim3
    from tui_probe.trace.model import KernelFacts

TREND_LAUNCHES: Final = 8
"""Launches whose times a snapshot has, the last ones: a trend needs no more."""
# Fields that are computed; all others are attributes of the kernel. See ARCHITECTURE.md, "a column of the live table".
_COMPUTED_FIELDS: Final = (
    "results", "device", "folder", "read", "trend", "files", "finding", "limiter", "worst_line", "brief", "first",
    "cycles", "cycle_share",
)  # fmt: skip
# Fields that are read from files of the kernel: None in a snapshot from the log only.
_FOLDER_FIELDS: Final = (
    "registers_pruned", "registers_probed", "spills_pruned", "spills_probed", "shared", "static_shared",
    "static_shared_probed", "probe_reason",
)  # fmt: skip
_NO_FOLDER_FIELDS: Final = dict.fromkeys(_FOLDER_FIELDS)
GPU_TIME: Final = "GPU time"
LAUNCH_CYCLES: Final = "launch cycles"


def sorting_title(share_of: str, *, simulated: bool) -> str:
    """``by share of GPU time``; without shares ``flagged first``."""
    model = " (modeled)" if simulated and share_of == LAUNCH_CYCLES else ""
    return f"by share of {share_of}{model}" if share_of else "flagged first"


@dataclass(frozen=True, slots=True)
class KernelSnapshot:
    """One kernel. What was not measured is None; units are those of :class:`tui_probe.trace.model.Kernel`."""

    index: int
    name: str
    demangled: str
    status: str
    mode: ProbeMode | None
    """Mode of its probe; None where it has none."""
    probe_reason: Reason | None
    """Reason why it was not probed, or none of its launches was; of another probed kernel a remark of the engine."""
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
    slowdown_stderr: float | None
    slowdown_pairs: int
    time_share: float | None
    gpu_time: GpuTime | None
    time_ms: float | None
    time_probed_ms: float | None
    probe_bytes: int | None
    results: int
    """Number of results that the log reports."""
    folder: Path | None
    device: Device | None
    read: bool
    """True if values from the folder of the kernel were read; without, they are None."""
    trend: tuple[float, ...] = ()
    """GPU time in ns of the last launches that were timed without the probe, else with it; at most
    ``TREND_LAUNCHES``.
    """
    files: int | None = None
    """Number of their files that exist; None where that was not counted, while the process runs."""
    failures: tuple[str, ...] = ()
    """Failures of its launches, the worst first."""
    finding: str = ""
    """The first finding in words, ``!`` before a flagged one; "" where findings were not read."""
    limiter: str = ""
    """Limiter of the kernel, such as ``memory (L2) 83%``; "" where it is not known."""
    worst_line: str = ""
    """Line of code to look at first, such as ``buggy.py:23 ld.global 16 sectors, ideal 4``; "" for none."""
    brief: str = ""
    """The first finding in few words, if it is flagged."""
    first: Finding | None = None
    """The first loss in the order of the report."""
    cycles: float | None = None
    """Mean cycles of a launch, where no times were measured."""
    cycle_share: float | None = None
    """Share of the cycles of all launches, where no times were measured."""

    @property
    def stands_out(self) -> bool:
        """True if a finding is flagged."""
        return self.finding.startswith("!")

    @property
    def shown_failure(self) -> str:
        """The failure that takes the place of the finding, or "".

        Results of a good kernel are dropped when a later one ends the context: its own fault tells more.
        """
        return self.failures[0] if self.failures and (ended_context(self.failures) or not self.stands_out) else ""

    @property
    def share(self) -> float | None:
        """Share of the GPU time, else of the cycles of all launches; None if neither is known."""
        return self.cycle_share if self.time_share is None else self.time_share

    @property
    def loss_order(self) -> FindingOrder:
        """Sort key by the first finding, as in the report: failed kernels first, those without a finding last."""
        if self.failures:
            return False, False, -1.0, 0.0
        return NO_FINDING if self.first is None else self.first.order_at(self.share)

    @property
    def reason(self) -> str | None:
        """The text of ``probe_reason``."""
        return None if self.probe_reason is None else self.probe_reason.text

    @property
    def reason_code(self) -> str | None:
        """The code of ``probe_reason``."""
        return None if self.probe_reason is None else self.probe_reason.code


_COPIED_FIELDS: Final = [name for name in KernelSnapshot.__slots__ if name not in _COMPUTED_FIELDS]
_LOG_FIELDS: Final = [name for name in _COPIED_FIELDS if name not in _FOLDER_FIELDS]


def kernel_snapshot(kernel: KernelFacts, device: Device | None) -> KernelSnapshot:
    """Return a copy of ``kernel`` as it is now. Reads its ``process.log`` once, and the PTX of a bad access."""
    values = {name: getattr(kernel, name) for name in _COPIED_FIELDS}
    from tui_probe.verdicts.code_places import located_failure_texts  # reads code, by which the first frame would wait
    from tui_probe.verdicts.probe_coverage import missing_reason

    values["failures"] = located_failure_texts(kernel)
    values["probe_reason"] = missing_reason(kernel)
    return KernelSnapshot(
        **values,
        results=len(kernel.result_rows),
        device=device,
        folder=kernel.folder if may_have_folder(kernel) else None,
        read=True,
        trend=_trend(kernel),
        files=None if kernel.trace.state.is_running else kernel.result_files(),
    )


def snapshot_from_log(kernel: KernelFacts, device: Device | None) -> KernelSnapshot:
    """Return a snapshot of a kernel from the log only: no file is read."""
    values = {name: getattr(kernel, name) for name in _LOG_FIELDS}
    values |= _NO_FOLDER_FIELDS
    values["probe_reason"] = kernel.stated_reason
    return KernelSnapshot(
        **values, results=len(kernel.result_rows), device=device, folder=None, read=False, trend=_trend(kernel)
    )


def _trend(kernel: KernelFacts) -> tuple[float, ...]:
    time = kernel.gpu_time
    return () if time is None else kernel.samples.last_times(TREND_LAUNCHES, probed=time.only_probed)


def may_have_folder(kernel: KernelFacts) -> bool:
    """Return whether the engine may have left a folder: a process may launch many kernels that the engine never saw."""
    return kernel.folder_name is not None or kernel.status in ("probed", "failed", "pending")
