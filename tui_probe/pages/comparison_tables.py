"""The tables of a comparison: one of kernels, and one per kernel of the figures that changed."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from tui_probe.draw import units
from tui_probe.draw.shorten import cut_middle, shorten
from tui_probe.draw.spans import pad, wrap
from tui_probe.draw.spans import width as cells_of
from tui_probe.draw.table import Column, cell, fitted_cell, in_tables, layout
from tui_probe.pages.changes import FIGURE_COLUMNS, Change, Pair

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from typing import TypeVar

    from tui_probe.draw.spans import Line
    from tui_probe.pages.figures import Figure
    from tui_probe.trace.model import Kernel
    from tui_probe.trace.shapes import Dim3

    Row = TypeVar("Row")

_GAP: Final = 2
_NARROWEST: Final = 12
"""Cells that a name has at least."""
_TIED: Final = "\u00a0"
_ROLES: Final = {"better": "good", "worse": "warn", "mixed": "warn"}


def _lead(pair: Pair, text: Callable[[Change], str]) -> str:
    return "" if pair.lead is None else text(pair.lead)


OVERVIEW_COLUMNS: Final[tuple[Column[Pair], ...]] = (
    Column("kernel", None, "kernel", lambda p: p.kernel, False, narrow=14, shorten=shorten),
    Column("grid", None, "grid", lambda p: p.launched[0], rank=2),
    Column("block", None, "block", lambda p: p.launched[1], rank=3),
    Column("figure", None, "figure", lambda p: _lead(p, lambda c: c.before.label), False, narrow=12),
    Column("before", None, "A", lambda p: _lead(p, lambda c: c.before.text), rank=1),
    Column("after", None, "B", lambda p: _lead(p, lambda c: c.after.text), rank=1),
    Column("change", None, "change", lambda p: _lead(p, lambda c: c.change_text), rank=4),
    Column("share", None, "", lambda p: _lead(p, lambda c: c.share_text)),
    Column("verdict", None, "", lambda p: p.verdict, False),
)
"""One line per kernel: the figure that it is judged by."""


def differing(pair: Pair) -> list[Change]:
    """The rows of the table of a pair."""
    return [each for each in pair.changes if each.change]


def above_rows(pair: Pair) -> int:
    """The lines above those rows: a blank one, the name if there is one, headings."""
    return 3 if pair.name else 2


def with_names(cut: Callable[[str, int], str]) -> Sequence[Column[Pair]]:
    """The columns of the table of kernels, with names shortened so."""
    return [replace(each, shorten=cut) if each.key == "kernel" else each for each in OVERVIEW_COLUMNS]


def _heading(pair: Pair, cells: int, cut: Callable[[str, int], str]) -> str:
    """Index, name, grid and block in so many cells: only the name is shortened."""
    index, shape = f"#{pair.index} ", ", grid {}, block {}".format(*pair.launched)
    room = cells - cells_of(index) - cells_of(shape)
    return cut_middle(index + cut(pair.kernel, max(room, _NARROWEST)) + shape, cells)


def details(pair: Pair, width: int, cut: Callable[[str, int], str]) -> Iterator[Line]:
    """The figures that changed, in a table; those that did not, or that one side alone has, in sentences."""
    differ = differing(pair)
    same = [each.before for each in pair.changes if each.change == 0]
    alone = [each for each in pair.changes if each.change is None]
    before = [each.before for each in alone if each.before.value is not None]
    after = [each.after for each in alone if each.after.value is not None]
    if pair.name and not (differ or before or after):
        return
    yield ()
    if pair.name:
        yield ((f" {_heading(pair, width - 2, cut)}", "title"),)
    spread = any(each.before.spread is not None or each.after.spread is not None for each in differ)
    shown = [column for column in FIGURE_COLUMNS if spread or column.key != "spread"]
    yield from table(shown, differ, width, lambda change: change.verdict) if differ else ()
    for head, figures in (("same", same), ("A alone", before), ("B alone", after)):
        yield from _listed(head, figures, width)


def _listed(head: str, figures: Sequence[Figure], width: int) -> Iterator[Line]:
    """Figures and their values one after another."""
    words = f"{_TIED}· ".join(f"{each.label} {each.text}".replace(" ", _TIED) for each in figures)
    for number, line in enumerate(wrapped(words, width - len(head) - 4) if figures else ()):
        yield ((" " * (len(head) + 2) if number else f" {head} ", "head"), (f" {line}", "dim"))


def wrapped(text: str, cells: int) -> list[str]:
    """Lines, broken neither within a number nor before its unit."""
    tied = re.sub(r"(?<=\d) (?=[\d%])", _TIED, text)
    return [line.replace(_TIED, " ") for line in wrap(tied, cells)]


def table(
    columns: Sequence[Column[Row]], rows: Sequence[Row], cells: int, judge: Callable[[Row], str]
) -> Iterator[Line]:
    """Headings and rows in so many cells; ``judge`` says which verdict colours a row."""
    shown = in_tables(columns)
    natural = [max(cells_of(column.title), *(cells_of(cell(column, row)) for row in rows)) for column in shown]
    fitted = layout(shown, natural, cells - 1)
    gap = " " * _GAP
    yield ((" " + gap.join(pad(column.title, size, right=column.right) for column, size in fitted), "head"),)
    for row in rows:
        role = _ROLES.get(judge(row), "")
        roles = {"figure": "dim", "change": role or "dim", "share": role or "dim", "verdict": role}
        spans = [(" ", "")]
        for column, size in fitted:
            spans += [(fitted_cell(column, row, size), roles.get(column.key, "")), (gap, "")]
        yield tuple(spans)


def shape_words(grid: Dim3 | None, block: Dim3 | None) -> str:
    """Grid and block, behind a name; "" where they are not known."""
    return "" if grid is None or block is None else f", grid {units.extent(grid)}, block {units.extent(block)}"


def alone_line(kernel: Kernel, cells: int) -> Line:
    """A kernel that one trace alone has."""
    shape = shape_words(kernel.grid, kernel.block)
    return ((f"   {shorten(kernel.demangled, max(cells - 4 - cells_of(shape), _NARROWEST))}", ""), (shape, "dim"))
