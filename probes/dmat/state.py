"""What commands move and data is taken of: the state of a picture of accesses."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from tui_probe.probekit.probe_results import ProbeResult

    from .access_map import AccessMap
    from .accesses import Selection
    from .frame import Colouring, Frame, Painter, Wish
    from .readout import ReadOut
    from .space import Space
    from .window import Window


class State(Protocol):
    """The window, the cursor, the choices, and the picture that is shown."""

    title: str
    found: ProbeResult
    map: AccessMap
    space: Space
    painter: Painter
    window: Window
    time: float
    address: int
    end: float
    selection: Selection
    colouring: Colouring
    unit: str
    marks: list[tuple[float, int]]
    seeking: bool
    frame: Frame | None
    wish: Wish | None

    def units_known(self) -> list[str]:
        """The units that the axes can have."""

    def block_number(self, place: int) -> int:
        """The number in the grid of the block at a place among those that were measured."""

    def read_out(self, frame: Frame) -> ReadOut:
        """What is under the cursor."""

    def whose(self) -> str:
        """The selection in words."""

    def seen_most(self) -> int:
        """The warp, counted through the grid, that made most accesses under the cursor; 0 where that is not known."""
