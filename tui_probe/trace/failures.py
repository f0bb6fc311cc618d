"""What went wrong with the launches of one kernel, in words: each is red wherever the kernel is shown."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

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


def context_failure(failed: ContextFailed | None, index: int, name: str) -> str:
    """The part of a kernel in the failure of the GPU context; "" if it has none.

    The simulated GPU names the kernel. A real driver reports the error later, for all launches since the last result.
    """
    if failed is None:
        return ""
    culprit, colon, what = failed.fault.partition(": ")
    if colon:
        return f"its launch ended the GPU context with {failed.name}: {what}" if culprit == name else ""
    if index not in failed.kernels:
        return ""
    if len(failed.kernels) == 1:
        return f"its launch ended the GPU context with {failed.name}"
    return f"one of {len(failed.kernels)} kernels that may have ended the GPU context with {failed.name}"


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
