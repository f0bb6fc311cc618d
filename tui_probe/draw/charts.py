"""Charts by plotext, as plain text: for pages that are made once, since a chart takes some 35 ms."""

from __future__ import annotations

import threading
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from tui_probe.draw.table import safe

if TYPE_CHECKING:
    from numpy.typing import NDArray

_MARKER: Final = "•"
"""One that has a sign in ASCII."""
_POINTS: Final = 400
_MARKS: Final = 5
_ONE_AT_A_TIME: Final = threading.Lock()
"""plotext draws on one figure of the whole process."""


def cdf_chart(values: NDArray[Any], cells: int, rows: int, label: str) -> list[str]:
    """Which share (%) of the values lies at or below a value, as ``rows`` lines of at most ``cells`` cells.

    ``values`` has shape (n,), any real dtype; ``label`` says what they are, and in which unit.
    """
    shares = np.linspace(0, 100, _POINTS)
    points = np.percentile(values, shares, method="inverted_cdf")
    return list(_drawn(tuple(points.tolist()), tuple(shares.tolist()), cells, rows, label))


@lru_cache(maxsize=16)
def _drawn(x: tuple[float, ...], y: tuple[float, ...], cells: int, rows: int, label: str) -> tuple[str, ...]:
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
        plotext.ylabel("% of them at or below")
        text: str = plotext.build()
    return tuple(safe(line).rstrip() for line in text.splitlines())
