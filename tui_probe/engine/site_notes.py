"""What the engine learns of the sites of a probe while it puts the probe in: see :mod:`tui_probe.engine.site_file`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from tui_probe.ptx.tree import Instruction

At: TypeAlias = Literal["instruction", "block", "loop"]


@dataclass(slots=True)
class Site:
    """An instruction that points are at, or the first one of a basic block or loop, as it stands in ``pruned.ptx``.

    ``written`` is what takes its place in the probed kernel, itself if nothing does. ``points`` are the names of the
    points in the probe; ``block`` holds all instructions of a basic block.
    """

    at: At
    instruction: Instruction
    written: Instruction
    points: tuple[str, ...]
    block: Sequence[Instruction] = ()


class SiteNotes:
    """The sites of one probe in one kernel, in the order in which they were met.

    ``maps`` are those that maps have a record for, in the order of the records, as places in ``sites``. ``unchecked``
    are instructions that a point is for and that were left out since nothing tells what they store.
    """

    def __init__(self) -> None:
        self.sites: list[Site] = []
        self.maps: dict[str, list[int]] = {}
        self.unchecked: list[Instruction] = []

    def add(
        self, at: At, instruction: Instruction, written: Instruction, point: str, block: Sequence[Instruction] = ()
    ) -> None:
        """A point of that name is there. All points of one place come one after another."""
        last = self.sites[-1] if self.sites else None
        if last is None or last.instruction is not instruction or last.at != at:
            self.sites.append(Site(at, instruction, written, (point,), block))
        elif point not in last.points:
            last.points += (point,)

    def leave_out(self, instruction: Instruction) -> None:
        """Nothing tells what this one stores."""
        if not self.unchecked or self.unchecked[-1] is not instruction:
            self.unchecked.append(instruction)

    def keep(self, records: Mapping[str, Iterable[Instruction]]) -> None:
        """The instructions, as written, that maps have a record for, by the name of the map."""
        if records:
            places = {id(site.written): place for place, site in reversed(list(enumerate(self.sites)))}
            self.maps = {name: [places[id(one)] for one in instructions] for name, instructions in records.items()}
