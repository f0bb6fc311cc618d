"""Order of a table's rows by one column, as users choose it on the screen."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final, TypeVar

from tui_probe.draw.spans import clip, pad

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from tui_probe.draw.table import Column

Row = TypeVar("Row")
GAP: Final = 2
"""Cells between columns."""


@dataclass(frozen=True, slots=True)
class ColumnOrder:
    """Column that rows are sorted by, and its direction; without a column rows keep their order."""

    key: str = ""
    falling: bool = True

    def choose(self, key: str, *, falling: bool = True) -> ColumnOrder:
        """Return the order by another column, which begins ``falling``; the same column again is reversed."""
        return ColumnOrder(key, not self.falling if key == self.key else falling)

    def arranged(self, rows: Iterable[Row], value: Callable[[Row], Any]) -> list[Row]:
        """Return the rows by their value; those without one come last."""
        if not self.key:
            return [*rows]
        known = [(value(row), row) for row in rows]
        missing = [row for found, row in known if found is None]
        held = sorted((pair for pair in known if pair[0] is not None), key=lambda pair: pair[0], reverse=self.falling)
        return [*(row for _, row in held), *missing]

    def arrow(self, key: str) -> str:
        """Return the arrow behind the title of a column; "" if rows are sorted by another one."""
        return "" if not self.key or key != self.key else "↓" if self.falling else "↑"

    def marked(self, column: Column[Row]) -> Column[Row]:
        """Return the column with its arrow in the title."""
        arrow = self.arrow(column.key)
        return replace(column, title=f"{column.title} {arrow}".lstrip()) if arrow else column

    def text(self, title: str) -> str:
        """Return ``by TITLE, descending`` for the title of its column."""
        return f"by {title}, {'descending' if self.falling else 'ascending'}" if self.key else "in original order"


def heading(title: str, cells: int, arrow: str = "", *, right: bool = False) -> str:
    """Return a title in its cells and the gap behind them, with an arrow next to it."""
    if right:
        return pad(title, cells, right=True) + pad(arrow, GAP)
    return pad(f"{clip(title, cells)} {arrow}", cells + GAP)


UNSORTED: Final = ColumnOrder()
