"""Tables of columns for a given width, and the same rows as JSON and Markdown."""

from __future__ import annotations

import re
from dataclasses import KW_ONLY, dataclass
from functools import lru_cache
from itertools import groupby
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar

from tui_probe.draw.printable import dump_json, printable
from tui_probe.draw.spans import clip, pad, width
from tui_probe.draw.units import NOT_MEASURED

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

Row = TypeVar("Row")
Row_contra = TypeVar("Row_contra", contravariant=True)
"""Rows of a column: a column of a class also takes rows of its subclasses."""
_GAP: Final = 2
_MIN_TEXT_CELLS: Final = 4
"""Cells that a text keeps at least."""
_MINOR_RANK: Final = 3
"""Rank from which on columns give way to readable ones."""
_CACHE_SIZE: Final = 20_000
"""Rows up to which their texts are kept from measuring to writing; of more they are made again."""
_ENTITY: Final = re.compile(r"&(?=#?\w+;)")
_BACKTICKS: Final = re.compile("`+")
SCHEMA: Final = "tui-probe.report"
SCHEMA_VERSION: Final = 2
"""Version of all documents of that schema, and of views."""


@dataclass(frozen=True, slots=True)
class Column(Generic[Row_contra]):
    """One column.

    ``key`` names it in JSON and CSV, where ``value`` gives its value (None: not measured). ``title`` heads it in
    tables, where ``text`` gives its cell. Without a value it is in tables only, without a text in data only.
    """

    key: str
    value: Callable[[Row_contra], Any] | None = None
    title: str = ""
    text: Callable[[Row_contra], str] | None = None
    _: KW_ONLY
    right: bool = True
    rank: int = 0
    """Columns of the highest rank are left out first when a table is too wide; those of rank 0 never are."""
    narrow: int | None = None
    """The width to which the column may be cut; None if it may not."""
    shorten: Callable[[str, int], str] = clip
    readable: float = 0.0
    """Part of a table's width that the column should have before others grow; columns of a high rank
    give way to it.
    """
    nested: bool = False
    """True for a value that is a structure, which CSV cannot hold."""
    batch: Callable[[Any], Sequence[Any]] | None = None
    """The values of many rows, from what ``batches`` of these rows gives; ``value`` gives the same one by one."""
    data: bool = True
    """False: JSON and CSV lack the column; its value only orders rows."""


def in_tables(columns: Sequence[Column[Row]]) -> list[Column[Row]]:
    return [column for column in columns if column.text is not None]


def in_data(columns: Sequence[Column[Row]]) -> list[Column[Row]]:
    return [column for column in columns if column.value is not None and column.data]


def table(
    columns: Sequence[Column[Row]], rows: Iterable[Row], cells: int, *, hide_empty: bool = False
) -> Iterator[str]:
    """Lines of at most ``cells`` cells: headings, a rule, and one line per row.

    Columns without any value are left out where the table does not fit, and always with ``hide_empty``. Then columns
    are left out by rank, and those that may be cut share what room there is; at last other texts are cut, but never
    numbers. Many ``rows`` are gone through twice, for the widths and for the lines, and not held.
    """
    columns = in_tables(columns)
    natural: Sequence[int] = [0] * len(columns)
    cached_texts: list[list[str]] = []
    count = 0
    for count, texts in enumerate(_texts(columns, rows), 1):
        natural = list(map(max, natural, map(_width_of_value, texts)))
        if count <= _CACHE_SIZE:
            cached_texts.append(texts)
    natural = _with_empty_columns(columns, with_titles(columns, natural), cells, hide_empty=hide_empty)
    indices = _fitting_columns(columns, natural, cells)
    widths = _widths(columns, natural, indices, cells)
    yield _line([pad(columns[i].title, widths[i], right=columns[i].right) for i in indices], cells)
    yield _line(["─" * widths[i] for i in indices], cells)
    for texts in cached_texts if count <= _CACHE_SIZE else _texts(columns, rows):
        yield _line([_cell_text(columns[i], texts[i], widths[i]) for i in indices], cells)


def shown_keys(columns: Sequence[Column[Row]], rows: Iterable[Row], cells: int) -> frozenset[str]:
    """Return the keys of the columns that ``table`` shows in ``cells``, for notes that explain columns."""
    columns = in_tables(columns)
    natural = _with_empty_columns(columns, natural_widths(columns, rows), cells)
    return frozenset(columns[i].key for i in _fitting_columns(columns, natural, cells))


def _with_empty_columns(
    columns: Sequence[Column[Row]], natural: Sequence[int], cells: int, *, hide_empty: bool = False
) -> Sequence[int]:
    """Return the widths with those of columns without any value, unless these are to be left out."""
    with_empty = [max(size, width(column.title), 1) for column, size in zip(columns, natural, strict=True)]
    return with_empty if not hide_empty and (_fits(with_empty, cells) or not any(natural)) else natural


def _fits(widths: Sequence[int], cells: int) -> bool:
    return sum(widths) + _GAP * (len(widths) - 1) <= cells


def _width_of_value(text: str) -> int:
    return 0 if text == NOT_MEASURED else width(text)


def natural_widths(columns: Sequence[Column[Row]], rows: Iterable[Row]) -> list[int]:
    """Return the width that each column would like to have for these rows; 0 for one without any value."""
    natural = [0] * len(columns)
    for row in rows:
        natural = [max(size, _width_of_value(cell(column, row))) for size, column in zip(natural, columns, strict=True)]
    return with_titles(columns, natural)


def with_titles(columns: Sequence[Column[Row]], natural: Sequence[int]) -> list[int]:
    """Widths of values, made wide enough for the titles; 0 stays: the column is left out."""
    return [size and max(size, width(column.title)) for column, size in zip(columns, natural, strict=True)]


def _texts(columns: Sequence[Column[Row]], rows: Iterable[Row]) -> Iterator[list[str]]:
    """Return the cells of each row."""
    return ([cell(column, row) for column in columns] for row in rows)


def layout(columns: Sequence[Column[Row]], natural: Sequence[int], cells: int) -> list[tuple[Column[Row], int]]:
    """The columns of a table that fit in ``cells`` with their widths; ``natural`` is what each would like to have."""
    fitting = _fitting_columns(columns, natural, cells)
    widths = _widths(columns, natural, fitting, cells)
    return [(columns[i], widths[i]) for i in fitting]


def fitted_cell(column: Column[Row], row: Row, cells: int) -> str:
    """Return the text of a row's cell in exactly ``cells`` cells."""
    return _cell_text(column, cell(column, row), cells)


def _line(texts: list[str], cells: int) -> str:
    return clip((" " * _GAP).join(texts).rstrip(), cells)


def cell(column: Column[Row], row: Row) -> str:
    """Return the text of a row's cell, safe to print with any content of the trace."""
    return printable(column.text(row)) if column.text is not None else ""


def _cell_text(column: Column[Row], text: str, cells: int) -> str:
    is_number = column.narrow is None and column.right
    return pad(text if is_number else _shorten_cached(column.shorten, text, cells), cells, right=column.right)


@lru_cache(maxsize=16384)
def _shorten_cached(shorten: Callable[[str, int], str], text: str, cells: int) -> str:
    """Remembered, since the columns that may be cut hold the names of the same kernels again and again."""
    return shorten(text, cells)


def _min_width(column: Column[Row], natural: int) -> int:
    return natural if column.narrow is None else min(natural, max(column.narrow, width(column.title)))


def _fitting_columns(columns: Sequence[Column[Row]], natural: Sequence[int], cells: int) -> list[int]:
    """Return the positions of the columns that are kept."""
    indices = [i for i in range(len(columns)) if natural[i] or not any(natural)]
    while sum(_min_width(columns[i], natural[i]) + _GAP for i in indices) - _GAP > cells:
        last_column = max(indices, key=lambda i: (columns[i].rank, i))
        if columns[last_column].rank == 0:
            break
        indices.remove(last_column)
    return _with_readable_columns(columns, natural, indices, cells)


def _with_readable_columns(
    columns: Sequence[Column[Row]], natural: Sequence[int], indices: list[int], cells: int
) -> list[int]:
    """Return the positions without columns of a high rank that keep another from being readable."""
    minor = sorted((i for i in indices if columns[i].rank >= _MINOR_RANK), key=lambda i: (columns[i].rank, i))
    while minor:
        widths = _widths(columns, natural, indices, cells)
        if all(widths[i] >= _readable_width(columns[i], natural[i], cells) for i in indices if i not in minor):
            break
        indices = [i for i in indices if i != minor[-1]]
        minor.pop()
    return indices


def _widths(
    columns: Sequence[Column[Row]], natural: Sequence[int], indices: Sequence[int], cells: int
) -> dict[int, int]:
    """The least widths, and what is left over for the columns that were cut: first until they are readable, then all,
    the lowest rank first; those of one rank share it.
    """
    widths = {i: _min_width(columns[i], natural[i]) for i in indices}
    free_cells = cells - sum(widths.values()) - _GAP * (len(indices) - 1)
    if free_cells < 0:
        return _narrow_texts(columns, widths, -free_cells)
    readable = {i: max(widths[i], _readable_width(columns[i], natural[i], cells)) for i in indices}
    for goals in (readable, {i: natural[i] for i in indices}):
        for _, rank_columns in groupby(sorted(indices, key=lambda i: columns[i].rank), key=lambda i: columns[i].rank):
            free_cells = _widen_columns(free_cells, widths, {i: goals[i] for i in rank_columns})
    return widths


def _narrow_texts(columns: Sequence[Column[Row]], widths: dict[int, int], excess: int) -> dict[int, int]:
    """Return the widths less ``excess``, taken from the widest columns of text; columns of numbers keep theirs."""
    texts = [i for i in widths if not columns[i].right]
    for _ in range(excess):
        column = max(texts, key=lambda i: widths[i], default=None)
        if column is None or widths[column] <= _MIN_TEXT_CELLS:
            break
        widths[column] -= 1
    return widths


def _widen_columns(free_cells: int, widths: dict[int, int], goals: Mapping[int, int]) -> int:
    """Widen columns up to what each wants; returns what is left over."""
    columns = sorted(goals, key=lambda i: goals[i] - widths[i])  # what one leaves is for those that want more
    for place, i in enumerate(columns):
        share = max(free_cells, 0) // (len(columns) - place)
        growth = min(share, goals[i] - widths[i])
        widths[i] += growth
        free_cells -= growth
    return free_cells


def _readable_width(column: Column[Row], natural: int, cells: int) -> int:
    return min(natural, int(column.readable * cells))


def as_record(columns: Sequence[Column[Row]], row: Row) -> dict[str, Any]:
    """Return the data of a row by key; None is not measured."""
    return {column.key: column.value(row) for column in columns if column.value is not None and column.data}


def as_json(head: dict[str, Any], key: str, records: Iterable[dict[str, Any]]) -> Iterator[str]:
    """Yield a document of the report schema, one line per record, in which ``key`` holds the records."""
    fields = {"schema": SCHEMA, "version": SCHEMA_VERSION, **head}
    yield "{"
    for name, value in fields.items():
        yield f"  {dump_json(name)}: {dump_json(value)},"
    yield f"  {dump_json(key)}: ["
    previous: str | None = None
    for record in records:
        if previous is not None:
            yield f"    {previous},"
        previous = dump_json(record)
    if previous is not None:
        yield f"    {previous}"
    yield "  ]"
    yield "}"


def as_markdown(columns: Sequence[Column[Row]], rows: Iterable[Row]) -> Iterator[str]:
    """Yield a Markdown table of the columns that tables show, none of them cut or left out."""
    columns = in_tables(columns)
    yield _markdown_line([column.title for column in columns])
    yield _markdown_line(["--:" if column.right else ":--" for column in columns])
    for row in rows:
        yield _markdown_line([_escape_markdown(cell(column, row)) for column in columns])


def fenced(lines: Iterable[str]) -> list[str]:
    """Lines as a block of Markdown that shows them as they are; its fence is longer than any row of backticks there."""
    text = list(lines)
    fence_length = max((len(backticks) for line in text for backticks in _BACKTICKS.findall(line)), default=0)
    fence = "`" * max(3, fence_length + 1)
    return [f"{fence}text", *text, fence]


def _markdown_line(cells: list[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _escape_markdown(text: str) -> str:
    """Text that Markdown shows as it is; names in C++ are full of its signs."""
    return _ENTITY.sub(r"\\&", "".join("\\" + sign if sign in "\\|*_<>`[]~#" else sign for sign in text))
