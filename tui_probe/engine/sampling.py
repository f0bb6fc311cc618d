"""Probing some blocks of a grid: those that are not in the sample go past the probes.

Which blocks those are the hook tells each launch, in two parameters of the kernel::

    blocks  u32 first, u32 count
    step    u32 step, u32 reciprocal = ceil(2**31 / step)

The sample is first, first + step, …: ``count`` blocks. A block's place in it stands in for the block's number in all
that finds a slot, so that there is memory for the sample alone. It is found by a multiplication instead of a division:

    distance = block - first
    place    = upper half of (2 × distance × reciprocal)
    in it    = place × step is distance, and place < count

For a distance of place × step, 2 × distance × reciprocal = place × 2**32 + 2 × place × (step × reciprocal - 2**31). The
rest is less than 2**32, since place × step is below the number of blocks, which is below 2**31. So blocks of the sample
find their place; any other distance is no multiple of the step, or beyond the last one. (One before the first is 2**31
or more, which place × step is not.)

The place is held in a register as long as the kernel runs; it is the same in all threads of a block, so that the
assembler can keep it in a uniform register.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tui_probe.engine.model import Level, Save

if TYPE_CHECKING:
    from tui_probe.engine.model import Probe, Snippet
    from tui_probe.engine.names import Names

PARAMETERS: Final = (("sample", "blocks"), ("sample", "step"))
"""(purpose, name) of the kernel's parameters that tell the sample."""
_OUTSIDE: Final = "0xffffffff"
_SHORT: Final = 3
"""Instructions that cost no more than a branch around them."""


class Sampling:
    """PTX text by which one kernel takes a sample. ``place`` names the register of the block's place in it."""

    def __init__(self, probe: Probe, names: Names) -> None:
        self._names = names
        self._sites = {own_map.name for own_map in probe.maps if own_map.level is Level.SITE}
        self.place = names.temporary("place", "b32")

    def begin(self, block: list[str], number: str) -> list[str]:
        """Lines for the kernel's entry. ``block`` are those that compute the block's ``number``, 32 bits."""
        blocks, step = (self._names.parameter(*each) for each in PARAMETERS)
        part, other = (self._names.temporary(name, "b32") for name in ("part", "other"))
        inside = self._names.temporary("inside", "pred")
        return [
            *block,
            f"ld.param.u32 {part}, [{blocks}];",
            f"sub.u32 {number}, {number}, {part};",
            f"shl.b32 {other}, {number}, 1;",
            f"ld.param.u32 {part}, [{step}+4];",
            f"mul.hi.u32 {self.place}, {other}, {part};",
            f"ld.param.u32 {part}, [{step}];",
            f"mul.lo.u32 {other}, {self.place}, {part};",
            f"setp.eq.u32 {inside}, {other}, {number};",
            f"ld.param.u32 {part}, [{blocks}+4];",
            f"setp.lt.and.u32 {inside}, {self.place}, {part}, {inside};",
            f"selp.b32 {self.place}, {self.place}, {_OUTSIDE}, {inside};",
        ]

    def only_inside(self, lines: list[str]) -> list[str]:
        """Lines that only blocks of the sample run."""
        if not lines:
            return lines
        skip, outside = self._names.new_label(), self._outside()
        return [self._compared(), f"@{outside} bra {skip};", *lines, f"{skip}:"]

    def of_snippet(self, snippet: Snippet, lines: list[str]) -> list[str]:
        """The lines of a snippet at an instruction, so that nothing outside of the sample is saved.

        What saves nothing and is short may run anywhere: it writes the probe's registers alone. Around what only adds
        to a site there is no branch, at which the assembler would wait for a ``wgmma`` under way.
        """
        saved = [statement for statement in snippet.statements if isinstance(statement, Save)]
        if not saved and len(lines) <= _SHORT:
            return lines
        if saved and not snippet.labels and all(save.map in self._sites for save in saved):
            return [self._compared(), *(self._unless_outside(line) for line in lines)]
        return self.only_inside(lines)

    def _outside(self) -> str:
        return self._names.temporary("outside", "pred")

    def _compared(self) -> str:
        return f"setp.eq.u32 {self._outside()}, {self.place}, {_OUTSIDE};"

    def _unless_outside(self, line: str) -> str:
        return f"@!{self._outside()} {line}" if line.startswith("red.") else line
