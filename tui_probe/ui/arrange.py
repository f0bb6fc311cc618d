"""Which kernels the table shows and in what order, and how wide its columns are. Knows nothing of Textual."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Generic, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

Row = TypeVar("Row")
GAP = 2


@dataclass(frozen=True)
class Column(Generic[Row]):
    """A column of a table on screen.

    ``cell`` gives a row's text; ``value`` what the column sorts by, None if not measured (always last). ``narrow`` is
    the width below which the column is left out, ``wide`` the width beyond which it does not grow. Columns of a high
    ``rank`` are left out first; rank 0 never is.
    """

    id: str
    title: str
    cell: Callable[[Row], str]
    value: Callable[[Row], object]
    rank: int
    narrow: int
    wide: int
    right: bool = True
    elastic: bool = False


def fit_columns(
    columns: Sequence[Column[Row]], natural: Mapping[str, int], cells: int
) -> list[tuple[Column[Row], int]]:
    """Columns that fit in ``cells`` with their widths, in order.

    ``natural`` is the width that the contents of each column want. Columns leave by rank until the rest fits with its
    elastic columns at their narrow width; then the elastic ones share what is left, in order of rank.
    """
    kept = list(columns)

    def least(column: Column[Row]) -> int:
        want = max(len(column.title), min(natural.get(column.id, 0), column.wide))
        return min(column.narrow, max(want, len(column.title))) if column.elastic else max(want, column.narrow)

    while sum(least(c) + GAP for c in kept) - GAP > cells:
        last = max(kept, key=lambda column: column.rank)
        if last.rank == 0:
            break
        kept.remove(last)
    widths = {column.id: least(column) for column in kept}
    left = cells - sum(widths.values()) - GAP * (len(kept) - 1)
    for column in sorted((c for c in kept if c.elastic), key=lambda c: c.rank):
        grow = min(left, max(0, min(natural.get(column.id, 0), column.wide) - widths[column.id]))
        if left < 0 and column.rank == 0:
            grow = max(left, 1 - widths[column.id])
        widths[column.id] += grow
        left -= grow
    return [(column, widths[column.id]) for column in kept]


def arrange(
    rows: Sequence[Row], keep: Callable[[Row], bool] | None, value: Callable[[Row], object] | None, *, reverse: bool
) -> list[int]:
    """Positions of the rows to show, in order. Rows without a value come last in either direction; ties keep order."""
    shown = [i for i, row in enumerate(rows) if keep is None or keep(row)]
    if value is None:
        return shown[::-1] if reverse else shown
    values = {i: value(rows[i]) for i in shown}
    known = [i for i in shown if values[i] is not None]
    known.sort(key=lambda i: values[i], reverse=reverse)  # type: ignore[arg-type,return-value]
    return known + [i for i in shown if values[i] is None]
