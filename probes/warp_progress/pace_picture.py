"""The lines of warps as a picture: how many of them pass each dot, and where those go that stand out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from tui_probe.draw.canvas import ASCII_SHADES, braille, grades, shaded

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from tui_probe.draw.canvas import Canvas

    from .paces import Paces

DOTS: Final = (4, 2)
"""Dots of a cell: rows, columns."""
_LEVELS: Final = 8
_PART: Final = 256
"""Warps that are put into the picture at a time."""


@dataclass(frozen=True, slots=True)
class PacePicture:
    """What was computed for one window. ``dots`` (i8) and ``standing`` (bool) have shape (rows × 4, cells × 2)."""

    begin: float
    width: float
    dots: NDArray[np.int64]
    standing: NDArray[np.bool_]


def picture(
    paces: Paces, standing: NDArray[np.bool_], top: int, window: tuple[float, float], cells: int, rows: int
) -> PacePicture:
    """Lines in a window (begin, width in cycles) of ``cells`` × ``rows``; ``top`` arrivals are the upper edge.

    ``standing`` (bool) tells for each warp whether it stands out.
    """
    begin, width = window
    shape = rows * DOTS[0], cells * DOTS[1]
    times = begin + width * (np.arange(shape[1]) + 0.5) / shape[1]
    values = paces.at(times)
    every = sum((_count(values[a : a + _PART], top, shape) for a in range(0, len(values), _PART)), np.zeros(shape, int))
    return PacePicture(begin, width, every, _count(values[standing], top, shape) > 0)


def _count(values: NDArray[np.float64], top: int, shape: tuple[int, int]) -> NDArray[np.int64]:
    """How many lines pass each dot. A line that climbs fills the dots between those of two columns."""
    alive = ~np.isnan(values)
    height = np.where(alive, np.rint(np.nan_to_num(values) / max(top, 1) * (shape[0] - 1)), 0).astype(np.int64)
    before = np.concatenate([height[:, :1], height[:, :-1]], axis=1)
    was = np.concatenate([alive[:, :1], alive[:, :-1]], axis=1)
    low = np.where(was & (before < height), before + 1, height)
    line, column = np.nonzero(alive)
    change = np.zeros((shape[0] + 1, shape[1]), dtype=np.int64)
    np.add.at(change, (low[line, column], column), 1)
    np.add.at(change, (height[line, column] + 1, column), -1)
    return np.cumsum(change, axis=0)[-2::-1]


def draw_picture(canvas: Canvas, x: int, y: int, shown: PacePicture, *, ascii_only: bool) -> None:
    """Dots as Braille, or in ASCII as a ramp; the more lines in a cell, the higher its level."""
    in_cell = _cells(shown.dots)
    level = grades(in_cell, _LEVELS)
    codes: NDArray[Any] = shaded(level, ASCII_SHADES) if ascii_only else braille(shown.dots > 0)
    roles = np.array([canvas.role(""), *(canvas.role(f"ramp{i}") for i in range(_LEVELS))], dtype=np.uint16)
    chosen = np.where(_cells(shown.standing.astype(np.int64)) > 0, canvas.role("bad"), roles[level])
    canvas.paint(x, y, codes, chosen)


def _cells(dots: NDArray[np.int64]) -> NDArray[np.int64]:
    """Sums over the dots of each cell."""
    rows, cells = dots.shape[0] // DOTS[0], dots.shape[1] // DOTS[1]
    sums: NDArray[np.int64] = dots.reshape(rows, DOTS[0], cells, DOTS[1]).sum(axis=(1, 3))
    return sums
