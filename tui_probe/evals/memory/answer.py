"""The answer: original and probe memory by model and probe."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from tui_probe.draw import units
from tui_probe.draw.bar_chart import Bar, BarChart
from tui_probe.draw.table import Column
from tui_probe.draw.units import NOT_MEASURED
from tui_probe.evals.answer import Answer, Table
from tui_probe.evals.opening import nothing_measured
from tui_probe.evals.published import compared

from .sizes import COUNTED, PROBED, sizes_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from tui_probe.draw.view import Progress
    from tui_probe.evals.given import Given

    from .sizes import Sizes

NAME: Final = "memory"


@dataclass(frozen=True, slots=True)
class Row:
    """A model with a probe: the most of all its parts. Bytes; None is not known."""

    model: str
    probe: str
    parts: tuple[Sizes, ...]

    @property
    def original(self) -> int | None:
        return _most(part.original for part in self.parts)

    @property
    def said(self) -> bool:
        return all(part.said for part in self.parts)

    @property
    def probe_bytes(self) -> int | None:
        return _most(part.probe_bytes for part in self.parts)

    @property
    def device_bytes(self) -> int | None:
        return _most(part.device_bytes for part in self.parts)

    @property
    def ratio(self) -> float | None:
        """Probe memory in parts of the program's own."""
        return None if not self.original or self.probe_bytes is None else self.probe_bytes / self.original

    @property
    def how(self) -> str | None:
        found = {part.how for part in self.parts if part.how is not None}
        return ", ".join(sorted(found)) or None

    @property
    def kernels(self) -> tuple[int, int]:
        """Those with a size, and all."""
        return sum(part.kernels for part in self.parts), sum(part.all_kernels for part in self.parts)


def _most(values: Iterable[int | None]) -> int | None:
    return max((value for value in values if value is not None), default=None)


def answer(given: Sequence[Given], progress: Progress) -> Answer:
    """A row for each model and probe, in the order of the traces. TraceError if no trace has any size."""
    found: dict[tuple[str, str], list[Sizes]] = {}
    notes = []
    for place, one in enumerate(given):
        progress(place / len(given))
        every = sizes_of(one)
        notes += [] if every else [f"{one.path}: it is no trace of a probe"]
        for sizes in every:
            found.setdefault((sizes.model, sizes.probe), []).append(sizes)
            if not sizes.kernels:
                notes.append(f"{one.path}: no launch has a size for {sizes.probe}: run with --memusage")
    rows = [Row(model, probe, tuple(parts)) for (model, probe), parts in found.items()]
    if not any(row.probe_bytes is not None for row in rows):
        raise nothing_measured(NAME, notes)
    return Answer(
        said=list(_said(rows)),
        tables={"memory": Table("maximum memory", COLUMNS, rows)},
        drawings={"memory": _chart(rows)},
        compared=compared(NAME),
        notes=[*notes, *_doubts(rows)],
    )


def _said(rows: Sequence[Row]) -> Iterator[str]:
    for probe in dict.fromkeys(row.probe for row in rows):
        known = [row for row in rows if row.probe == probe and row.ratio is not None]
        if known:
            worst = max(known, key=lambda row: row.ratio or 0.0)
            words = f"{probe}: {_times(worst.ratio)} of the memory of {worst.model} ({units.size(worst.probe_bytes)})"
            least = min(known, key=lambda row: row.ratio or 0.0)
            yield words if least is worst else f"{words}, at least {_times(least.ratio)} ({least.model})"


def _doubts(rows: Sequence[Row]) -> Iterator[str]:
    for row in rows:
        name = f"{row.model} {row.probe}"
        sized, every = row.kernels
        if 0 < sized < every:
            yield f"{name}: {every - sized} of {units.counted(every, 'kernel')} have no probe, and no size"
        if row.how is not None and PROBED in row.how:
            yield f"{name}: of probed launches, whose budgets may have left records out; run with --memusage for all"
        if row.original is not None and not row.said:
            yield f"{name}: the program did not say its memory; the original is the peak of its allocations"


def _chart(rows: Sequence[Row]) -> BarChart:
    bars = [Bar(f"{row.model} {row.probe}", (row.original, row.probe_bytes), _times(row.ratio)) for row in rows]
    return BarChart("maximum memory", bars, ("original", "probe"), "bytes", units.size)


def _times(ratio: float | None) -> str:
    if ratio is None:
        return NOT_MEASURED
    return f"{ratio:.2f}×" if ratio >= 0.01 else f"{ratio:.2g}×"


def _how(row: Row) -> str:
    return f"{row.how}, kept none" if row.how == COUNTED else row.how or NOT_MEASURED


COLUMNS: Final[tuple[Column[Row], ...]] = (
    Column("model", lambda r: r.model, "model", lambda r: r.model, False, narrow=12),
    Column("probe", lambda r: r.probe, "probe", lambda r: r.probe, False),
    Column("original", lambda r: r.original, "original", lambda r: units.size(r.original)),
    Column("probe_bytes", lambda r: r.probe_bytes, "probe", lambda r: units.size(r.probe_bytes)),
    Column("ratio", lambda r: r.ratio, "probe/original", lambda r: _times(r.ratio)),
    Column("device_bytes", lambda r: r.device_bytes, "on device", lambda r: units.size(r.device_bytes), rank=2),
    Column("how", lambda r: r.how, "how", _how, False, 1),
    Column("kernels_sized", lambda r: r.kernels[0]),
    Column("kernels", lambda r: r.kernels[1], "kernels", lambda r: f"{r.kernels[0]} of {r.kernels[1]}", rank=3),
)
