"""``tensor.trace``: the tensors that a program had, and the names of the variables that held them.

A line for each, fields two blanks apart: ``[call]`` or ``[ret]``, nanoseconds since the epoch, the shape, the bytes of
the memory that holds the tensor, its address in decimal, the name, the function, and file:line. Ours add the type,
bytes per element, strides in elements, and where the memory begins.
"""

from __future__ import annotations

import re
from bisect import bisect_left, insort
from dataclasses import dataclass
from itertools import chain
from math import prod
from typing import TYPE_CHECKING, Final

from tui_probe.input_limits import TENSOR_TRACE
from tui_probe.trace.plain_file import read_start
from tui_probe.trace.text import text_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from tui_probe.trace.model import Trace

NAME: Final = "tensor.trace"
_LINE: Final = re.compile(rb"^\[(?:call|ret)\]  [^\n]*$", re.MULTILINE)
_NUMBER: Final = re.compile(rb"\d{1,20}")
_SIDES: Final = re.compile(rb"\d{1,12}")
_ELEMENTS: Final = (1, 2, 4, 8, 16)
"""Bytes of an element, where only the size of all of them is told."""
_FIELDS: Final = 6
_MORE: Final = slice(8, 12)


@dataclass(frozen=True, slots=True)
class Tensor:
    """``size`` bytes from address ``start`` on. ``shape`` is () where it could not be read; ``element`` is in bytes.

    ``strides`` are in elements, () where they are not told: then the tensor counts as laid out row by row.
    """

    name: str
    start: int
    size: int
    shape: tuple[int, ...]
    element: int | None = None
    dtype: str = ""
    strides: tuple[int, ...] = ()
    storage: int | None = None
    """Where the memory begins that it may share with other tensors."""
    function: str = ""
    place: str = ""
    """``file:line``, where it was seen first."""
    time_ns: int | None = None

    @property
    def end(self) -> int:
        return self.start + self.size

    @property
    def words(self) -> str:
        """Shape and type: ``(4, 32, 4096, 64) float16``."""
        sides = ", ".join(map(str, self.shape)) + ("," if len(self.shape) == 1 else "")
        return f"({sides}) {self.dtype.removeprefix('torch.')}".rstrip()

    def index(self, offset: int) -> tuple[int, ...] | None:
        """The index of the element at a byte offset; None for bytes between elements, and where it is not known."""
        if self.element is None or not 0 <= offset < self.size:
            return None
        place, found = offset // self.element, [0] * len(self.shape)
        strides = self.strides or _row_by_row(self.shape)
        for side in sorted(range(len(strides)), key=lambda each: strides[each], reverse=True):
            if strides[side] > 0 and self.shape[side] > 1:
                found[side], place = divmod(place, strides[side])
        inside = all(at < side for at, side in zip(found, self.shape, strict=True))
        return tuple(found) if inside and place == 0 else None


def read_tensors(trace: Trace, time_ns: int | None = None) -> list[Tensor]:
    """The tensors by ascending address, none in another; none if there is no such file.

    Of those that were at one place those named last before ``time_ns`` (a launch's), then the first named after it;
    without a time the last. Lines that are not as they should be say nothing.
    """
    path = trace.file(NAME)
    if path is None:
        return []
    try:
        text = read_start(path, TENSOR_TRACE)
    except OSError:
        return []
    tensors = list(filter(None, (_tensor(match[0].rstrip(b"\r")) for match in _LINE.finditer(text))))
    return _apart(_nearest(tensors, time_ns))


def _nearest(tensors: Sequence[Tensor], time_ns: int | None) -> Iterable[Tensor]:
    """The last before a time first, then those after it."""
    before = [each for each in tensors if time_ns is None or each.time_ns is None or each.time_ns <= time_ns]
    after = (each for each in tensors if time_ns is not None and each.time_ns is not None and each.time_ns > time_ns)
    return chain(reversed(before), after)


def _apart(tensors: Iterable[Tensor]) -> list[Tensor]:
    """By ascending address those that do not overlap an earlier one; a whole replaces parts of its own memory."""
    kept: list[Tensor] = []
    for tensor in tensors:
        low = bisect_left(kept, tensor.start + 1, key=lambda each: each.end)
        high = bisect_left(kept, tensor.end, key=lambda each: each.start)
        if low < high:
            if not all(_is_part(each, tensor) for each in kept[low:high]):
                continue
            del kept[low:high]
        insort(kept, tensor, key=lambda each: each.start)
    return kept


def _is_part(part: Tensor, whole: Tensor) -> bool:
    same = part.storage is not None and part.storage == whole.storage
    return same and part.size < whole.size and whole.start <= part.start and part.end <= whole.end


def _row_by_row(shape: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(prod(shape[place + 1 :]) for place in range(len(shape)))


def _tensor(line: bytes) -> Tensor | None:
    fields = line.split(b"  ")
    if len(fields) < _FIELDS or not all(map(_NUMBER.fullmatch, fields[3:5])):
        return None
    shape, size, start = _numbers(fields[2]), int(fields[3]), int(fields[4])
    if size <= 0 or start + size >= 1 << 64:
        return None
    time_ns = int(fields[1]) if _NUMBER.fullmatch(fields[1]) else None
    count = prod(shape)
    element = size // count if shape and count and size % count == 0 else None
    words = [text_of(field).strip() for field in fields[5:8]] + ["", ""]
    plain = Tensor(
        words[0], start, size, shape, element if element in _ELEMENTS else None, function=words[1], place=words[2],
        time_ns=time_ns,
    )  # fmt: skip
    return _with_more(plain, fields[_MORE]) or plain


def _with_more(plain: Tensor, fields: Sequence[bytes]) -> Tensor | None:
    """The tensor with what only our lines tell; ``size`` is then what its own elements take, not all of its memory."""
    if len(fields) < 4 or not (_NUMBER.fullmatch(fields[1]) and _NUMBER.fullmatch(fields[3])):
        return None
    element, strides, storage = int(fields[1]), _numbers(fields[2]), int(fields[3])
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


def _numbers(field: bytes) -> tuple[int, ...]:
    return tuple(map(int, _SIDES.findall(field)))
