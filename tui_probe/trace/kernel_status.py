"""Identity and status of a kernel: name, folder of its files; status with each probe, its reason, failed launches."""

from __future__ import annotations

import ctypes
import hashlib
import os
from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from functools import cache, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal

from tui_probe.trace.kernel_files import ProcessLog, read_grown_log
from tui_probe.trace.locate import path_text_in_trace

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from tui_probe.reasons import Reason
    from tui_probe.trace.event_types import ContextFailed
    from tui_probe.trace.launch_events import FunctionResources, ProbeMode
    from tui_probe.trace.long_column import LongColumn
    from tui_probe.trace.run import Run

_LONGEST_NAME: Final = 16384
"""Characters of a name up to which it is demangled: in a damaged log a line may have any length."""
_SHARED_FILES: Final = ("original.bin", "original.ptx")
"""Files that are the same for all probes, and in the kernel's own folder."""


class KernelIdentity(ABC):
    """Index, name and trace of a kernel, its probe, and the folder of its files."""

    __slots__ = ()

    @property
    @abstractmethod
    def index(self) -> int: ...

    @property
    @abstractmethod
    def name(self) -> str: ...

    @property
    @abstractmethod
    def trace(self) -> Run: ...

    @property
    @abstractmethod
    def probe(self) -> str | None:
        """Name of the probe; None for a whole kernel, and where the run had one probe."""

    @property
    @abstractmethod
    def folder_name(self) -> str | None:
        """Name of its folder in the event log; None in older logs."""

    @property
    @abstractmethod
    def probe_folder(self) -> str | None:
        """Folder in its own: of this probe, else of the first one inserted; None in runs with one probe."""

    @property
    def demangled(self) -> str:
        return demangle(self.name)

    @property
    def folder(self) -> Path | None:
        """The folder of its files, or None if it never reached the engine.

        In a run with several probes each has a folder in that of the kernel; a whole kernel then has that of the first
        probe that was inserted.
        """
        path = self._path()
        return Path(path) if path is not None and os.path.isdir(path) else None  # noqa: PTH112 - thousands of kernels

    def file(self, name: str) -> Path | None:
        """A file of its folder, if it exists and no link leads out of the trace."""
        path = self._path(name)
        return Path(path) if path is not None and os.path.isfile(path) else None  # noqa: PTH113 - as above

    def _path(self, *names: str) -> str | None:
        """Path of its folder, or of a file in it, which need not exist; None if a link leads out of the trace."""
        return path_text_in_trace(self.trace.directory, *self._path_names(*names))

    def _path_names(self, *names: str) -> tuple[str, ...]:
        """Folders from the trace to its folder or a file in it, as the log has them: they may lead anywhere."""
        folder = (
            self.folder_name or f"{self.index}_{hashlib.sha1(self.name.encode(), usedforsecurity=False).hexdigest()}"
        )
        is_shared = bool(names) and names[0] in _SHARED_FILES
        probe_folders = () if is_shared or self.probe_folder is None else (self.probe_folder,)
        return "kernel", folder, *probe_folders, *names


@lru_cache(maxsize=65536)
def demangle(name: str) -> str:
    """``_Z6squarePf`` -> ``square(float*)``; the name itself if it is not a C++ name or cannot be read."""
    if not name.startswith("_Z") or len(name) > _LONGEST_NAME:
        return name
    runtime = _runtime()
    if runtime is None:
        return name
    status = ctypes.c_int(0)
    text = runtime.__cxa_demangle(name.encode(), None, None, ctypes.byref(status))
    if not text:
        return name
    try:
        return (ctypes.string_at(text) if status.value == 0 else name.encode()).decode("utf-8", "backslashreplace")
    finally:
        _free()(text)


@cache
def _runtime() -> ctypes.CDLL | None:
    for library in ("libstdc++.so.6", "libc++abi.so.1"):
        try:
            runtime = ctypes.CDLL(library)
            runtime.__cxa_demangle.restype = ctypes.c_void_p
        except (OSError, AttributeError):
            continue
        runtime.__cxa_demangle.argtypes = [ctypes.c_char_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p]
        return runtime
    return None


@cache
def _free() -> Callable[[int], None]:
    free = ctypes.CDLL(None).free
    free.argtypes = [ctypes.c_void_p]
    free.restype = None
    return lambda address: free(address)


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
    ``largest_row`` is its row, and ``device_bytes`` the maximum that any takes on the device.
    """

    result_rows: LongColumn = field(repr=False)
    status: Status = "pending"
    reason: Reason | None = None
    function: FunctionResources | None = None
    probe_bytes: int | None = None
    device_bytes: int | None = None
    largest_row: int | None = None
    ended_after: int | None = None
    """Number of the launch after which launches of its shape had other probes, since it found nothing of note."""
    log: ProcessLog | None = field(default=None, repr=False)
    """``process.log`` as it was read last, at ``log_size`` bytes."""
    log_size: int = -1

    def decide(self, status: Status, reason: Reason | None = None) -> None:
        self.status, self.reason = status, reason

    def add_size(self, row: int, size: int, device: int) -> None:
        """A launch was sized: the one with most memory represents all."""
        if self.largest_row is None or size > (self.probe_bytes or 0):
            self.largest_row, self.probe_bytes = row, size
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
        log_and_size = None if path is None else read_grown_log(path, self.outcome.log_size)
        if log_and_size is None:
            return False
        self.outcome.log, self.outcome.log_size = log_and_size
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


def context_failure(failure: ContextFailed | None, index: int, name: str) -> str:
    """The part of a kernel in the failure of the GPU context; "" if it has none.

    The simulated GPU names the kernel. A real driver reports the error later, for all launches since the last result.
    """
    if failure is None:
        return ""
    culprit, colon, problem = failure.fault.partition(": ")
    if colon:
        return f"{failure.name}{_ENDED_CONTEXT}: {problem}" if culprit == name else ""
    if index not in failure.kernels:
        return ""
    if len(failure.kernels) == 1:
        return failure.name + _ENDED_CONTEXT
    return f"{failure.name}{_ENDED_CONTEXT}; this kernel is one of {len(failure.kernels)} possible causes"


def launch_failures(
    refused_launches: int, status: int | None, dropped_results: int, reason: str | None
) -> Iterator[str]:
    """Launches that the driver refused, with its last answer, and results of probed launches that were dropped."""
    if refused_launches and status is not None:
        error = _ERROR_NAMES.get(status, f"error {status}")
        yield f"{_count_text(refused_launches, 'launch', 'launches')} refused by the driver: {error}"
    if dropped_results:
        cause = f": {reason}" if reason else ""
        yield f"{_count_text(dropped_results, 'result', 'results')} dropped{cause}"


def _count_text(count: int, singular: str, plural: str) -> str:
    return f"{count} {singular if count == 1 else plural}"
