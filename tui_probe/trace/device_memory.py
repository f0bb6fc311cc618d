"""Device memory of a launch: live allocations and kernel parameters.

Both are in ``event.log`` before the launch. They are read from there on request, since a trace in memory holds neither.
"""

from __future__ import annotations

import hashlib
import re
import struct
from bisect import bisect_right
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from tui_probe.errors import TraceError
from tui_probe.trace.event_types import TensorMapMade
from tui_probe.trace.events import parse_line
from tui_probe.trace.locate import LOG
from tui_probe.trace.log_index import LogTail
from tui_probe.trace.tensors import read_tensors

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from tui_probe.trace.launches import Launch
    from tui_probe.trace.model import Trace
    from tui_probe.trace.run import Run

_MEMORY: Final = re.compile(
    rb"\[mem\] (cu\w+) 0 dptr (?:0x)?([0-9a-fA-F]{1,16})(?: bytesize (\d{1,18}))?[ \r]*$", re.MULTILINE
)
"""Pattern of a [mem] line. It does not match the beginning of a line, which would make the search ten times slower."""
_TENSOR_MAP: Final = re.compile(
    rb"^\[tensor-map\] cu\w+ 0 hash ([0-9a-f]{40})(?: of [0-9a-f]{40})? address (?:0x)?([0-9a-f]{1,16})\b", re.MULTILINE
)
_TENSOR_MAP_LINE: Final = re.compile(rb"^\[tensor-map\] cu\w+ 0 [^\n]*", re.MULTILINE)
_NEWLINE: Final = ord("\n")
_MAX_PARAMETERS_LINE: Final = 1 << 14
"""Bytes of a line of parameters that are read: 4 KiB of parameters in hexadecimal, with room. A log may be damaged."""
_OLDER_LAUNCH: Final = re.compile(
    rb"^\[exec\] (\d{1,19}) param ([^\n]*)\n\[exec\] grid \d+ \d+ \d+ block \d+ \d+ \d+ shared \d+\s*$", re.MULTILINE
)


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
    """Memory that a launch could reach. ``allocations`` are by ascending address and do not overlap.

    ``parameters`` are the values of its kernel's parameters; bytes for one that is longer than 8 bytes. None if they
    are not in the log.
    """

    allocations: tuple[Allocation, ...] = ()
    parameters: tuple[int | bytes, ...] | None = None
    tensor_maps: dict[str, int] = field(default_factory=dict)
    """Addresses of the tensors of tensor maps, by the SHA-1 of the map."""

    def pointers(self) -> Iterator[tuple[str, int]]:
        """Possible addresses: parameters and tensor maps, as ``("0", value)``, and words of other long parameters, as
        ``("1[16]", value)``.
        """
        for index, value in enumerate(self.parameters or ()):
            address = value if isinstance(value, int) else self.tensor_maps.get(_digest(value))
            if address is not None:
                yield str(index), address
            elif isinstance(value, bytes):
                pieces = struct.iter_unpack("<Q", value[: len(value) // 8 * 8])
                yield from ((f"{index}[{8 * place}]", word) for place, (word,) in enumerate(pieces))

    def allocation_at(self, address: int) -> Allocation | None:
        """Return the allocation that contains an address; None if none does."""
        place = bisect_right(self.allocations, address, key=lambda allocation: allocation.start) - 1
        if place < 0 or address >= self.allocations[place].end:
            return None
        return self.allocations[place]


def parameter_names(trace: Run, launch: Launch | None) -> dict[int, str]:
    """Names of the memory that pointers and tensor maps among a launch's parameters lead to, by their numbers: that of
    a tensor of ``tensor.trace``, else ``param 0``. Other parameters have none. TraceError if the log is unreadable.
    """
    memory = read_launch_memory(trace, launch)
    tensors = read_tensors(trace, None if launch is None else launch.time_ns)
    names = {}
    for number, value in enumerate(memory.parameters or ()):
        address = value if isinstance(value, int) else memory.tensor_maps.get(_digest(value))
        if address is None:
            continue
        tensor = next((tensor for tensor in tensors if tensor.start <= address < tensor.end), None)
        if tensor is not None:
            names[number] = tensor.name
        elif not isinstance(value, int) or memory.allocation_at(address) is not None:
            names[number] = f"param {number}"
    return names


def _digest(value: bytes) -> str:
    return hashlib.sha1(value).hexdigest()


def _tensor_maps(trace: Run) -> dict[str, int]:
    """The addresses of the tensors of all tensor maps that the program made, by the SHA-1 of the map."""
    slices = LogTail(trace.directory / LOG).slices()
    matches = (match for text in slices for match in _TENSOR_MAP.finditer(text))
    return {match[1].decode(): int(match[2], 16) for match in matches}


def read_tensor_maps(trace: Run) -> dict[str, TensorMapMade]:
    """The tensor maps that the program encoded, by SHA-1; one whose address was replaced has the other properties of
    the map that it was made of. TraceError if the log is unreadable.
    """
    maps: dict[str, TensorMapMade] = {}
    for text in LogTail(trace.directory / LOG).slices():
        for line in _TENSOR_MAP_LINE.findall(text):
            tensor_map = parse_line(line)
            if isinstance(tensor_map, TensorMapMade) and tensor_map.content is not None:
                origin = maps.get(tensor_map.origin or "")
                maps[tensor_map.content] = tensor_map if origin is None else origin._replace(address=tensor_map.address)
    return maps


def read_launch_memory(trace: Run, launch: Launch | None) -> LaunchMemory:
    """Memory as ``launch`` found it; without one, as it was at the end of the log. TraceError if the log is unreadable.

    A launch whose parameters the log does not hold (ran unprobed, or of a log that was cut) has what was allocated
    at the end of the log.
    """
    heap = _LiveAllocations()
    line = None if launch is None or launch.time_ns is None else b"[exec] %d param " % launch.time_ns
    for text in LogTail(trace.directory / LOG).slices():
        place = -1 if line is None or launch is None else _find_parameters(text, line, launch.number)
        heap.apply(text, len(text) if place < 0 else place)
        if place >= 0 and line is not None:
            parameters = text[place + len(line) : place + len(line) + _MAX_PARAMETERS_LINE].partition(b"\n")[0]
            values = parameter_values(parameters)
            maps = _tensor_maps(trace) if any(isinstance(value, bytes) for value in values) else {}
            return LaunchMemory(heap.live(), values, maps)
    return LaunchMemory(heap.live())


def peak_allocated(trace: Trace) -> int | None:
    """The most bytes that the program had allocated at the same time, None where the log reports no allocation.

    What a framework keeps for later counts too. TraceError if the log is unreadable.
    """
    heap = _LiveAllocations()
    for text in LogTail(trace.directory / LOG).slices():
        heap.apply(text, len(text))
    return heap.peak or None


def _find_parameters(text: bytes, line: bytes, number: int | None) -> int:
    """The offset of the line of parameters of a launch, -1 if not here. The line after it names the launch."""
    place = text.find(line)
    while place >= 0:
        following = text.find(b"\n", place) + 1
        launch_match = re.match(rb"\[exec\] grid [^\n]* launch (\d+)", text[following : following + 256])
        at_start = place == 0 or text[place - 1 : place] == b"\n"
        if at_start and (launch_match is None or number is None or int(launch_match[1]) == number):
            return place
        place = text.find(line, place + 1)
    return -1


def parameter_values(words: bytes) -> tuple[int | bytes, ...]:
    """The values of parameters from the words of their line; of one that is longer than 8 bytes its bytes."""
    return tuple(_pointer_values(words))


def _pointer_values(words: bytes) -> Iterator[int | bytes]:
    for word in words.split():
        digits = word.removeprefix(b"0x")
        try:
            yield int(digits, 16) if len(digits) <= 16 else bytes.fromhex(digits.decode("ascii", "replace"))
        except ValueError:
            return


@dataclass(slots=True)
class _LiveAllocations:
    """Live allocations by address; bytes of all of them, and the most that those were."""

    sizes: dict[int, int] = field(default_factory=dict)
    total: int = 0
    peak: int = 0

    def apply(self, text: bytes, end: int) -> None:
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
        allocations: list[Allocation] = []
        for start, size in sorted(self.sizes.items()):
            if size > 0 and (not allocations or start >= allocations[-1].end):
                allocations.append(Allocation(start, size))
        return tuple(allocations)


def read_parameters(trace: Run, kernel: int, progress: Callable[[float], None]) -> dict[int, bytes]:
    """The words after ``param`` of each probed launch of a kernel, by the launch's number.

    Reads the whole log, in slices. A launch that was run unprobed has none. TraceError if the log cannot be read.
    """
    path = trace.file(LOG)
    if path is None:
        raise TraceError(f"{trace.directory}: {LOG} no longer exists")
    if trace.state.epoch_ns is None:
        return _read_older(trace, path, kernel, progress)
    line = re.compile(
        rb"^\[exec\] \d+ param ([^\n]*)\n\[exec\] grid [^\n]{1,200}? kernel %d launch (\d{1,18}) " % kernel,
        re.MULTILINE,
    )
    parameters: dict[int, bytes] = {}
    for pairs in _matches(path, line, progress):
        parameters.update((int(number), text.strip()) for text, number in pairs)
    return parameters


def _matches(
    path: Path, line: re.Pattern[bytes], progress: Callable[[float], None]
) -> Iterator[list[tuple[bytes, ...]]]:
    """Read the groups of pairs of lines, one slice of the log after another."""
    size = max(1, path.stat().st_size)
    tail, pending = LogTail(path), b""
    for lines in tail.slices():
        progress(min(1.0, tail.offset / size))
        text = pending + lines
        yield line.findall(text)
        pending = text[text.rfind(b"\n", 0, len(text) - 1) + 1 :]  # its launch may be in the next slice


def _read_older(trace: Run, path: Path, kernel: int, progress: Callable[[float], None]) -> dict[int, bytes]:
    """Read a log that does not number launches: its pairs of lines are the launches that have a time, in order."""
    pairs = (pair for matches in _matches(path, _OLDER_LAUNCH, progress) for pair in matches)
    timed = (launch for launch in trace.launches if launch.time_ns is not None)
    return {
        launch.number: text.strip()
        for launch, (time, text) in zip(timed, pairs, strict=False)
        if launch.kernel == kernel and launch.number is not None and launch.time_ns == int(time)
    }
