"""Published figures, each with its source, and ours beside them."""

from __future__ import annotations

import tomllib
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import Any, Final

from tui_probe.draw.table import Column
from tui_probe.draw.units import NOT_MEASURED

_FILE: Final = Path(__file__).with_name("published.toml")


@dataclass(frozen=True, slots=True)
class Published:
    """One figure: ``what`` it is, on which ``hardware``, and where it stands."""

    key: str
    what: str
    value: float
    unit: str
    hardware: str
    source: str


@dataclass(frozen=True, slots=True)
class Compared:
    """A published figure and ours, in the same unit; None is not measured."""

    published: Published
    ours: float | None

    def record(self) -> dict[str, Any]:
        """As data."""
        return {**asdict(self.published), "ours": self.ours}


@cache
def published(evaluation: str) -> dict[str, Published]:
    """The figures of an evaluation by key, in the order of ``published.toml``; none where nothing was published."""
    with _FILE.open("rb") as file:
        figures = tomllib.load(file).get(evaluation, [])
    return {figure["key"]: Published(**figure) for figure in figures}


def compared(evaluation: str, **ours: float | None) -> tuple[Compared, ...]:
    """All published figures of an evaluation beside ours, given by key. KeyError for a key that was not published."""
    figures = published(evaluation)
    unknown = ours.keys() - figures.keys()
    if unknown:
        raise KeyError(f"{evaluation}: published.toml has no {', '.join(sorted(unknown))}")
    return tuple(Compared(figure, ours.get(key)) for key, figure in figures.items())


def _number(value: float | None, unit: str) -> str:
    if value is None:
        return NOT_MEASURED
    shown = f"{value:,.0f}".replace(",", " ") if abs(value) >= 1000 else f"{value:.4g}"
    return f"{shown} {unit}".rstrip()


COLUMNS: Final[tuple[Column[Compared], ...]] = (
    Column("what", None, "figure", lambda r: r.published.what, False, narrow=24),
    Column("ours", None, "ours", lambda r: _number(r.ours, r.published.unit)),
    Column("value", None, "published", lambda r: _number(r.published.value, r.published.unit)),
    Column("hardware", None, "published for", lambda r: r.published.hardware, False, 1, 8),
    Column("source", None, "source", lambda r: r.published.source, False, 2, 12),
)
