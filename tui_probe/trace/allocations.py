"""Device memory as a launch found it: the allocations that were live, and the parameters of its kernel.

Both stand in ``event.log`` before the launch, and are read from there when somebody asks: a trace holds neither.
"""

from __future__ import annotations

import re
import struct
from bisect import bisect_right
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from tui_probe.trace.locate import LOG
from tui_probe.trace.log_tail import LogTail

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tui_probe.trace.launches import Launch
    from tui_probe.trace.model import Trace
    from tui_probe.trace.run import Run

_MEMORY: Final = re.compile(
    rb"\[mem\] (cu\w+) 0 dptr (?:0x)?([0-9a-fA-F]{1,16})(?: bytesize (\d{1,18}))?[ \r]*$", re.MULTILINE
)
"""Without a sign for the beginning of a line, which would make it ten times slower to find."""
_NEWLINE: Final = ord("\n")
_LONGEST: Final = 1 << 14
"""Bytes of a line of parameters that are looked at."""


@dataclass(frozen=True, slots=True, order=True)
class Allocation:
    """``size`` bytes of device memory from address ``start`` on."""

    start: int
    size: int

    @property
    def end(self) -> int:
        return self.start + self.size


@dataclass(frozen=True, slots=True)
class LaunchMemory:
    """What a launch could reach. ``allocations`` are by ascending address and do not overlap.

    ``parameters`` are the values of its kernel's parameters, of one that is longer than 8 bytes its bytes. None where
    the log does not tell them.
    """

    allocations: tuple[Allocation, ...] = ()
    parameters: tuple[int | bytes, ...] | None = None

    def pointers(self) -> Iterator[tuple[str, int]]:
        """What may be addresses: parameters, as ``("0", value)``, and words of long ones, as ``("1[16]", value)``."""
        for index, value in enumerate(self.parameters or ()):
            if isinstance(value, int):
                yield str(index), value
            else:
                words = struct.iter_unpack("<Q", value[: len(value) // 8 * 8])
                yield from ((f"{index}[{8 * place}]", word) for place, (word,) in enumerate(words))

    def allocation_at(self, address: int) -> Allocation | None:
        """The allocation that an address lies in."""
        place = bisect_right(self.allocations, address, key=lambda each: each.start) - 1
        found = self.allocations[place] if place >= 0 else None
        return found if found is not None and address < found.end else None


def read_launch_memory(trace: Run, launch: Launch | None) -> LaunchMemory:
    """Memory as ``launch`` found it; without one, as it was at the end of the log. TraceError if the log is unreadable.

    A launch whose parameters the log does not hold (passed through, or of a log that was cut) has what was allocated
    at the end of the log.
    """
    heap = _Heap()
    line = None if launch is None or launch.time_ns is None else b"[exec] %d param " % launch.time_ns
    for text in LogTail(trace.directory / LOG).slices():
        place = -1 if line is None or launch is None else _find(text, line, launch.number)
        heap.read(text, len(text) if place < 0 else place)
        if place >= 0 and line is not None:
            words = text[place + len(line) : place + len(line) + _LONGEST].partition(b"\n")[0]
            return LaunchMemory(heap.live(), tuple(_values(words)))
    return LaunchMemory(heap.live())


def peak_allocated(trace: Trace) -> int | None:
    """The most bytes that the program had allocated at once, None where the log tells of no allocation.

    What a framework keeps for later counts too. TraceError if the log is unreadable.
    """
    heap = _Heap()
    for text in LogTail(trace.directory / LOG).slices():
        heap.read(text, len(text))
    return heap.peak or None


def _find(text: bytes, line: bytes, number: int | None) -> int:
    """Where the line of parameters of a launch begins, -1 if not here. The line after it names the launch."""
    place = text.find(line)
    while place >= 0:
        following = text.find(b"\n", place) + 1
        named = re.match(rb"\[exec\] grid [^\n]* launch (\d+)", text[following : following + 256])
        at_start = place == 0 or text[place - 1 : place] == b"\n"
        if at_start and (named is None or number is None or int(named[1]) == number):
            return place
        place = text.find(line, place + 1)
    return -1


def _values(words: bytes) -> Iterator[int | bytes]:
    for word in words.split():
        digits = word.removeprefix(b"0x")
        try:
            yield int(digits, 16) if len(digits) <= 16 else bytes.fromhex(digits.decode("ascii", "replace"))
        except ValueError:
            return


@dataclass(slots=True)
class _Heap:
    """Live allocations by address; bytes of all of them, and the most that those were."""

    sizes: dict[int, int] = field(default_factory=dict)
    total: int = 0
    peak: int = 0

    def read(self, text: bytes, end: int) -> None:
        """Take in the allocations and releases of ``text`` up to ``end``; calls that failed changed nothing."""
        for match in _MEMORY.finditer(text, 0, end):
            if match.start() and text[match.start() - 1] != _NEWLINE:
                continue
            call, address, size = match[1], int(match[2], 16), match[3]
            if size is not None and b"Free" not in call:
                self.total += int(size) - self.sizes.get(address, 0)
                self.sizes[address] = int(size)
                self.peak = max(self.peak, self.total)
            elif b"Free" in call:
                self.total -= self.sizes.pop(address, 0)

    def live(self) -> tuple[Allocation, ...]:
        found: list[Allocation] = []
        for start, size in sorted(self.sizes.items()):
            if size > 0 and (not found or start >= found[-1].end):
                found.append(Allocation(start, size))
        return tuple(found)
