"""The answer: sectors expected and counted, and the critical kernel of each program with its data type."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar

from tui_probe.draw import units
from tui_probe.draw.bar_chart import Bar, BarChart
from tui_probe.draw.shorten import shorten
from tui_probe.draw.table import Column
from tui_probe.evals.answer import Answer, Table
from tui_probe.evals.opening import nothing_measured
from tui_probe.evals.published import compared
from tui_probe.nsight.analysis.kernel_figures import COUNTED
from tui_probe.nsight.pages.critical_rows import columns_of
from tui_probe.nsight.pages.sectors_page import SECTOR_COLUMNS

from .collect import PROBE, STORES
from .programs import Program, programs_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tui_probe.draw.view import Progress
    from tui_probe.evals.given import Given
    from tui_probe.nsight.pages.sectors_page import SectorRow

NAME: Final = "critical"
_LEFT_OUT: Final = ("program", "origin", "grid", "block")
"""Columns of the pages that say what the program's name says, or little."""
Row = TypeVar("Row")


@dataclass(frozen=True, slots=True)
class Of(Generic[Row]):
    """A row of a page, and the program that it is of."""

    program: Program
    row: Row


def answer(given: Sequence[Given], progress: Progress) -> Answer:
    """All programs, each by its files and traces. TraceError if none has any count."""
    programs = programs_of(given)
    for place, program in enumerate(programs):
        progress(place / len(programs))
        program.read()
    notes = [words for program in programs for words in program.notes]
    sectors = [Of(program, row) for program in programs for row in program.sectors]
    if not any(getattr(each.row.figures, name) is not None for each in sectors for name in COUNTED):
        raise nothing_measured(NAME, [*notes, f"nothing was counted: run with -p {PROBE}, or ncu"])
    kernels = [Of(program, row) for program in programs for row in program.kernels]
    return Answer(
        said=[*map(_said, programs), *(words for program in programs if program.critical for words in program.found)],
        tables={
            "sectors": Table("sectors, expected and counted", [_NAME, _EXPECTED, *_of(SECTOR_COLUMNS)], sectors),
            "critical": Table(
                "critical kernels", [_NAME, *_of(columns_of([each.row for each in kernels], several=True))], kernels
            ),
        },
        drawings={"sectors": _chart(sectors)},
        compared=compared(NAME, **_ours(programs)),
        notes=notes,
    )


def _said(program: Program) -> str:
    """The critical kernel, its type, and whether it stores what it should."""
    found = program.critical
    if found is None:
        return f"{program.name}: no kernel stands out"
    words = f"{program.name}: critical is {shorten(found.shape.kernel, 48)}"
    if program.data_type is not None:
        words += f", {program.data_type}"
    if program.tensor is not None and found.store_sectors is not None:
        words += (
            f"; stored {units.count(round(found.store_sectors))} sectors,"
            f" expected {units.count(program.tensor.sectors)}"
            if program.stores_counted
            else "; how many sectors it stored is not known"
        )
    return words


def _of(columns: Sequence[Column[Any]]) -> list[Column[Of[Any]]]:
    """The columns of a page, for rows that name their program."""
    return [_inside(column) for column in columns if column.key not in _LEFT_OUT]


def _inside(column: Column[Any]) -> Column[Of[Any]]:
    value, text = column.value, column.text
    return replace(
        column,
        value=None if value is None else lambda of: value(of.row),
        text=None if text is None else lambda of: text(of.row),
    )


def _expected(of: Of[SectorRow]) -> int | None:
    return None if of.row.tensor is None else of.row.tensor.sectors


_NAME: Final[Column[Of[Any]]] = Column(
    "program", lambda of: of.program.name, "program", lambda of: of.program.name, False, narrow=10
)
_EXPECTED: Final[Column[Of[SectorRow]]] = Column(
    "expected_sectors", _expected, "expected", lambda of: units.count(_expected(of)), rank=1
)


def _chart(rows: Sequence[Of[SectorRow]]) -> BarChart:
    """Sectors per store request: 4 are coalesced stores of 4 bytes."""
    bars = [
        Bar(f"{of.program.name} {shorten(of.row.figures.shape.kernel, 24)} ({of.row.figures.tool})",
            (of.row.figures.sectors_per_store,))
        for of in rows
        if of.row.figures.store_requests
    ]  # fmt: skip
    return BarChart("sectors per store request", bars, ("sectors per request",), "sectors", lambda n: f"{n:.2f}")


def _ours(programs: Sequence[Program]) -> dict[str, float | None]:
    """Ours of what was published; by ncu where both counted."""
    ours: dict[str, float | None] = {}
    for program in programs:
        if program.name == STORES:
            for row in reversed(program.sectors):
                kind = row.figures.shape.kernel.partition("_")[0]
                if kind in ("coalesced", "strided"):
                    ours[f"{kind}_requests"] = row.figures.store_requests
                    ours[f"{kind}_sectors"] = row.figures.store_sectors
        elif program.tensor is not None and program.critical is not None and program.stores_counted:
            ours[f"{program.name}_requests"] = program.critical.store_requests
            ours[f"{program.name}_sectors"] = program.critical.store_sectors
    return ours
