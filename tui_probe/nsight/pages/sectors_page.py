"""Requests and sectors of kernels, from ncu and from probes side by side, against those of a tensor."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import PurePath
from typing import TYPE_CHECKING, Any, Final

from tui_probe.draw import units
from tui_probe.draw.shorten import cut_middle, shorten
from tui_probe.draw.table import Column
from tui_probe.nsight.analysis.kernel_figures import COUNTED, KernelFigures, counts_that_differ, figures_of
from tui_probe.nsight.analysis.kernel_names import matched
from tui_probe.nsight.analysis.sectors import SECTOR, Tensor, Verdict, verdict_of
from tui_probe.nsight.pages.explanations import EXPLANATIONS
from tui_probe.nsight.pages.figures import decimal, mean_count, stem
from tui_probe.pages.table_page import TablePage, Words
from tui_probe.probekit.quantities import measured_with

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tui_probe.nsight.importers.ncu_table import NcuTable

_VERDICTS: Final[dict[Verdict, str]] = {
    "equal": "equal",
    "with row sums": "with row sums",
    "within": "{ratio:.2f} ×",
    "below": "{ratio:.2f} ×, not all of it",
    "above": "{ratio:.2f} ×, above one sector per element",
}


@dataclass(frozen=True, slots=True)
class SectorRow:
    """A kernel as one tool saw it; ``other`` is the same kernel as the other tool saw it."""

    figures: KernelFigures
    other: KernelFigures | None
    tensor: Tensor | None

    @property
    def verdict(self) -> Verdict | None:
        return verdict_of(self.figures.store_sectors, self.tensor)

    @property
    def differences(self) -> list[str] | None:
        """The counts in which the two tools differ; None where there is nothing to compare."""
        return None if self.other is None else counts_that_differ(self.figures, self.other)


def pairs_of(
    table: NcuTable | None, probed: Sequence[KernelFigures]
) -> list[tuple[KernelFigures | None, KernelFigures | None]]:
    """Kernels of ncu's files beside those of traces."""
    return matched([] if table is None else figures_of(table), probed, lambda figures: figures.shape)


def sector_rows(table: NcuTable | None, probed: Sequence[KernelFigures], tensor: Tensor | None) -> list[SectorRow]:
    """One row per kernel and tool, the two tools one below the other."""
    rows = []
    for ncu, probes in pairs_of(table, probed):
        rows += [SectorRow(ncu, probes, tensor)] if ncu is not None else []
        rows += [SectorRow(probes, ncu, tensor)] if probes is not None else []
    return rows


def sectors_page(
    table: NcuTable | None,
    head: Sequence[tuple[str, str]],
    notes: Sequence[str] = (),
    probed: Sequence[KernelFigures] = (),
    tensor: Tensor | None = None,
) -> TablePage[SectorRow]:
    """Means a launch of every kernel."""
    rows = sector_rows(table, probed, tensor)
    words = Words(head, _expectation(tensor), [*_notes(rows), *notes], EXPLANATIONS["sectors"])
    extra: dict[str, Any] = {
        "expected_sectors": None if tensor is None else tensor.sectors,
        "most_sectors": None if tensor is None else tensor.elements,
    }
    several = len({row.figures.origin for row in rows}) > 1
    tools = {row.figures.tool for row in rows}
    empty = {"origin": not several, "tool": len(tools) < 2, "said": not any(map(_words, rows))}
    columns = [replace(column, text=None) if empty.get(column.key) else column for column in SECTOR_COLUMNS]
    return TablePage("sectors", "Requests and sectors", columns, rows, words, extra)


def _expectation(tensor: Tensor | None) -> list[str]:
    if tensor is None:
        return []
    size = f"{tensor.batch} × {tensor.heads} × {tensor.length} × {tensor.width} {tensor.dtype}"
    with_sums = tensor.sectors_with_row_sums
    sums = "" if with_sums is None else f" {units.count(with_sums)} with row sums,"
    return [
        f"expected stores of {size}: {units.count(tensor.sectors)} sectors of {SECTOR} B,{sums}"
        f" {units.count(tensor.elements)} at most"
    ]


def _notes(rows: Sequence[SectorRow]) -> Iterator[str]:
    if rows and all(getattr(row.figures, name) is None for row in rows for name in COUNTED):
        yield f"nothing was counted: collect with ncu --metrics {','.join(COUNTED.values())}"
        probe = measured_with("load sectors")
        yield f"or count without permission: tui-probe run {probe} -- COMMAND, then name its trace with --trace"


def _words(row: SectorRow) -> str:
    words = []
    if row.verdict is not None and row.tensor is not None:
        ratio = (row.figures.store_sectors or 0) / row.tensor.sectors
        words.append(_VERDICTS[row.verdict].format(ratio=ratio))
    differences = row.differences
    if differences is not None and row.other is not None:
        said = [f"{name.replace('_', ' ')} differ from {row.other.tool}" for name in differences]
        words.append(", ".join(said) if said else f"= {row.other.tool}")
    return "; ".join(words)


def _file(row: SectorRow) -> str:
    return stem(PurePath(row.figures.origin).name)


def _counted(title: str, name: str, rank: int) -> Column[SectorRow]:
    return Column(
        name, lambda r: getattr(r.figures, name), title, lambda r: mean_count(getattr(r.figures, name)), rank=rank
    )


SECTOR_COLUMNS: Final[tuple[Column[SectorRow], ...]] = (
    Column("tool", lambda r: r.figures.tool, "by", lambda r: r.figures.tool, False),
    Column("origin", lambda r: r.figures.origin, "file", _file, False, narrow=16, shorten=cut_middle),
    Column("grid", lambda r: r.figures.shape.grid, "grid", lambda r: units.extent(r.figures.shape.grid), rank=3),
    Column("block", lambda r: r.figures.shape.block, "block", lambda r: units.extent(r.figures.shape.block), rank=3),
    Column("launches", lambda r: r.figures.launches, "launches", lambda r: units.count(r.figures.launches), rank=4),
    _counted("load req.", "load_requests", 2),
    _counted("ld sectors", "load_sectors", 1),
    Column(
        "sectors_per_load", lambda r: r.figures.sectors_per_load, "per load",
        lambda r: decimal(r.figures.sectors_per_load),
    ),
    _counted("store req.", "store_requests", 2),
    _counted("st sectors", "store_sectors", 0),
    Column(
        "sectors_per_store", lambda r: r.figures.sectors_per_store, "per store",
        lambda r: decimal(r.figures.sectors_per_store),
    ),
    Column("verdict", lambda r: r.verdict),
    Column("differences", lambda r: r.differences, nested=True),
    Column("said", title="beside expected", text=_words, right=False, narrow=15),
    Column(
        "kernel", lambda r: r.figures.shape.kernel, "kernel", lambda r: r.figures.shape.kernel, False,
        narrow=16, shorten=shorten,
    ),
)  # fmt: skip
