"""Device memory of a launch: live allocations, kernel parameters and named tensors.

Both are in ``event.log`` before the launch, and are read from there when someone asks: a trace holds neither.
"""

from __future__ import annotations

import hashlib
import re
import struct
from bisect import bisect_left, bisect_right, insort
from dataclasses import dataclass, field
from itertools import chain
from math import prod
from typing import TYPE_CHECKING, Final

from tui_probe.errors import TraceError
from tui_probe.input_limits import TENSOR_TRACE
from tui_probe.trace.locate import LOG
from tui_probe.trace.log_index import LogTail
from tui_probe.trace.plain_file import read_start, text_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
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
_NEWLINE: Final = ord("\n")
_MAX_PARAMETERS_LINE: Final = 1 << 14
"""Bytes of a line of parameters that are looked at."""
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

    ``parameters`` are the values of its kernel's parameters, of one that is longer than 8 bytes its bytes. None where
    the log does not tell them.
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
        """The allocation that an address is in."""
        place = bisect_right(self.allocations, address, key=lambda allocation: allocation.start) - 1
        nearest = self.allocations[place] if place >= 0 else None
        return nearest if nearest is not None and address < nearest.end else None


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
        tensor = next((own for own in tensors if own.start <= address < own.end), None)
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


def read_launch_memory(trace: Run, launch: Launch | None) -> LaunchMemory:
    """Memory as ``launch`` found it; without one, as it was at the end of the log. TraceError if the log is unreadable.

    A launch whose parameters the log does not hold (ran unprobed, or of a log that was cut) has what was allocated
    at the end of the log.
    """
    heap = _LiveAllocations()
    line = None if launch is None or launch.time_ns is None else b"[exec] %d param " % launch.time_ns
    for text in LogTail(trace.directory / LOG).slices():
        place = -1 if line is None or launch is None else _find_parameters(text, line, launch.number)
        heap.read(text, len(text) if place < 0 else place)
        if place >= 0 and line is not None:
            parameters = text[place + len(line) : place + len(line) + _MAX_PARAMETERS_LINE].partition(b"\n")[0]
            values = tuple(_pointer_values(parameters))
            maps = _tensor_maps(trace) if any(isinstance(value, bytes) for value in values) else {}
            return LaunchMemory(heap.live(), values, maps)
    return LaunchMemory(heap.live())


def peak_allocated(trace: Trace) -> int | None:
    """The most bytes that the program had allocated at the same time, None where the log reports no allocation.

    What a framework keeps for later counts too. TraceError if the log is unreadable.
    """
    heap = _LiveAllocations()
    for text in LogTail(trace.directory / LOG).slices():
        heap.read(text, len(text))
    return heap.peak or None


def _find_parameters(text: bytes, line: bytes, number: int | None) -> int:
    """The offset of the line of parameters of a launch, -1 if not here. The line after it names the launch."""
    place = text.find(line)
    while place >= 0:
        following = text.find(b"\n", place) + 1
        named = re.match(rb"\[exec\] grid [^\n]* launch (\d+)", text[following : following + 256])
        at_start = place == 0 or text[place - 1 : place] == b"\n"
        if at_start and (named is None or number is None or int(named[1]) == number):
            return place
        place = text.find(line, place + 1)
    return -1


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
        allocations: list[Allocation] = []
        for start, size in sorted(self.sizes.items()):
            if size > 0 and (not allocations or start >= allocations[-1].end):
                allocations.append(Allocation(start, size))
        return tuple(allocations)


def read_parameters(trace: Trace, kernel: int, progress: Callable[[float], None]) -> dict[int, bytes]:
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
        parameters.update((int(number), words.strip()) for words, number in pairs)
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


def _read_older(trace: Trace, path: Path, kernel: int, progress: Callable[[float], None]) -> dict[int, bytes]:
    """Read a log that does not number launches: its pairs of lines are the launches that have a time, in order."""
    pairs = (pair for matches in _matches(path, _OLDER_LAUNCH, progress) for pair in matches)
    timed = (launch for launch in trace.launches if launch.time_ns is not None)
    return {
        launch.number: words.strip()
        for launch, (time, words) in zip(timed, pairs, strict=False)
        if launch.kernel == kernel and launch.number is not None and launch.time_ns == int(time)
    }


# ``tensor.trace``: the tensors that a program had, and the names of the variables that held them.
#
# A line for each, fields two blanks apart: ``[call]`` or ``[ret]``, nanoseconds since the epoch, the shape, the bytes
# of the memory that holds the tensor, its address in decimal, the name, the function, and file:line. Ours add the
# type, bytes per element, strides in elements, and where the memory begins.

TENSORS_FILE: Final = "tensor.trace"
_TENSOR_LINE: Final = re.compile(rb"^\[(?:call|ret)\]  [^\n]*$", re.MULTILINE)
_NUMBER: Final = re.compile(rb"\d{1,20}")
_SIDES: Final = re.compile(rb"\d{1,12}")
_ELEMENTS: Final = (1, 2, 4, 8, 16)
"""Bytes of an element, where only the size of all of them is known."""
_FIELDS: Final = 6
_MORE: Final = slice(8, 12)


@dataclass(frozen=True, slots=True)
class Tensor:
    """``size`` bytes from address ``start`` on. ``shape`` is () where it could not be read; ``element`` is in bytes.

    ``strides`` are in elements, () where they are unknown: then the tensor counts as laid out row by row.
    """

    name: str
    start: int
    size: int
    shape: tuple[int, ...]
    element: int | None = None
    dtype: str = ""
    strides: tuple[int, ...] = ()
    storage: int | None = None
    """Start of the memory that it may share with other tensors."""
    function: str = ""
    place: str = ""
    """``file:line``, where it was seen first."""
    time_ns: int | None = None

    @property
    def end(self) -> int:
        return self.start + self.size

    @property
    def text(self) -> str:
        """Shape and type: ``(4, 32, 4096, 64) float16``."""
        sides = ", ".join(map(str, self.shape)) + ("," if len(self.shape) == 1 else "")
        return f"({sides}) {self.dtype.removeprefix('torch.')}".rstrip()

    def index(self, offset: int) -> tuple[int, ...] | None:
        """The index of the element at a byte offset; None for bytes between elements, and where it is not known."""
        if self.element is None or not 0 <= offset < self.size:
            return None
        place, position = offset // self.element, [0] * len(self.shape)
        strides = self.strides or _row_by_row(self.shape)
        for side in sorted(range(len(strides)), key=lambda axis: strides[axis], reverse=True):
            if strides[side] > 0 and self.shape[side] > 1:
                position[side], place = divmod(place, strides[side])
        inside = all(at < side for at, side in zip(position, self.shape, strict=True))
        return tuple(position) if inside and place == 0 else None


def read_tensors(trace: Run, time_ns: int | None = None) -> list[Tensor]:
    """The tensors by ascending address, none in another; none if there is no such file.

    Of those that were at one place those named last before ``time_ns`` (a launch's), then the first named after it;
    without a time the last. Lines that are not as they should be say nothing.
    """
    path = trace.file(TENSORS_FILE)
    if path is None:
        return []
    try:
        text = read_start(path, TENSOR_TRACE)
    except OSError:
        return []
    tensors = list(filter(None, (_parse_tensor(match[0].rstrip(b"\r")) for match in _TENSOR_LINE.finditer(text))))
    return _without_overlaps(_nearest_in_time(tensors, time_ns))


def _nearest_in_time(tensors: Sequence[Tensor], time_ns: int | None) -> Iterable[Tensor]:
    """The last before a time first, then those after it."""
    before = [tensor for tensor in tensors if time_ns is None or tensor.time_ns is None or tensor.time_ns <= time_ns]
    after = (
        tensor for tensor in tensors if time_ns is not None and tensor.time_ns is not None and tensor.time_ns > time_ns
    )
    return chain(reversed(before), after)


def _without_overlaps(tensors: Iterable[Tensor]) -> list[Tensor]:
    """Return, by address, the tensors that do not overlap an earlier one; a whole replaces parts of its own memory."""
    distinct: list[Tensor] = []
    for tensor in tensors:
        low = bisect_left(distinct, tensor.start + 1, key=lambda other: other.end)
        high = bisect_left(distinct, tensor.end, key=lambda other: other.start)
        if low < high:
            if not all(_is_part(other, tensor) for other in distinct[low:high]):
                continue
            del distinct[low:high]
        insort(distinct, tensor, key=lambda other: other.start)
    return distinct


def _is_part(part: Tensor, container: Tensor) -> bool:
    same = part.storage is not None and part.storage == container.storage
    return same and part.size < container.size and container.start <= part.start and part.end <= container.end


def _row_by_row(shape: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(prod(shape[place + 1 :]) for place in range(len(shape)))


def _parse_tensor(line: bytes) -> Tensor | None:
    fields = line.split(b"  ")
    if len(fields) < _FIELDS or not all(map(_NUMBER.fullmatch, fields[3:5])):
        return None
    shape, size, start = _parse_numbers(fields[2]), int(fields[3]), int(fields[4])
    if size <= 0 or start + size >= 1 << 64:
        return None
    time_ns = int(fields[1]) if _NUMBER.fullmatch(fields[1]) else None
    count = prod(shape)
    element = size // count if shape and count and size % count == 0 else None
    names = [text_of(field).strip() for field in fields[5:8]] + ["", ""]
    plain = Tensor(
        names[0], start, size, shape, element if element in _ELEMENTS else None, function=names[1], place=names[2],
        time_ns=time_ns,
    )  # fmt: skip
    return _with_more(plain, fields[_MORE]) or plain


def _with_more(plain: Tensor, fields: Sequence[bytes]) -> Tensor | None:
    """The tensor with what only our lines tell; ``size`` is then what its own elements take, not all of its memory."""
    if len(fields) < 4 or not (_NUMBER.fullmatch(fields[1]) and _NUMBER.fullmatch(fields[3])):
        return None
    element, strides, storage = int(fields[1]), _parse_numbers(fields[2]), int(fields[3])
    if len(strides) != len(plain.shape) or not 0 < element <= plain.size or b"-" in fields[2]:
        return None
    last = sum((side - 1) * stride for side, stride in zip(plain.shape, strides, strict=True))
    size = (last + 1) * element
    if not 0 < size < 1 << 63 or 0 in plain.shape:
        return None
    return Tensor(
        plain.name, plain.start, size, plain.shape, element, text_of(fields[0]), strides, storage, plain.function,
        plain.place, plain.time_ns,
    )  # fmt: skip


def _parse_numbers(field: bytes) -> tuple[int, ...]:
    return tuple(map(int, _SIDES.findall(field)))
