"""Distributions as a table: a line each, percentiles in columns."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tui_probe.analysis.distribution import PERCENTILES
from tui_probe.draw.spans import pad
from tui_probe.draw.units import NOT_MEASURED

if TYPE_CHECKING:
    from collections.abc import Callable

    from tui_probe.analysis.distribution import Distribution
    from tui_probe.draw.spans import Line

_SHOWN: Final = {0: "least", 25: "25 %", 50: "median", 75: "75 %", 95: "95 %", 99: "99 %", 100: "most"}
OF_PAIRS: Final = "ratio of pairs"
"""Slowdowns, each of two launches: their median is seldom the ratio of the median times."""
_LABEL: Final = 14
_CELLS: Final = 9


def distribution_head(label: str = "") -> Line:
    """The titles of the columns; ``label`` says what the values are."""
    return ((pad(label, _LABEL), "dim"), ("".join(pad(title, _CELLS, right=True) for title in _SHOWN.values()), "head"))


def distribution_without(label: str) -> Line:
    """One that was not measured."""
    return ((pad(label, _LABEL), "dim"), ("".join(pad(NOT_MEASURED, _CELLS, right=True) for _ in _SHOWN), "dim"))


def distribution_row(label: str, found: Distribution, show: Callable[[float], str]) -> Line:
    """One distribution; ``show`` makes a value of it into at most 8 characters."""
    values = (found.percentiles[PERCENTILES.index(percentile)] for percentile in _SHOWN)
    return ((pad(label, _LABEL), "dim"), ("".join(pad(show(value), _CELLS, right=True) for value in values), ""))
