"""Status of a kernel: what became of it with each probe, and failures of its launches."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Literal

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tui_probe.reasons import Reason
    from tui_probe.trace.event_types import ContextFailed
    from tui_probe.trace.launch_events import FunctionResources
    from tui_probe.trace.long_column import LongColumn

Status = Literal["pending", "probed", "skipped", "failed", "excluded"]
"""``pending``: being prepared, or the log ends before its fate is known."""


@dataclass(slots=True)
class Probing:
    """One probe in one kernel. ``function`` is what the driver says of the probed function.

    Where several probes are sized (``run --memusage``) ``probe_bytes`` are those of the launch whose records take most,
    ``largest`` is its row, and ``device_bytes`` the most that any takes on the device.
    """

    probe: str
    result_rows: LongColumn = field(repr=False)
    status: Status = "pending"
    reason: Reason | None = None
    function: FunctionResources | None = None
    probe_bytes: int | None = None
    device_bytes: int | None = None
    largest: int | None = None

    def larger(self, row: int, size: int, device: int) -> None:
        """A launch was sized; one with more memory stands for those before."""
        if self.largest is None or size > (self.probe_bytes or 0):
            self.largest, self.probe_bytes = row, size
        self.device_bytes = max(self.device_bytes or 0, device)


_ERROR_NAMES: Final = {
    1: "CUDA_ERROR_INVALID_VALUE",
    2: "CUDA_ERROR_OUT_OF_MEMORY",
    98: "CUDA_ERROR_INVALID_DEVICE_FUNCTION",
    201: "CUDA_ERROR_INVALID_CONTEXT",
    400: "CUDA_ERROR_INVALID_HANDLE",
    700: "CUDA_ERROR_ILLEGAL_ADDRESS",
    701: "CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES",
    702: "CUDA_ERROR_LAUNCH_TIMEOUT",
    709: "CUDA_ERROR_CONTEXT_IS_DESTROYED",
    710: "CUDA_ERROR_ASSERT",
    715: "CUDA_ERROR_ILLEGAL_INSTRUCTION",
    716: "CUDA_ERROR_MISALIGNED_ADDRESS",
    719: "CUDA_ERROR_LAUNCH_FAILED",
    720: "CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE",
}
_ENDED_CONTEXT: Final = " ended the GPU context"


def ended_context(failures: Sequence[str]) -> bool:
    """Whether a kernel with these failures ended the GPU context, or may have."""
    return any(_ENDED_CONTEXT in text for text in failures)


def context_failure(failed: ContextFailed | None, index: int, name: str) -> str:
    """The part of a kernel in the failure of the GPU context; "" if it has none.

    The simulated GPU names the kernel. A real driver reports the error later, for all launches since the last result.
    """
    if failed is None:
        return ""
    culprit, colon, what = failed.fault.partition(": ")
    if colon:
        return f"{failed.name}{_ENDED_CONTEXT}: {what}" if culprit == name else ""
    if index not in failed.kernels:
        return ""
    if len(failed.kernels) == 1:
        return failed.name + _ENDED_CONTEXT
    return f"{failed.name}{_ENDED_CONTEXT}; this kernel is one of {len(failed.kernels)} possible causes"


def launch_failures(refused: int, status: int | None, dropped: int, reason: str | None) -> Iterator[str]:
    """Launches that the driver refused, with its last answer, and results of probed launches that were dropped."""
    if refused and status is not None:
        error = _ERROR_NAMES.get(status, f"error {status}")
        yield f"{_count_text(refused, 'launch', 'launches')} refused by the driver: {error}"
    if dropped:
        why = f": {reason}" if reason else ""
        yield f"{_count_text(dropped, 'result', 'results')} dropped{why}"


def _count_text(count: int, one: str, more: str) -> str:
    return f"{count} {one if count == 1 else more}"
