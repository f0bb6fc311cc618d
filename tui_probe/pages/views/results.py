"""What a probe measured of each launch of a kernel, as a table: for every probe, known here or not."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from tui_probe.draw.table import safe
from tui_probe.draw.view import Document
from tui_probe.pages.views.own_values import OwnResults
from tui_probe.probekit.count_table import CountTable
from tui_probe.probekit.kind import Kind
from tui_probe.probekit.measured import UNKNOWN, probe_of
from tui_probe.probekit.missing import not_known

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tui_probe.draw.spans import Line
    from tui_probe.draw.view import Progress
    from tui_probe.probekit.kind import Source


def _missing(source: Source) -> str | None:
    kernel, launch = source.kernel, source.launch
    if kernel.status in ("skipped", "failed", "excluded"):
        return f"the kernel was not probed: {kernel.reason or kernel.status}"
    if launch is not None and launch.result is None:
        return f"launch {launch.number} has no result: {launch.reason or 'it was not saved'}"
    return None if kernel.result_rows else "no result was saved yet"


class SeveralTables(Document):
    """What each of several probes measured, a table for each."""

    def __init__(self, tables: Sequence[tuple[str, CountTable]]) -> None:
        self.title = tables[0][1].title
        self.tables = tables

    def lines(self, width: int) -> Sequence[Line]:
        """The tables, the name of its probe above each."""
        found: list[Line] = []
        for probe, table in self.tables:
            found += [*([()] if found else []), ((f"-p {safe(probe)}", "head"),), *table.lines(width)]
        return found

    def record(self) -> dict[str, Any]:
        """Every launch with all figures, by the probe."""
        return {"probes": [{"probe": probe, **table.record()} for probe, table in self.tables]}

    def cells(self) -> Iterator[Sequence[object]]:
        """One row per launch; what its probe does not count is None."""
        rows = [dict(zip(keys, row, strict=True)) for _, table in self.tables for keys, row in _rows(table)]
        columns = list(dict.fromkeys(key for row in rows for key in row))
        yield columns
        for row in rows:
            yield [row.get(key) for key in columns]


def _rows(table: CountTable) -> Iterator[tuple[Sequence[Any], Sequence[object]]]:
    keys, *rows = table.cells()
    return ((keys, row) for row in rows)


def _open(source: Source, progress: Progress) -> CountTable | SeveralTables:
    probed = [one for one in source.kernel.by_probe() if one.probe and one.result_rows]
    if source.launch is None and len(probed) > 1:
        return SeveralTables([(one.probe or "", _table(replace(source, kernel=one), progress)) for one in probed])
    return _table(source, progress)


def _table(source: Source, progress: Progress) -> CountTable:
    notes = [note for one in source.kernel.by_probe() if (note := not_known(one)) is not None]
    if probe_of(source.kernel) is UNKNOWN:
        return OwnResults(source, progress, notes)
    return CountTable(source, "Results", progress, notes)


KIND: Final = Kind(
    "results",
    "Results",
    "what the probe measured of each launch, whatever the probe",
    _missing,
    _open,
    explanation=(
        "One row per launch, one column per figure. Of a probe that is not installed, each map is shown by itself: how"
        " many records it kept, and least, median and most of each field, or its sum where lanes add to it. Below the"
        " table are the values of one launch: how they are spread, and which warps or threads have most.",
    ),
    order=95,
    short="Res",
    grows=True,
)
