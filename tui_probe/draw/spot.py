"""Where in a launch one is: what the pages about it have in common, so that each goes on where the last one was."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Spot:
    """A place in the code and one in the run, each as far as a page tells it.

    ``ptx`` are lines of ``pruned.ptx``, counted from 1, or offsets in machine code that was probed itself; of several
    the one that matters most comes first. ``probed`` is a line of ``probed.ptx`` that the other text has not.
    ``block`` is a number in the grid, ``warp`` one in the block, ``time`` in cycles since the launch began, ``address``
    that of an access to memory.
    """

    ptx: tuple[int, ...] = ()
    probed: int | None = None
    block: int | None = None
    warp: int | None = None
    sm: int | None = None
    time: float | None = None
    address: int | None = None

    @classmethod
    def of_line(cls, line: int | None) -> Spot:
        """That of a line of ``pruned.ptx``; of no line nothing is told."""
        return cls() if line is None else cls((line,))

    def __bool__(self) -> bool:
        """Is anything told?"""
        return self != Spot()

    @property
    def in_code(self) -> bool:
        """Is a line told?"""
        return bool(self.ptx) or self.probed is not None

    @property
    def in_run(self) -> bool:
        """Is it told where or when something ran?"""
        return any(each is not None for each in (self.block, self.sm, self.time))

    def over(self, before: Spot) -> Spot:
        """This one, with what it does not tell as it was before: the place in the code, and that in the run."""
        code, run = self if self.in_code else before, self if self.in_run else before
        return Spot(code.ptx, code.probed, run.block, run.warp, run.sm, run.time, run.address)

    def shares_code(self, other: Spot) -> bool:
        """Is one of them a line of the other?"""
        if self.probed is not None or other.probed is not None:
            return self.probed == other.probed
        return any(mine[0] in theirs for mine, theirs in ((self.ptx, other.ptx), (other.ptx, self.ptx)) if mine)
