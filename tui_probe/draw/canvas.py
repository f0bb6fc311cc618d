"""Canvas of character cells for drawings, with axes and characters of densities."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np
from rich.cells import cell_len

from tui_probe.draw.printable import printable
from tui_probe.draw.spans import clip_line, to_ascii

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from tui_probe.draw.spans import Line

SHADES: Final = " ░▒▓█"
ASCII_SHADES: Final = " .:-=+*#@"
_BRAILLE: Final = 0x2800
_BRAILLE_BITS: Final = np.array([[0x01, 0x08], [0x02, 0x10], [0x04, 0x20], [0x40, 0x80]], dtype=np.uint32)
_DOT_ORDER: Final = np.array([0, 4, 6, 2, 1, 5, 7, 3], dtype=np.int64)
"""Order in which the dots of a character, row by row, are filled where all have the same count: far apart first."""
_DECIMAL_STEPS: Final = (1, 2, 5, 10)
_MAX_DECIMALS: Final = 9
"""A nanosecond among seconds."""
_PLOT_TICKS: Final = 10
"""Labels of an axis in a picture."""


class Canvas:
    """``height`` × ``width`` cells, blank at first. Anything that lies outside is not drawn."""

    def __init__(self, width: int, height: int) -> None:
        self.width, self.height = width, height
        self._codes: NDArray[np.uint32] = np.full((height, width), ord(" "), dtype="<u4")
        self._roles: NDArray[np.uint16] = np.zeros((height, width), dtype=np.uint16)
        self._names: dict[str, int] = {"": 0}

    def role(self, name: str) -> int:
        """Return the number of a role, for arrays of them."""
        return self._names.setdefault(name, len(self._names))

    def text(self, x: int, y: int, text: str, role: str = "") -> None:
        """Write one line; a character that is not one cell wide becomes ``?``."""
        if not 0 <= y < self.height:
            return
        text = printable(text)
        if not text.isascii():
            text = "".join(sign if cell_len(sign) == 1 else "?" * cell_len(sign) for sign in text)
        text = text[max(-x, 0) : max(self.width - x, 0)]
        x = max(x, 0)
        self._codes[y, x : x + len(text)] = _codes_of(text)
        self._roles[y, x : x + len(text)] = self.role(role)

    def paint(self, x: int, y: int, codes: NDArray[Any], roles: NDArray[Any] | str) -> None:
        """Put code points of shape (rows, cells) with their corner at (x, y); roles are one, or numbers of ``role``."""
        rows, cells = slice(y, y + codes.shape[0]), slice(x, x + codes.shape[1])
        height, width = self._codes[rows, cells].shape
        self._codes[rows, cells] = codes[:height, :width]
        self._roles[rows, cells] = self.role(roles) if isinstance(roles, str) else roles[:height, :width]

    def tint(self, x: int, y: int, cells: int, rows: int, role: str) -> None:
        """Give what is in a rectangle another role."""
        self._roles[max(y, 0) : max(y + rows, 0), max(x, 0) : max(x + cells, 0)] = self.role(role)

    def lines(self, *, ascii_only: bool = False) -> list[Line]:
        """Return the lines, without blanks at the end; cells of one role are one span."""
        names = list(self._names)
        return [self._line(y, names, ascii_only=ascii_only) for y in range(self.height)]

    def _line(self, y: int, names: list[str], *, ascii_only: bool) -> Line:
        codes, roles = self._codes[y], self._roles[y]
        used_cells = np.flatnonzero((codes != ord(" ")) | (roles != 0))
        end = int(used_cells[-1]) + 1 if len(used_cells) else 0
        bounds = [0, *(np.flatnonzero(np.diff(roles[:end])) + 1).tolist(), end] if end else []
        text = codes[:end].astype("<u4").tobytes().decode("utf-32-le")
        spans = tuple((text[a:b], names[int(roles[a])]) for a, b in pairwise(bounds))
        if not ascii_only:
            return spans
        return clip_line(tuple((to_ascii(text_part), role) for text_part, role in spans), self.width)


def _codes_of(text: str) -> NDArray[np.uint32]:
    return np.frombuffer(text.encode("utf-32-le"), dtype="<u4")


def grades(counts: NDArray[Any], steps: int, maximum_count: float | None = None) -> NDArray[np.uint8]:
    """Return counts as grades 0 … ``steps`` on a logarithmic scale: 0 for nothing, 1 for a single one, ``steps`` for
    ``maximum_count``.

    ``maximum_count`` is the largest count unless given.
    """
    maximum = float(counts.max(initial=0)) if maximum_count is None else maximum_count
    scale = (steps - 1) / np.log(maximum) if maximum > 1 else 0.0
    with np.errstate(divide="ignore"):
        graded = np.where(counts > 0, 1 + np.floor(np.log(np.maximum(counts, 1)) * scale + 1e-9), 0)
    return np.minimum(graded, steps).astype(np.uint8)


def shaded(graded: NDArray[np.uint8], characters: str = SHADES) -> NDArray[np.uint32]:
    """Return the code points of grades, as many as there are ``characters``."""
    return _codes_of(characters)[graded]


def braille(dots: NDArray[np.bool_]) -> NDArray[np.uint32]:
    """Dots of shape (4 rows, 2 cells) as code points of shape (rows, cells); a cell without dots is a blank."""
    rows, cells = dots.shape[0] // 4, dots.shape[1] // 2
    bits = dots.reshape(rows, 4, cells, 2).transpose(0, 2, 1, 3) * _BRAILLE_BITS
    pattern = bits.sum(axis=(2, 3), dtype=np.uint32)
    return np.where(pattern, pattern + np.uint32(_BRAILLE), np.uint32(ord(" ")))


def halftone(counts: NDArray[Any], maximum: float | None = None) -> NDArray[np.uint32]:
    """Counts of shape (4 rows, 2 cells) as Braille of shape (rows, cells).

    A cell has as many dots as its grade of 8, but none where nothing is: those that count most.
    """
    rows, cells = counts.shape[0] // 4, counts.shape[1] // 2
    parts = counts.reshape(rows, 4, cells, 2).transpose(0, 2, 1, 3).reshape(rows, cells, 8)
    graded = grades(parts.sum(axis=2), 8, maximum)
    order = np.argsort(-(parts.astype(np.int64) * 8 - _DOT_ORDER), axis=2, kind="stable")
    dots = np.zeros(parts.shape, dtype=np.bool_)
    np.put_along_axis(dots, order, np.arange(8) < graded[:, :, np.newaxis], axis=2)
    dots &= parts > 0
    return braille(dots.reshape(rows, cells, 4, 2).transpose(0, 2, 1, 3).reshape(counts.shape))


class Tick(NamedTuple):
    """A value to mark, and its label."""

    value: float
    label: str


@dataclass(frozen=True, slots=True)
class Unit:
    """The unit of an axis: ``scales`` are (size, suffix) of its prefixes, ascending.

    ``whole`` units have no fractions, so steps are at least 1. Steps are 1, 2 or 5 times a power of ten, of ``binary``
    units powers of two; ``hexadecimal`` ones are labelled so, without prefixes.
    """

    name: str
    scales: tuple[tuple[float, str], ...] = ((1, ""), (1e3, "k"), (1e6, "M"), (1e9, "G"), (1e12, "T"))
    whole: bool = True
    binary: bool = False
    hexadecimal: bool = False

    def label(self, value: float, step: float) -> str:
        """Return ``value`` in few characters, exact enough to be distinguished from its neighbour ``step`` away."""
        if self.hexadecimal:
            return f"{round(value):#x}"
        size, suffix = next(
            ((size, suffix) for size, suffix in reversed(self.scales) if abs(value) >= size), self.scales[0]
        )
        decimals = 0
        while decimals < _MAX_DECIMALS and abs(round(step / size, decimals) * size - step) > step / 100:
            decimals += 1
        return f"{value / size:.{decimals}f}{suffix}"


COUNT: Final = Unit("")
CYCLES: Final = Unit("cycles")
TIME: Final = Unit("time", ((1, " ns"), (1e3, " µs"), (1e6, " ms"), (1e9, " s")), whole=False)
"""Values in nanoseconds."""
BYTES: Final = Unit(
    "bytes", ((1, " B"), (2**10, " KiB"), (2**20, " MiB"), (2**30, " GiB"), (2**40, " TiB")), binary=True
)
ADDRESS: Final = Unit("address", binary=True, hexadecimal=True)


def ticks(minimum: float, maximum: float, max_ticks: int, unit: Unit) -> list[Tick]:
    """Return up to ``max_ticks`` round values in [minimum, maximum], ascending; none if this range is empty."""
    if max_ticks < 1 or not maximum > minimum:
        return []
    step = _round_step((maximum - minimum) / max_ticks, unit)
    while math.floor(maximum / step) - math.ceil(minimum / step) + 1 > max_ticks:
        step = _round_step(step * 1.01, unit)
    values = [i * step for i in range(math.ceil(minimum / step), math.floor(maximum / step) + 1)]
    return [Tick(value, unit.label(value, step)) for value in values if minimum <= value <= maximum]


def _round_step(min_step: float, unit: Unit) -> float:
    """Return the smallest round step that is not below ``min_step``."""
    if unit.whole:
        min_step = max(min_step, 1.0)
    if unit.binary:
        return float(2 ** math.ceil(math.log2(min_step) - 1e-9))
    power = 10.0 ** math.floor(math.log10(min_step))
    return next((part * power for part in _DECIMAL_STEPS if part * power >= min_step * (1 - 1e-9)), 10 * power)


def label_x_axis(axes: Any, minimum: float, maximum: float, unit: Unit) -> None:
    """Label the x axis of matplotlib axes at round values, as the screen does."""
    marks = ticks(minimum, maximum, _PLOT_TICKS, unit)
    axes.set_xticks([mark.value for mark in marks], [mark.label for mark in marks])


def draw_x_axis(canvas: Canvas, x: int, y: int, cells: int, minimum: float, maximum: float, unit: Unit) -> None:
    """An axis below a plot that begins at cell ``x`` and is ``cells`` wide: a rule in row ``y``, labels in the next.

    A label is where its value is, or is left out where it would touch the one before or the end.
    """
    canvas.text(x, y, "─" * cells, "rule")
    free_column = x
    for tick in ticks(minimum, maximum, max(cells // 12, 2), unit):
        column = x + min(int((tick.value - minimum) / (maximum - minimum) * cells), cells - 1)
        if column >= free_column and column + len(tick.label) <= x + cells:
            canvas.text(column, y, "┬", "rule")
            canvas.text(column, y + 1, tick.label, "dim")
            free_column = column + len(tick.label) + 2
