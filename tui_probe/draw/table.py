"""A table of rows for a given width, from columns that also serve JSON and CSV."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from itertools import groupby
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar

from tui_probe.draw.printable import printable
from tui_probe.draw.spans import clip, pad, width
from tui_probe.draw.units import NOT_MEASURED

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

Row = TypeVar("Row")
_GAP: Final = 2
_HELD: Final = 20_000
"""Rows up to which their texts are kept from measuring to writing; of more they are made again."""


@dataclass(frozen=True, slots=True)
class Column(Generic[Row]):
    """One column.

    ``key`` names it in JSON and CSV, where ``value`` gives its value (None: not measured). ``title`` heads it in
    tables, where ``text`` gives its cell. Without a value it is in tables alone, without a text in data alone.
    """

    key: str
    value: Callable[[Row], Any] | None = None
    title: str = ""
    text: Callable[[Row], str] | None = None
    right: bool = True
    rank: int = 0
    """When a table is too wide, columns of the highest rank are left out first; those of rank 0 never are."""
    narrow: int | None = None
    """The width to which the column may be cut; None if it may not."""
    shorten: Callable[[str, int], str] = clip
    nested: bool = False
    """Whether the value is a structure, for which CSV has no form."""


def in_tables(columns: Sequence[Column[Row]]) -> list[Column[Row]]:
    return [column for column in columns if column.text is not None]


def in_data(columns: Sequence[Column[Row]]) -> list[Column[Row]]:
    return [column for column in columns if column.value is not None]


def table(
    columns: Sequence[Column[Row]], rows: Iterable[Row], cells: int, *, hide_empty: bool = False
) -> Iterator[str]:
    """Lines of at most ``cells`` cells: headings, a rule, and one line per row.

    Columns that do not fit are left out by rank, and with ``hide_empty`` those without any value first; then those that
    may be cut share what room there is. Many ``rows`` are gone through twice, for the widths and for the lines, and not
    held.
    """
    shown = in_tables(columns)
    natural = [0 if hide_empty else width(column.title) for column in shown]
    held: list[list[str]] = []
    count = 0
    for count, texts in enumerate(_texts(shown, rows), 1):
        natural = list(map(max, natural, map(_width_of_value if hide_empty else width, texts)))
        if count <= _HELD:
            held.append(texts)
    if hide_empty:
        natural = with_titles(shown, natural)
    kept = _fit(shown, natural, cells)
    widths = _widths(shown, natural, kept, cells)
    yield _line([pad(shown[i].title, widths[i], right=shown[i].right) for i in kept], cells)
    yield _line(["─" * widths[i] for i in kept], cells)
    for texts in held if count <= _HELD else _texts(shown, rows):
        yield _line([_fitted(shown[i], texts[i], widths[i]) for i in kept], cells)


def _width_of_value(text: str) -> int:
    return 0 if text == NOT_MEASURED else width(text)


def natural_widths(columns: Sequence[Column[Row]], rows: Iterable[Row]) -> list[int]:
    """The width that each column would like to have for these rows; 0 for one without any value."""
    natural = [0] * len(columns)
    for row in rows:
        natural = [max(size, _width_of_value(cell(column, row))) for size, column in zip(natural, columns, strict=True)]
    return with_titles(columns, natural)


def with_titles(columns: Sequence[Column[Row]], natural: Sequence[int]) -> list[int]:
    """Widths of values, made wide enough for the titles; 0 stays: the column is left out."""
    return [size and max(size, width(column.title)) for column, size in zip(columns, natural, strict=True)]


def _texts(columns: Sequence[Column[Row]], rows: Iterable[Row]) -> Iterator[list[str]]:
    """The cells of each row."""
    return ([cell(column, row) for column in columns] for row in rows)


def layout(columns: Sequence[Column[Row]], natural: Sequence[int], cells: int) -> list[tuple[Column[Row], int]]:
    """The columns of a table that fit in ``cells`` with their widths; ``natural`` is what each would like to have."""
    kept = _fit(columns, natural, cells)
    widths = _widths(columns, natural, kept, cells)
    return [(columns[i], widths[i]) for i in kept]


def fitted_cell(column: Column[Row], row: Row, cells: int) -> str:
    """The text of a row's cell in exactly ``cells`` cells."""
    return _fitted(column, cell(column, row), cells)


def _line(texts: list[str], cells: int) -> str:
    return clip((" " * _GAP).join(texts).rstrip(), cells)


def cell(column: Column[Row], row: Row) -> str:
    """The text of a row's cell, safe to print whatever the trace holds."""
    return safe(column.text(row)) if column.text is not None else ""


def safe(text: str) -> str:
    """Text that is safe to show, as ``printable`` makes it."""
    return printable(text)


def _fitted(column: Column[Row], text: str, cells: int) -> str:
    return pad(text if column.narrow is None else _shortened(column.shorten, text, cells), cells, right=column.right)


@lru_cache(maxsize=16384)
def _shortened(shorten: Callable[[str, int], str], text: str, cells: int) -> str:
    """Remembered, since the columns that may be cut hold the names of the same kernels again and again."""
    return shorten(text, cells)


def _least(column: Column[Row], natural: int) -> int:
    return natural if column.narrow is None else min(natural, max(column.narrow, width(column.title)))


def _fit(columns: Sequence[Column[Row]], natural: Sequence[int], cells: int) -> list[int]:
    """The positions of the columns that are kept."""
    kept = [i for i in range(len(columns)) if natural[i] or not columns[i].title or not any(natural)]
    while sum(_least(columns[i], natural[i]) + _GAP for i in kept) - _GAP > cells:
        last = max(kept, key=lambda i: (columns[i].rank, i))
        if columns[last].rank == 0:
            break
        kept.remove(last)
    return kept


def _widths(columns: Sequence[Column[Row]], natural: Sequence[int], kept: Sequence[int], cells: int) -> dict[int, int]:
    """The least widths, and what is left over for the columns that were cut, the lowest rank first; those of one rank
    share it."""
    widths = {i: _least(columns[i], natural[i]) for i in kept}
    left = cells - sum(widths.values()) - _GAP * (len(kept) - 1)
    for _, same in groupby(sorted(kept, key=lambda i: columns[i].rank), key=lambda i: columns[i].rank):
        wanting = sorted(same, key=lambda i: natural[i] - widths[i])  # what one leaves is for those that want more
        for place, i in enumerate(wanting):
            share = max(left, 0) // (len(wanting) - place)
            grow = min(share, natural[i] - widths[i])
            widths[i] += grow
            left -= grow
    return widths
