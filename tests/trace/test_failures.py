"""The part of a kernel in the failure of a GPU context."""

from __future__ import annotations

import pytest

from tui_probe.trace.event_types import ContextFailed
from tui_probe.trace.kernel_status import context_failure, ended_context

NAME = "CUDA_ERROR_ILLEGAL_ADDRESS"


@pytest.mark.parametrize(
    ("kernels", "fault", "words"),
    [
        ((2,), "", f"{NAME} ended the GPU context"),
        ((1, 2, 3), "", f"{NAME} ended the GPU context; this kernel is one of 3 possible causes"),
        ((1, 3), "", ""),
        ((1, 2), "scale: illegal address 0x10", f"{NAME} ended the GPU context: illegal address 0x10"),
        ((1, 2), "other: illegal address 0x10", ""),
    ],
)
def test_context_failure_names_what_is_known(kernels: tuple[int, ...], fault: str, words: str) -> None:
    failure = context_failure(ContextFailed(700, NAME, kernels, fault), 2, "scale")
    assert failure == words
    assert ended_context([failure]) == bool(words)


def test_dropped_results_end_no_context() -> None:
    assert not ended_context(["1 result dropped: write rate limit exceeded"])
