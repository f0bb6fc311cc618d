"""The distribution of a measured figure in one line: percentiles, and how often each value occurred."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from tui_probe.draw.spans import Line, pad
from tui_probe.draw.sparkline import column_chart

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

SHARES: Final = (0, 50, 90, 99, 100)
TITLES: Final = ("least", "median", "90 %", "99 %", "most")
_LABEL: Final = 16
_CELLS: Final = 9
_BINS: Final = 16


def percentiles(values: Sequence[float]) -> list[float] | None:
    """The values below which ``SHARES`` per cent of all lie, between neighbours linearly; None if there are none."""
    return np.percentile(np.asarray(values, dtype=np.float64), SHARES).tolist() if len(values) else None


def head_line() -> Line:
    """The titles of the columns."""
    titles = "".join(pad(title, _CELLS, right=True) for title in TITLES)
    return ((" " + pad("", _LABEL), "dim"), (titles + "  shape", "head"))


def distribution_line(label: str, values: Sequence[float], show: Callable[[float], str]) -> Line:
    """One figure: its percentiles, and a histogram from the least to the most."""
    shares = percentiles(values) or []
    texts = "".join(pad(show(value), _CELLS, right=True) for value in shares)
    return ((" " + pad(label, _LABEL), "dim"), (texts, ""), (f"  {_histogram(values)}", "accent"))


def _histogram(values: Sequence[float]) -> str:
    data = np.asarray(values, dtype=np.float64)
    if data.min() == data.max():
        return "all alike"
    counts, _ = np.histogram(data, bins=_BINS)
    return column_chart([int(n) if n else None for n in counts], _BINS, high=float(counts.max()))[0]
