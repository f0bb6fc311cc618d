"""Time of a launch for the search of races: stamps of accesses, and the clock that gives them their time.

Time counts accesses and synchronisations in the order of execution. A stamp of a byte is the time of its last access
and the thread that made it.
"""

from __future__ import annotations

from array import array
from functools import wraps
from typing import TYPE_CHECKING, Any, Final, Protocol

import numpy as np

from tui_probe.simgpu.executor.model import WARP_SIZE

if TYPE_CHECKING:
    from collections.abc import Callable

TIME_BITS: Final = 32
"""Lower bits of a stamp: flags and the thread's number in the grid. The time is above them."""
COPIED: Final = 1 << 31
"""Stamp of a ``cp.async``, which is complete when its thread has waited for it."""
TRACKED: Final = 1 << 30
"""Stamp of a copy whose bytes an mbarrier counts."""
BULK: Final = COPIED | TRACKED
"""Stamp of a bulk copy out of shared memory, which is complete when its thread has waited for its group."""
STRONG_BLOCK: Final = 1 << 28
STRONG_CLUSTER: Final = 2 << 28
STRONG: Final = 3 << 28
"""Stamps of atomics and other accesses that may race with their like, within their scope; this one of the GPU."""
MAX_THREADS: Final = 1 << 28
"""Threads of the largest launch whose races are searched: the flags take the other bits below the time."""
THREAD_BITS: Final = np.uint64(MAX_THREADS - 1)
SAME_THREAD_BITS: Final = np.uint64(COPIED | TRACKED | MAX_THREADS - 1)
"""Bits that two stamps of the same thread have in common."""
_CODE_BITS: Final = 2
"""Bits for the code of an access: load, store, atomic, copy."""
FULL_MASK: Final = (1 << WARP_SIZE) - 1


def contain_errors(check: Callable[..., None]) -> Callable[..., None]:
    """Wrap a method of a check, so that an error in it ends all checks of the launch: the kernel runs without them."""

    @wraps(check)
    def run_check(self: _Check, *arguments: Any) -> None:
        if not self.clock.failure:
            try:
                check(self, *arguments)
            except Exception as error:  # noqa: BLE001  a mistake of a check must not fail the kernel
                self.clock.failure = f"{type(error).__name__}: {error}"

    return run_check


class _Check(Protocol):
    clock: LaunchClock


class LaunchClock:
    """Time of a launch, which ``start_time`` continues from the last one, and the instruction of each access."""

    def __init__(self, start_time: int, blocks: int) -> None:
        self.start_time = self.time = start_time
        self.failure = ""
        """The error that ended the checks of the launch."""
        self._accesses = array("Q")
        self.release_times = np.zeros(blocks, np.int64)
        """Time of the last fence for the GPU, by block of the grid."""
        self.acquire_times = np.zeros(blocks, np.int64)
        """Last time when a block may have seen the fences of others, by block of the grid."""

    def tick(self, line: int = 0, code: int = 0) -> int:
        """Advance the time, for an access by the instruction at a line or for another event, and return it."""
        self._accesses.append(line << _CODE_BITS | code)
        self.time += 1
        return self.time

    def access_at(self, time: int) -> tuple[int, int]:
        """Return the line and code of the access at a time."""
        packed = self._accesses[time - self.start_time - 1]
        return packed >> _CODE_BITS, packed & (1 << _CODE_BITS) - 1
