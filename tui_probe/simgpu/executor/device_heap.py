"""``malloc`` and ``free`` of kernels: pieces of a variable that holds the heap, in device memory.

The heap is a chain of pieces without gaps, each behind a header of 16 bytes: its size with the header (u64), and
whether it is taken (u64). A heap of zeros, as a module that was loaded has it, is one free piece. So all that
is known of it is in its memory, which lasts as long as the module.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tui_probe.errors import SimulationError
from tui_probe.simgpu.executor.scalars import U64

if TYPE_CHECKING:
    from tui_probe.simgpu.executor.memory import DeviceMemory

HEAP: Final = "tui_probe_heap"
"""The name of that variable."""
HEAP_BYTES: Final = 8 << 20
"""What a driver's heap has, unless it is asked for more."""
HEADER: Final = 16


class Heap:
    """The heap at an address of device memory."""

    def __init__(self, memory: DeviceMemory, address: int) -> None:
        start = address - memory.base
        self._address = address
        self._words = memory.view(U64)[start // 8 : (start + HEAP_BYTES) // 8]
        if not self._words[0]:
            self._words[0] = HEAP_BYTES

    def take(self, size: int) -> int:
        """The address of ``size`` bytes at a multiple of 16, 0 where there is no such room."""
        needed = HEADER + -(-max(size, 1) // 16) * 16
        offset = 0
        while offset < HEAP_BYTES:
            here = offset // 8
            if not self._words[here + 1]:
                self._join_free(here)
                if self._words[here] >= needed:
                    self._split(here, needed)
                    return self._address + offset + HEADER
            offset += int(self._words[here])
        return 0

    def give(self, address: int) -> None:
        """The reverse of ``take``. Raises SimulationError for what was not taken."""
        offset = address - HEADER - self._address
        if not 0 <= offset < HEAP_BYTES or offset % 16 or self._words[offset // 8 + 1] != 1:
            raise SimulationError(f"free of {address:#x}, which malloc of this module did not give")
        self._words[offset // 8 + 1] = 0

    def _join_free(self, here: int) -> None:
        """Make one of a free piece and the free ones right behind it."""
        after = here + int(self._words[here]) // 8
        while after < len(self._words) and not self._words[after + 1]:
            self._words[here] += self._words[after]
            after = here + int(self._words[here]) // 8

    def _split(self, here: int, needed: int) -> None:
        rest = int(self._words[here]) - needed
        if rest > HEADER:
            self._words[here] = needed
            self._words[here + needed // 8 : here + needed // 8 + 2] = rest, 0
        self._words[here + 1] = 1
