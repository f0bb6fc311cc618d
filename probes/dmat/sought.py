"""The access that another page of the launch was on, looked for in the records."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from tui_probe.trace.offset import where_in_full

from .accesses import Selection

if TYPE_CHECKING:
    from tui_probe.draw.spot import Spot

    from .state import State
    from .window import Window


@dataclass(frozen=True, slots=True)
class Sought:
    """Whose access it is, and the cycle that it is to be near to; None for the first one."""

    selection: Selection
    time: float | None

    @property
    def words(self) -> str:
        """What was not found: ``no access of PTX line 28 was recorded``."""
        line = self.selection.line
        return f"no access{'' if line is None else f' of {where_in_full(line)}'} was recorded there"


def sought(view: State, spot: Spot) -> Sought | None:
    """What a spot is in the records: an access of one of its lines, and of its block; None where it is neither."""
    line = next((line for ptx in spot.ptx if (line := _recorded_line(view, ptx)) is not None), None)
    blocks = view.found.result.blocks
    block = blocks.index(spot.block) if spot.block is not None and spot.block in blocks else None
    if line is None and block is None:
        return None
    return Sought(Selection(block, None, line), spot.time)


def _recorded_line(view: State, ptx: int) -> int | None:
    """What records hold of a line of ``pruned.ptx``: it, or the number of an instruction of machine code."""
    if not view.painter.knows_kinds:
        return None
    return next((line for line, code in view.painter.code.items() if code.line == ptx), None)


def why_not(view: State, spot: Spot) -> str:
    """Why a spot is nothing in the records; "" where it tells of no line and no block."""
    if spot.ptx and view.painter.knows_kinds:
        return f"{where_in_full(spot.ptx[0])} is no access to global memory"
    return "" if spot.block is None else f"nothing was recorded of block {spot.block}"


def shown_with(selection: Selection, wanted: Selection) -> Selection:
    """A selection that has what is wanted in it: the one that there is, without what leaves it out."""
    if wanted.block is not None and selection.block not in (None, wanted.block):
        selection = replace(selection, block=None, warp=None)
    return replace(selection, line=None) if selection.line != wanted.line else selection


def in_sight(window: Window, end: float, time: float, place: float) -> Window:
    """The window, moved as far as it takes to see a cycle and a place of the axis of memory."""
    if not window.start <= time < window.end:
        window = window.moved(time - (window.start + window.end) / 2, 0)
    if not window.low <= place < window.high:
        window = window.moved(0, place - (window.low + window.high) / 2)
    return window.inside(end)
