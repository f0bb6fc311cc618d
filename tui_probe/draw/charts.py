"""Distributions as text: percentiles with a histogram, and cumulative shares by plotext."""

from __future__ import annotations

import threading
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from tui_probe.draw.bar_chart import column_chart
from tui_probe.draw.spans import Line, pad
from tui_probe.draw.table import safe

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

SHARES: Final = (0, 50, 90, 99, 100)
TITLES: Final = ("least", "median", "90 %", "99 %", "most")
_LABEL: Final = 16
_CELLS: Final = 9
_BINS: Final = 16
_MARKER: Final = "•"
"""One that has a sign in ASCII."""
_POINTS: Final = 400
_MARKS: Final = 5
_ONE_AT_A_TIME: Final = threading.Lock()
"""plotext draws on one value of the whole process."""


def percentiles(values: Sequence[float]) -> list[float] | None:
    """The values below which ``SHARES`` per cent of all lie, between neighbours linearly; None if there are none."""
    return np.percentile(np.asarray(values, dtype=np.float64), SHARES).tolist() if len(values) else None


def percentile_heading() -> Line:
    """The titles of the columns."""
    titles = "".join(pad(title, _CELLS, right=True) for title in TITLES)
    return ((" " + pad("", _LABEL), "dim"), (titles + "  shape", "head"))


def distribution_line(label: str, values: Sequence[float], show: Callable[[float], str]) -> Line:
    """Return one line: percentiles, and a histogram from the least to the most."""
    shares = percentiles(values) or []
    texts = "".join(pad(show(value), _CELLS, right=True) for value in shares)
    return ((" " + pad(label, _LABEL), "dim"), (texts, ""), (f"  {_histogram(values)}", "accent"))


def _histogram(values: Sequence[float]) -> str:
    data = np.asarray(values, dtype=np.float64)
    if data.min() == data.max():
        return "all alike"
    counts, _ = np.histogram(data, bins=_BINS)
    return column_chart([int(n) if n else None for n in counts], _BINS, high=float(counts.max()))[0]


def cdf_chart(values: NDArray[Any], cells: int, rows: int, label: str) -> list[str]:
    """Draw the share (%) of the values at or below each value, as ``rows`` lines of at most ``cells`` cells.

    ``values`` has shape (n,), any real dtype; ``label`` says what they are, and in which unit.
    """
    shares = np.linspace(0, 100, _POINTS)
    points = np.percentile(values, shares, method="inverted_cdf")
    return list(_cdf_lines(tuple(points.tolist()), tuple(shares.tolist()), cells, rows, label))


@lru_cache(maxsize=16)
def _cdf_lines(x: tuple[float, ...], y: tuple[float, ...], cells: int, rows: int, label: str) -> tuple[str, ...]:
    """Remembered, since a page is drawn again whenever it is scrolled."""
    import plotext

    with _ONE_AT_A_TIME:
        plotext.clear_figure()
        plotext.limit_size(False, False)
        plotext.plotsize(cells, rows)
        plotext.theme("clear")
        plotext.plot(x, y, marker=_MARKER)
        plotext.yticks([0, 25, 50, 75, 100])
        marks = np.linspace(x[0], x[-1], _MARKS).tolist() if x[-1] > x[0] else [x[0]]
        plotext.xticks(marks, [f"{mark:,.0f}".replace(",", " ") for mark in marks])
        plotext.xlabel(label)
        plotext.ylabel("% at or below the value")
        text: str = plotext.build()
    return tuple(safe(line).rstrip() for line in text.splitlines())
