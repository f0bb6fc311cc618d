"""``tensor.trace``: the tensors that a program said it had, if it said so.

A line for each, fields two blanks apart: ``[call]`` or ``[ret]``, a word that is not used here, the shape, the size in
bytes, the address in decimal, and the name.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from tui_probe.trace.text import text_of

if TYPE_CHECKING:
    from tui_probe.trace.model import Trace

_LINE: Final = re.compile(rb"^\[(?:call|ret)\]  [^\n]*$", re.MULTILINE)
_LARGEST: Final = 64 << 20


@dataclass(frozen=True, slots=True)
class Tensor:
    """``size`` bytes from address ``start`` on. ``shape`` is () where it could not be read."""

    name: str
    start: int
    size: int
    shape: tuple[int, ...]

    @property
    def element(self) -> int | None:
        """Bytes per element, if the size is a whole number of them."""
        count = 1
        for side in self.shape:
            count *= side
        return self.size // count if self.shape and count and self.size % count == 0 else None

    def index(self, offset: int) -> tuple[int, ...] | None:
        """The index of the element at a byte offset, for a tensor that is laid out row by row."""
        if self.element is None or not 0 <= offset < self.size:
            return None
        place, found = offset // self.element, []
        for side in reversed(self.shape):
            found.append(place % side)
            place //= side
        return tuple(reversed(found))


def read_tensors(trace: Trace) -> list[Tensor]:
    """The tensors by ascending address, of each address the last that was named; none if there is no such file.

    Lines that are not as they should be say nothing.
    """
    path = trace.file("tensor.trace")
    if path is None:
        return []
    try:
        with path.open("rb") as file:
            text = file.read(_LARGEST)
    except OSError:
        return []
    tensors = filter(None, (_tensor(match[0].rstrip(b"\r")) for match in _LINE.finditer(text)))
    found = {tensor.start: tensor for tensor in tensors}
    return [found[start] for start in sorted(found)]


def _tensor(line: bytes) -> Tensor | None:
    fields = line.split(b"  ", 5)
    if len(fields) < 6 or not all(re.fullmatch(rb"\d{1,20}", word) for word in fields[3:5]):
        return None
    shape = tuple(map(int, re.findall(rb"\d{1,12}", fields[2])))
    size, start = int(fields[3]), int(fields[4])
    return Tensor(text_of(fields[5]).strip(), start, size, shape) if size > 0 and start + size < 1 << 64 else None
