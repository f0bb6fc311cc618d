"""Tensors of the program, from ``tensor.trace``: addresses, shapes, types, and names of the variables that held them.

The file has a line per tensor, with fields two blanks apart: ``[call]`` or ``[ret]``, nanoseconds since the epoch, the
shape, the bytes of the memory that holds the tensor, its address in decimal, the name, the function, and file:line.
Lines that tui-probe wrote add the type, bytes per element, strides in elements, and where the memory begins.
"""

from __future__ import annotations

import re
from bisect import bisect_left, insort
from dataclasses import dataclass
from itertools import chain
from math import prod
from typing import TYPE_CHECKING, Final

from tui_probe.input_limits import TENSOR_TRACE
from tui_probe.trace.plain_file import read_start, text_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from tui_probe.trace.run import Run

TENSORS_FILE: Final = "tensor.trace"
_TENSOR_LINE: Final = re.compile(rb"^\[(?:call|ret)\]  [^\n]*$", re.MULTILINE)
_NUMBER: Final = re.compile(rb"\d{1,20}")
_SIDES: Final = re.compile(rb"\d{1,12}")
_ELEMENTS: Final = (1, 2, 4, 8, 16)
"""Accepted bytes per element, if a line has only the bytes of all: memory may be larger than its tensor needs."""
_MIN_FIELDS: Final = 6
"""Fields of a line up to the name, which all readers of the format need."""
_LAYOUT_FIELDS: Final = slice(8, 12)
"""Type, bytes per element, strides and start of the memory: fields of lines that tui-probe wrote."""


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
        """Return the index of the element at a byte offset; None for bytes between elements, or if it is unknown."""
        if self.element is None or not 0 <= offset < self.size:
            return None
        remainder, index = offset // self.element, [0] * len(self.shape)
        strides = self.strides or _row_major(self.shape)
        for axis in sorted(range(len(strides)), key=lambda axis: strides[axis], reverse=True):
            if strides[axis] > 0 and self.shape[axis] > 1:  # an expanded axis has stride 0: all its elements are one
                index[axis], remainder = divmod(remainder, strides[axis])
        is_inside = all(position < side for position, side in zip(index, self.shape, strict=True))
        return tuple(index) if is_inside and remainder == 0 else None


def read_tensors(trace: Run, time_ns: int | None = None) -> list[Tensor]:
    """Return the tensors by ascending address, without overlaps; none if the file is missing.

    Memory is reused: of the tensors at an address, the last one before ``time_ns`` (time of a launch) is returned, else
    the first one after it; without a time the last. Malformed lines are ignored.
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
    """Return tensors by preference: those before the time from the last one back, then those after it."""
    past_tensors = [
        tensor for tensor in tensors if time_ns is None or tensor.time_ns is None or tensor.time_ns <= time_ns
    ]
    future_tensors = (
        tensor for tensor in tensors if time_ns is not None and tensor.time_ns is not None and tensor.time_ns > time_ns
    )
    return chain(reversed(past_tensors), future_tensors)


def _without_overlaps(tensors: Iterable[Tensor]) -> list[Tensor]:
    """Return, by address, the tensors that do not overlap an earlier one; a whole replaces parts of its own memory."""
    distinct: list[Tensor] = []
    for tensor in tensors:
        begin = bisect_left(distinct, tensor.start + 1, key=lambda entry: entry.end)
        end = bisect_left(distinct, tensor.end, key=lambda entry: entry.start)
        if begin < end:
            if not all(_is_part(entry, tensor) for entry in distinct[begin:end]):
                continue
            del distinct[begin:end]
        insort(distinct, tensor, key=lambda entry: entry.start)
    return distinct


def _is_part(part: Tensor, container: Tensor) -> bool:
    is_shared_storage = part.storage is not None and part.storage == container.storage
    return (
        is_shared_storage and part.size < container.size and container.start <= part.start and part.end <= container.end
    )


def _row_major(shape: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(prod(shape[place + 1 :]) for place in range(len(shape)))


def _parse_tensor(line: bytes) -> Tensor | None:
    fields = line.split(b"  ")
    if len(fields) < _MIN_FIELDS or not all(map(_NUMBER.fullmatch, fields[3:5])):
        return None
    shape, size, start = _parse_numbers(fields[2]), int(fields[3]), int(fields[4])
    if size <= 0 or start + size >= 1 << 64:
        return None
    time_ns = int(fields[1]) if _NUMBER.fullmatch(fields[1]) else None
    count = prod(shape)
    element = size // count if shape and count and size % count == 0 else None
    names = [text_of(field).strip() for field in fields[5:8]] + ["", ""]
    tensor = Tensor(
        names[0], start, size, shape, element if element in _ELEMENTS else None, function=names[1], place=names[2],
        time_ns=time_ns,
    )  # fmt: skip
    return _with_layout(tensor, fields[_LAYOUT_FIELDS]) or tensor


def _with_layout(tensor: Tensor, fields: Sequence[bytes]) -> Tensor | None:
    """Return the tensor with its layout; ``size`` is then the extent of its own elements, not of all its memory. None
    if the fields are missing or contradict each other.
    """
    if len(fields) < 4 or not (_NUMBER.fullmatch(fields[1]) and _NUMBER.fullmatch(fields[3])):
        return None
    element, strides, storage = int(fields[1]), _parse_numbers(fields[2]), int(fields[3])
    if len(strides) != len(tensor.shape) or not 0 < element <= tensor.size or b"-" in fields[2]:
        return None
    last_element = sum((side - 1) * stride for side, stride in zip(tensor.shape, strides, strict=True))
    size = (last_element + 1) * element
    if not 0 < size < 1 << 63 or 0 in tensor.shape:  # the file may be damaged: sizes beyond any address space
        return None
    return Tensor(
        tensor.name, tensor.start, size, tensor.shape, element, text_of(fields[0]), strides, storage, tensor.function,
        tensor.place, tensor.time_ns,
    )  # fmt: skip


def _parse_numbers(field: bytes) -> tuple[int, ...]:
    return tuple(map(int, _SIDES.findall(field)))
