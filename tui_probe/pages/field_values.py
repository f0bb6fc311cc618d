"""Values that a custom probe recorded: the histogram of each field of a map, and the slots with the largest values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from tui_probe.draw import units
from tui_probe.draw.spans import pad
from tui_probe.probekit.custom_probe import MAX_READ_BYTES, map_indices
from tui_probe.probekit.result_tables import distribution_head, distribution_row
from tui_probe.records.distribution import distribution

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from tui_probe.draw.spans import Line
    from tui_probe.probekit.custom_probe import CustomMap
    from tui_probe.trace.results import Result

HISTOGRAM_BINS: Final = 10
MAX_VALUES: Final = 10
"""Slots that are shown, those with the largest values."""
_BAR: Final = 40


@dataclass(frozen=True, slots=True)
class FieldValues:
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
        order = np.argsort(self.values, kind="stable")[::-1][:MAX_VALUES]
        return [(int(self.blocks[at]), int(self.slots[at]), int(self.values[at])) for at in order]

    def histogram(self) -> list[tuple[float, float, int]]:
        """Return start, end and count of each bin; fewer bins if there are fewer whole numbers."""
        low, high = float(self.values.min()), float(self.values.max())
        bins = max(1, min(HISTOGRAM_BINS, int(high - low) + 1))
        counts, edges = np.histogram(self.values.astype(np.float64), bins=bins, range=(low, max(high, low + 1)))
        return [(float(a), float(b), int(n)) for a, b, n in zip(edges[:-1], edges[1:], counts, strict=True)]

    def record(self) -> dict[str, Any]:
        """Return the JSON record."""
        spread = distribution(self.values.astype(np.float64))
        return {
            "map": self.map,
            "field": self.field,
            "count": len(self.values),
            "least": int(self.values.min()),
            "median": None if spread is None else spread.median,
            "most": int(self.values.max()),
            "histogram": [{"from": low, "to": high, "count": number} for low, high, number in self.histogram()],
            "largest": [{"block": b, self.level: s, "value": v} for b, s, v in self.largest],
        }


def field_values(result: Result, maps: Sequence[CustomMap]) -> Iterator[FieldValues]:
    """Values of each field whose records were all kept; TraceError for a file of another probe."""
    for index, custom_map in map_indices(result, maps):
        yield from _map_values(result, index, custom_map)


def _map_values(result: Result, index: int, custom_map: CustomMap) -> Iterator[FieldValues]:
    if result.group(index) is not None or result.sites(index, custom_map.record) is not None:
        return
    records = result.records(index, custom_map.record)
    if records.nbytes > MAX_READ_BYTES:
        return
    written = np.ones(records.shape, dtype=np.bool_) if custom_map.sums else result.written(index)
    if written is None or not written.any():
        return
    block, slot = np.nonzero(written)[:2]
    level = result.sections[index].level
    numbers = np.asarray(result.blocks, dtype=np.int64)[block]
    for name in custom_map.record.names or ():
        yield FieldValues(custom_map.name, name, level, records[name][written].astype(np.uint64), numbers, slot)


def field_lines(values: FieldValues, launch_text: str, width: int) -> Iterator[Line]:
    yield ((f" {values.map}.{values.field} of {launch_text}", "title"),)
    spread = distribution(values.values.astype(np.float64))
    if spread is not None:
        yield ((" ", ""), *distribution_head(f"{units.counted(len(values.values), 'value')}"))
        yield ((" ", ""), *distribution_row("", spread, _short))
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
    """Format a value in up to 8 characters."""
    return units.count(round(value)) if abs(value) < 1e6 else f"{value:.3g}"
