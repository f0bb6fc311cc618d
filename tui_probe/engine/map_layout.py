"""Layout of the 128 opaque bytes of a tensor map, as the hook finds it (``map_layout.c``).

The hook sends it with the architecture: ``sm_90+d0:1:256.0.32/..``. A field has a name, what is to be added to the
number that is there, and runs of bits: bit of the map, bit of the value, width.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, NamedTuple

from tui_probe.errors import ProbeError
from tui_probe.reasons import because

if TYPE_CHECKING:
    from collections.abc import Iterator

WORD_BITS: Final = 32
MAX_TYPE: Final = 31
_REQUIRED_FIELDS: Final = {f"{kind}{number}" for kind in "db" for number in range(5)} | {
    "a0",
    "t0",
    "s0",
    "s1",
    "s2",
    "s3",
}
_FIELD: Final = re.compile(r"([dbesat])([0-4]):([01]):([0-9.,]*)")


class BitRun(NamedTuple):
    """Bits of a parameter within one word of a map: ``width`` bits from ``bit`` of the map, ``shift`` in the value."""

    bit: int
    shift: int
    width: int

    @property
    def word(self) -> int:
        """The word that has the bits."""
        return self.bit // WORD_BITS

    @property
    def mask(self) -> int:
        """The bits in their word."""
        return (1 << self.width) - 1 << self.bit % WORD_BITS


class MapField(NamedTuple):
    """A parameter in a map; it is ``bias`` more than the number that is there."""

    bias: int
    runs: tuple[BitRun, ...]


class MapLayout(NamedTuple):
    """The fields of a map by name and dimension, as ``d0``, and the binary logarithms of bytes by element type."""

    fields: dict[str, MapField]
    element_sizes: dict[int, int]


def split_target(target: str) -> tuple[str, MapLayout | None]:
    """Return the architecture and the layout of maps of ``sm_90+LAYOUT``. Raises ProbeError."""
    architecture, _, text = target.partition("+")
    return architecture, parse_layout(text) if text else None


def parse_layout(text: str) -> MapLayout | None:
    """Parse the layout that the hook sends; None if fields are missing. Raises ProbeError."""
    fields, sizes = {}, {}
    for part in text.split("/"):
        if part.startswith("T:"):
            sizes = {number: int(size) for number, size in enumerate(part[2:][: MAX_TYPE + 1]) if size.isdecimal()}
        elif match := _FIELD.fullmatch(part):
            kind, dimension, bias, runs = match.groups()
            fields[kind + dimension] = MapField(int(bias), tuple(_runs(runs)))
        else:
            raise ProbeError(because("request-unknown"))
    return MapLayout(fields, sizes) if fields.keys() >= _REQUIRED_FIELDS and sizes else None


def _runs(text: str) -> Iterator[BitRun]:
    """Yield runs of bits, split where words of the map begin."""
    for fields in filter(None, text.split(",")):
        bit, shift, width = (int(number) for number in fields.split("."))
        while width:
            part_width = min(width, WORD_BITS - bit % WORD_BITS)
            yield BitRun(bit, shift, part_width)
            bit, shift, width = bit + part_width, shift + part_width, width - part_width
