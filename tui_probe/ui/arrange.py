"""Which kernels the table shows and in what order, and how wide its columns are. Knows nothing of Textual."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Generic, TypeVar

from tui_probe.draw.spans import pad, width

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from tui_probe.draw.table import Column

Row = TypeVar("Row")
GAP = 2


@dataclass(frozen=True)
class Shown(Generic[Row]):
    """A column of a table on screen.

    ``value`` is what the column sorts by, None if not measured (always last). It is at least ``narrow`` cells wide, so
    that columns stand still while rows change, and does not grow beyond ``wide``. A column that may be cut takes what
    the others leave, and so does one with a ``short`` form of its texts, for cells that the whole text does not fit.
    """

    column: Column[Row]
    value: Callable[[Row], object]
    narrow: int
    wide: int
    short: Callable[[Row], str] | None = None

    @property
    def key(self) -> str:
        """The name of the column."""
        return self.column.key

    @property
    def title(self) -> str:
        """Its heading."""
        return self.column.title

    def cell(self, row: Row) -> str:
        """The text of a row."""
        return self.column.text(row) if self.column.text is not None else ""

    def fitted(self, row: Row, cells: int) -> str:
        """The text of a row in exactly so many cells."""
        text = self.cell(row)
        if self.short is not None and width(text) > cells:
            text = self.short(row)
        if self.column.narrow is not None:
            text = self.column.shorten(text, cells)
        return pad(text, cells, right=self.column.right)

    @property
    def flexible(self) -> bool:
        """Can it do with less than its contents want?"""
        return self.column.narrow is not None or self.short is not None

    def least(self, natural: int) -> int:
        """The cells that it needs, if its contents want ``natural`` cells."""
        title = width(self.title)
        want = max(title, min(natural, self.wide))
        return max(title, min(self.narrow, want)) if self.flexible else max(self.narrow, want)


def fit_columns(columns: Sequence[Shown[Row]], natural: Mapping[str, int], cells: int) -> list[tuple[Shown[Row], int]]:
    """Columns that fit in ``cells`` with their widths, in order.

    ``natural`` is the width that the contents of each column want. Columns of the highest rank leave first, until the
    rest fits; those of rank 0 stay, and are cut if need be. What is left goes to short forms first, if it is enough for
    the whole texts, then to what was cut.
    """
    kept = list(columns)
    sizes = {shown.key: shown.least(natural.get(shown.key, 0)) for shown in kept}
    while sum(sizes[shown.key] + GAP for shown in kept) - GAP > cells:
        last = max(enumerate(kept), key=lambda item: (item[1].column.rank, item[0]))[1]
        if last.column.rank == 0:
            break
        kept.remove(last)
    left = cells - sum(sizes[shown.key] for shown in kept) - GAP * (len(kept) - 1)
    for shown in sorted(kept, key=lambda shown: (shown.short is None, shown.column.rank)):
        wish = min(natural.get(shown.key, 0), shown.wide) - sizes[shown.key]
        if shown.short is not None and 0 < wish <= left:
            sizes[shown.key] += wish
            left -= wish
        elif shown.column.narrow is not None:
            grow = max(left, 1 - sizes[shown.key]) if left < 0 else min(left, max(0, wish))
            sizes[shown.key] += grow
            left -= grow
    return [(shown, sizes[shown.key]) for shown in kept]


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
