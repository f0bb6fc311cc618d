"""Launches of a profiled program, grouped: by process, and in it by kernel, grid and block."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tui_probe.nsight.importers.ncu_table import Extent, NcuTable


class Shape(NamedTuple):
    """A kernel with one grid and block: one name may stand for several configurations."""

    kernel: str
    grid: Extent | None
    block: Extent | None


@dataclass(frozen=True, slots=True)
class Session:
    """The launches of one process, by position in the table and in order; ``codes`` numbers the shape of each."""

    file: int
    process: int | None
    launches: Sequence[int]
    codes: Sequence[int]
    shapes: Sequence[Shape]

    def of_shape(self, code: int) -> list[int]:
        """Launches of one shape."""
        return [launch for launch, other in zip(self.launches, self.codes, strict=True) if other == code]


def shape_of(table: NcuTable, launch: int) -> Shape:
    row = table.launches[launch]
    return Shape(row.kernel, row.grid, row.block)


def sessions_of(table: NcuTable) -> list[Session]:
    """Every process of every file; summaries have no launches and so are in none."""
    found = []
    for launches in table.sessions():
        codes: dict[Shape, int] = {}
        numbers = [codes.setdefault(shape_of(table, launch), len(codes)) for launch in launches]
        first = table.launches[launches[0]]
        found.append(Session(first.file, first.process, launches, numbers, list(codes)))
    return found
