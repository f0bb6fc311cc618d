"""Names of kernels in tables of imported files: cut so that no two kernels look the same."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from tui_probe.draw.shorten import names_apart

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tui_probe.draw.table import Column, Row

_OF_KERNELS: Final = frozenset({"kernel", "after_name", "before_name"})
"""The columns that hold them."""


def names_told_apart(columns: Iterable[Column[Row]], names: Iterable[str]) -> tuple[Column[Row], ...]:
    """The columns, with one shortening for all ``names`` that stand in them."""
    cut = names_apart(names)
    return tuple(replace(column, shorten=cut) if column.key in _OF_KERNELS else column for column in columns)
