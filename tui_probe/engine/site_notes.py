"""What the engine learns of the sites of a probe while it puts the probe in: see :mod:`tui_probe.engine.site_file`."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from tui_probe.ptx.tree import Instruction

At: TypeAlias = Literal["instruction", "block", "loop"]

_NO_BLOCK: Final[tuple[Instruction, ...]] = ()


@dataclass(slots=True)
class Site:
    """An instruction that points are at, or the first one of a basic block or loop, as it stands in ``pruned.ptx``.

    ``points`` are the names of those points in the probe; ``block`` holds all instructions of a basic block.
    """

    at: At
    instruction: Instruction
    block: Sequence[Instruction] = _NO_BLOCK
    points: list[str] = field(default_factory=list)


class SiteNotes:
    """The sites of one probe in one kernel, in the order in which they were met.

    ``unchecked`` are instructions that a point is for and that were left out since nothing tells what they store.
    """

    def __init__(self) -> None:
        self.sites: list[Site] = []
        self.maps: dict[str, list[int]] = {}
        self.unchecked: list[Instruction] = []
        self._numbers: dict[tuple[At, int], int] = {}
        self._first: dict[int, int] = {}

    def add(
        self,
        at: At,
        instruction: Instruction,
        point: str,
        *,
        written: Instruction | None = None,
        block: Sequence[Instruction] = _NO_BLOCK,
    ) -> None:
        """A point of that name is there. ``written`` is the instruction that takes the place of this one, if any."""
        number = self._numbers.setdefault((at, id(instruction)), len(self.sites))
        if number == len(self.sites):
            self.sites.append(Site(at, instruction, block))
            self._first.setdefault(id(written or instruction), number)
        if point not in self.sites[number].points:
            self.sites[number].points.append(point)

    def leave_out(self, instruction: Instruction) -> None:
        """Nothing tells what this one stores."""
        if not any(each is instruction for each in self.unchecked[-1:]):
            self.unchecked.append(instruction)

    def keep(self, records: Mapping[str, Iterable[Instruction]]) -> None:
        """The instructions that maps have a record for, in the order of the records, by the name of the map."""
        self.maps = {name: [self._first[id(one)] for one in instructions] for name, instructions in records.items()}
