"""What a probe of one's own recorded in a launch, field by field: how values are spread, which warps have most."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from tui_probe.analysis.distribution import distribution
from tui_probe.draw import units
from tui_probe.draw.spans import pad
from tui_probe.errors import TraceError
from tui_probe.probekit import probe_results
from tui_probe.probekit.count_table import CountTable
from tui_probe.probekit.distributions import distribution_head, distribution_row
from tui_probe.probekit.own_probe import LARGEST
from tui_probe.probekit.own_probes import own_maps

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from tui_probe.draw.spans import Line
    from tui_probe.draw.view import Progress
    from tui_probe.probekit.kind import Source
    from tui_probe.probekit.own_probe import OwnMap
    from tui_probe.trace.results import Result

BINS: Final = 10
MOST: Final = 10
"""Slots that are shown, those with the largest values."""
_BAR: Final = 40


@dataclass(frozen=True, slots=True)
class Values:
    """The values of a field of a map (u8), one per record, with the block and the warp or thread of each (i8)."""

    map: str
    field: str
    level: str
    values: NDArray[np.uint64]
    blocks: NDArray[np.int64]
    slots: NDArray[np.int64]

    @property
    def largest(self) -> list[tuple[int, int, int]]:
        """Block, warp or thread, and value, the largest first."""
        order = np.argsort(self.values, kind="stable")[::-1][:MOST]
        return [(int(self.blocks[at]), int(self.slots[at]), int(self.values[at])) for at in order]

    def histogram(self) -> list[tuple[float, float, int]]:
        """From, to, and how many values; fewer bins where there are fewer whole numbers."""
        low, high = float(self.values.min()), float(self.values.max())
        bins = max(1, min(BINS, int(high - low) + 1))
        counts, edges = np.histogram(self.values.astype(np.float64), bins=bins, range=(low, max(high, low + 1)))
        return [(float(a), float(b), int(n)) for a, b, n in zip(edges[:-1], edges[1:], counts, strict=True)]

    def record(self) -> dict[str, Any]:
        """As data."""
        found = distribution(self.values.astype(np.float64))
        return {
            "map": self.map,
            "field": self.field,
            "count": len(self.values),
            "least": int(self.values.min()),
            "median": None if found is None else found.median,
            "most": int(self.values.max()),
            "histogram": [{"from": low, "to": high, "count": number} for low, high, number in self.histogram()],
            "largest": [{"block": b, self.level: s, "value": v} for b, s, v in self.largest],
        }


def values_of(result: Result, maps: Sequence[OwnMap]) -> Iterator[Values]:
    """Those of each field of which all records were kept; TraceError for a file of another probe."""
    place = 0
    for own in maps:
        if place >= len(result.maps):
            return
        yield from _of_map(result, place, own)
        place += 1 if result.attempts(place) is None else 2


def _of_map(result: Result, place: int, own: OwnMap) -> Iterator[Values]:
    if result.group(place) is not None or result.sites(place, own.record) is not None:
        return
    records = result.records(place, own.record)
    if records.nbytes > LARGEST:
        return
    written = np.ones(records.shape, dtype=np.bool_) if own.sums else result.written(place)
    if written is None or not written.any():
        return
    block, slot = np.nonzero(written)[:2]
    level = result.sections[place].level
    numbers = np.asarray(result.blocks, dtype=np.int64)[block]
    for name in own.record.names or ():
        yield Values(own.name, name, level, records[name][written].astype(np.uint64), numbers, slot)


class OwnResults(CountTable):
    """The table of launches, and below it what the newest, or the one at hand, recorded."""

    def __init__(self, source: Source, progress: Progress, notes: Sequence[str]) -> None:
        super().__init__(source, "Results", progress, notes)
        self.values: list[Values] = []
        try:
            found = probe_results.read(source)
            kernel = found.kernel
            maps = () if kernel.matched_nothing else own_maps(kernel.trace.directory, kernel.probe)
            self.values = list(values_of(found.result, maps))
            self.which = found.which
        except (TraceError, OSError):
            self.which = ""

    def lines(self, width: int) -> Sequence[Line]:
        """The table, then a section for each field."""
        lines = [*super().lines(width)]
        for each in self.values:
            lines += [(), *_section(each, self.which, width)]
        return lines

    def record(self) -> dict[str, Any]:
        """With the values of each field."""
        return {**super().record(), "values": [each.record() for each in self.values]}


def _section(values: Values, which: str, width: int) -> Iterator[Line]:
    yield ((f" {values.map}.{values.field} of {which}", "title"),)
    found = distribution(values.values.astype(np.float64))
    if found is not None:
        yield ((" ", ""), *distribution_head(f"{units.counted(len(values.values), 'value')}"))
        yield ((" ", ""), *distribution_row("", found, _short))
    rows = values.histogram()
    most = max(number for *_, number in rows)
    cells = min(_BAR, max(width - 34, 4))
    for low, high, number in rows:
        bar = "█" * round(cells * number / most) or ("▏" if number else "")
        yield ((f" {_short(low):>8} – {_short(high):<8} ", "dim"), (f"{units.count(number):>8} ", ""), (bar, "accent"))
    titles = (("block", 10), (values.level, 10), ("value", 14))
    yield ((" " + "".join(pad(title, cells, right=True) for title, cells in titles), "head"),)
    for block, slot, value in values.largest:
        yield ((f" {block:>10}{slot:>10}{units.count(value):>14}", ""),)


def _short(value: float) -> str:
    """At most 8 characters."""
    return units.count(round(value)) if abs(value) < 1e6 else f"{value:.3g}"
