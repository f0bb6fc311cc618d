"""Rows of imported files in tables: names are cut so that no two kernels look the same, and no two rows do."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from tui_probe.draw.shorten import names_apart

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tui_probe.draw.table import Column, Row
    from tui_probe.nsight.analysis.launch_groups import Shape

_OF_KERNELS: Final = frozenset({"kernel", "after_name", "before_name"})
"""The columns that hold them."""


def names_told_apart(columns: Iterable[Column[Row]], names: Iterable[str]) -> tuple[Column[Row], ...]:
    """The columns, with one shortening for all ``names`` that stand in them."""
    cut = names_apart(names)
    return tuple(replace(column, shorten=cut) if column.key in _OF_KERNELS else column for column in columns)


def by_shape(columns: Iterable[Column[Row]], shapes: Iterable[tuple[str, Shape]]) -> tuple[Column[Row], ...]:
    """The columns, of which grid and block are in every table in which they alone tell two rows of a file apart."""
    several: set[str] = set()
    seen: dict[tuple[str, str], Shape] = {}
    for file, shape in shapes:
        other = seen.setdefault((file, shape.kernel), shape)
        several |= {side for side in ("grid", "block") if getattr(other, side) != getattr(shape, side)}
    return tuple(replace(column, rank=0) if column.key in several else column for column in columns)
