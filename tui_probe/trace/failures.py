"""What went wrong with the launches of one kernel, in words: each is red wherever the kernel is shown."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tui_probe.trace.process_events import ContextFailed

_NAMES: Final = {
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
_ENDED: Final = " ended the GPU context"


def ended_context(failures: Sequence[str]) -> bool:
    """Whether a kernel with these failures ended the GPU context, or may have."""
    return any(_ENDED in text for text in failures)


def context_failure(failed: ContextFailed | None, index: int, name: str) -> str:
    """The part of a kernel in the failure of the GPU context; "" if it has none.

    The simulated GPU names the kernel. A real driver reports the error later, for all launches since the last result.
    """
    if failed is None:
        return ""
    culprit, colon, what = failed.fault.partition(": ")
    if colon:
        return f"{failed.name}{_ENDED}: {what}" if culprit == name else ""
    if index not in failed.kernels:
        return ""
    if len(failed.kernels) == 1:
        return failed.name + _ENDED
    return f"{failed.name}{_ENDED}; this kernel is one of {len(failed.kernels)} possible causes"


def launch_failures(refused: int, status: int | None, dropped: int, reason: str | None) -> Iterator[str]:
    """Launches that the driver refused, with its last answer, and results of probed launches that were dropped."""
    if refused and status is not None:
        error = _NAMES.get(status, f"error {status}")
        yield f"{_counted(refused, 'launch', 'launches')} refused by the driver: {error}"
    if dropped:
        why = f": {reason}" if reason else ""
        yield f"{_counted(dropped, 'result', 'results')} dropped{why}"


def _counted(count: int, one: str, more: str) -> str:
    return f"{count} {one if count == 1 else more}"
