"""Status of a kernel with each probe, its reason, and failures of its launches."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Literal

from tui_probe.trace.kernel_files import ProcessLog, read_grown_log
from tui_probe.trace.kernel_identity import KernelIdentity

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tui_probe.reasons import Reason
    from tui_probe.trace.event_types import ContextFailed
    from tui_probe.trace.launch_events import FunctionResources, ProbeMode
    from tui_probe.trace.long_column import LongColumn

Status = Literal["pending", "probed", "skipped", "failed", "excluded"]
"""``pending``: being prepared, or the log ends before that."""
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


@dataclass(slots=True)
class ProbeOutcome:
    """State of a kernel with one probe, or with all of a run together.

    ``function`` has the driver's resources of the probed function.

    Where several probes are sized (``run --memusage``) ``probe_bytes`` are those of the launch whose records take most,
    ``largest`` is its row, and ``device_bytes`` the maximum that any takes on the device.
    """

    result_rows: LongColumn = field(repr=False)
    status: Status = "pending"
    reason: Reason | None = None
    function: FunctionResources | None = None
    probe_bytes: int | None = None
    device_bytes: int | None = None
    largest: int | None = None
    ended_after: int | None = None
    """Number of the launch after which launches of its shape had other probes, since it found nothing of note."""
    log: ProcessLog | None = field(default=None, repr=False)
    """``process.log`` as it was read last, at ``log_size`` bytes."""
    log_size: int = -1

    def decide(self, status: Status, reason: Reason | None = None) -> None:
        self.status, self.reason = status, reason

    def add_size(self, row: int, size: int, device: int) -> None:
        """A launch was sized: the one with most memory represents all."""
        if self.largest is None or size > (self.probe_bytes or 0):
            self.largest, self.probe_bytes = row, size
        self.device_bytes = max(self.device_bytes or 0, device)


class KernelStatus(KernelIdentity):
    """Status of a kernel, its reason, and the output of ptxas."""

    __slots__ = ()

    @property
    @abstractmethod
    def outcome(self) -> ProbeOutcome:
        """State with its probe; of a whole kernel that by its own lines in the log."""

    @property
    @abstractmethod
    def stated_mode(self) -> ProbeMode | None:
        """Mode in the event log."""

    @property
    def status(self) -> Status:
        return self.outcome.status

    @property
    def stated_reason(self) -> Reason | None:
        """The reason in the event log."""
        return self.outcome.reason

    @property
    def mode(self) -> ProbeMode | None:
        """Mode of the probe; None where it is not inserted. Logs without a mode are older than SASS mode."""
        return (self.stated_mode or "ptx") if self.status == "probed" else None

    @property
    def process_log(self) -> ProcessLog:
        """Output of ptxas as it was read last; see ``refresh``."""
        if self.outcome.log is None:
            self.refresh()
        return self.outcome.log or ProcessLog()

    def refresh(self) -> bool:
        """Read ``process.log`` again if it has grown: an assembler may end after the kernel's status is known."""
        path = self._path("process.log")
        grown = None if path is None else read_grown_log(path, self.outcome.log_size)
        if grown is None:
            return False
        self.outcome.log, self.outcome.log_size = grown
        return True

    @property
    def probe_reason(self) -> Reason | None:
        """The reason with its code."""
        if self.stated_reason is None and self.status == "failed":
            return self.process_log.reason
        return self.stated_reason

    @property
    def reason(self) -> str | None:
        """The reason why it was not probed; of a probed kernel the remark of the engine, None without one."""
        return None if (reason := self.probe_reason) is None else reason.text

    @property
    def reason_code(self) -> str | None:
        """The code of the reason; None where no version known here writes it."""
        return None if (reason := self.probe_reason) is None else reason.code

    @property
    def matched_nothing(self) -> bool:
        """True if it was probed, and has none of the instructions or lines that the probe is for."""
        return self.status == "probed" and self.reason_code == "matched-nothing"


def ended_context(failures: Sequence[str]) -> bool:
    """True if a kernel with these failures ended the GPU context, or may have."""
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


def _count_text(count: int, singular: str, plural: str) -> str:
    return f"{count} {singular if count == 1 else plural}"
