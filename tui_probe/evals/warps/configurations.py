"""Launch in one configuration of its blocks: lifetimes of blocks and warps, and their speed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from tui_probe.draw import units
from tui_probe.draw.table import Column
from tui_probe.draw.units import NOT_MEASURED
from tui_probe.probekit.registry import probe_named
from tui_probe.records.distribution import Distribution, distribution
from tui_probe.records.warp_pace import cycles_since_start

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from numpy.typing import NDArray

    from tui_probe.draw.view import Progress
    from tui_probe.evals.inputs import EvaluationInput
    from tui_probe.probekit.probe_results import ProbeResult
    from tui_probe.records.warp_pace import WarpProgress

LIFETIMES: Final = "block_sched"
PROGRESS: Final = "warp_progress"
_STEPS: Final = 32
"""Parts of the iterations over which speeds are averaged: of single iterations they would be noise."""


@dataclass(frozen=True, slots=True)
class Configuration:
    """One launch. ``cycles`` (i8, shape (blocks,)) are the elapsed cycles of blocks, ``blocks_per_sm`` is the maximum
    of blocks on an SM at a time, ``span`` the cycles from the first start to the last end, ``sms`` the number of SMs
    that ran blocks.
    """

    source: EvaluationInput
    result: ProbeResult
    cycles: NDArray[np.int64]
    blocks_per_sm: int
    span: int
    sms: int

    @property
    def label(self) -> str:
        return self.source.label

    @property
    def is_exclusive(self) -> bool:
        """True if no block shared its SM."""
        return self.blocks_per_sm == 1

    @property
    def kind(self) -> str:
        """``exclusive``, ``shared``; with a word where progress was recorded, which takes time of its own."""
        kind = "exclusive" if self.is_exclusive else "shared"
        return f"{kind}, progress" if self.result.probe == PROGRESS else kind

    @property
    def lengths(self) -> Distribution | None:
        return distribution(self.cycles)

    @property
    def spread(self) -> float | None:
        """(most - least) / least."""
        minimum = int(self.cycles.min()) if len(self.cycles) else 0
        return (int(self.cycles.max()) - minimum) / minimum if minimum else None


def read_configuration(source: EvaluationInput, result: ProbeResult, progress: Progress) -> Configuration:
    """The configuration of a result. Raises TraceError if it is not of the probe that the trace names."""
    probe = probe_named(result.probe)
    assert probe is not None  # results are asked for by the names of built-in probes
    assert probe.timeline is not None
    timeline = probe.timeline(result, progress).timeline
    blocks_per_sm = int(timeline.slots.max(initial=0))
    sms = int((timeline.slots > 0).sum())
    return Configuration(source, result, timeline.blocks.duration, blocks_per_sm, timeline.span, sms)


def _percentile_of(percentile: int) -> Callable[[Configuration], float | None]:
    def percentile_of(row: Configuration) -> float | None:
        lengths = row.lengths
        return None if lengths is None else lengths.record()[f"p{percentile}"]

    return percentile_of


def _percentile_column(percentile: int, title: str, rank: int = 0) -> Column[Any]:
    value_of = _percentile_of(percentile)

    def text(row: Configuration) -> str:
        value = value_of(row)
        return NOT_MEASURED if value is None else units.count(round(value))

    return Column(f"p{percentile}", value_of, title, text, rank=rank)


CONFIGURATION_COLUMNS: Final[tuple[Column[Configuration], ...]] = (
    Column("trace", lambda r: r.label, "trace", lambda r: r.label, right=False, narrow=15),
    Column("kind", lambda r: r.kind, "kind of blocks", lambda r: r.kind, right=False),
    Column("blocks", lambda r: len(r.cycles), "blocks", lambda r: units.count(len(r.cycles)), rank=1),
    Column("together", lambda r: r.blocks_per_sm, "per SM", lambda r: str(r.blocks_per_sm), rank=1),
    Column("sms", lambda r: r.sms),
    _percentile_column(0, "min"),
    _percentile_column(25, "25 %", 2),
    _percentile_column(50, "median"),
    _percentile_column(75, "75 %", 2),
    _percentile_column(95, "95 %", 1),
    _percentile_column(99, "99 %", 2),
    _percentile_column(100, "max"),
    Column("spread", lambda r: r.spread, "spread", lambda r: units.percentage(r.spread, 2)),
    Column("span", lambda r: r.span, "launch", lambda r: units.count(r.span), rank=3),
)


@dataclass(frozen=True, slots=True)
class BlockSpeeds:
    """``speed`` (f8, shape (blocks, parts)) is iterations per thousand cycles, the mean over the warps of a block;
    NaN where a warp ended sooner. ``progress`` (f8, shape (parts,)) are percent of the iterations that were recorded,
    the middle of each part. ``block`` (i8) are the numbers of the blocks among those measured.
    """

    block: NDArray[np.int64]
    progress: NDArray[np.float64]
    speed: NDArray[np.float64]
    truncated_warps: int
    """Warps that came around more often than was recorded."""


def block_speeds(recorded: WarpProgress) -> BlockSpeeds | None:
    """The speeds of a launch; None where it has no loop with two iterations."""
    loop = recorded.main_loop
    if loop is None:
        return None
    is_arrival = recorded.pace["line"] == loop.line
    is_arrival &= np.arange(recorded.pace.shape[2]) < recorded.recorded_arrivals[..., np.newaxis]
    count = is_arrival.sum(axis=2)
    max_arrivals = int(count.max(initial=0))
    if max_arrivals < 2:
        return None
    cycles = cycles_since_start(recorded.pace["clock"], recorded.warps["start"].astype(np.uint32)).astype(np.float64)
    times = _arrival_cycles(cycles, is_arrival, max_arrivals)
    parts = np.unique(np.linspace(0, max_arrivals - 1, min(_STEPS, max_arrivals - 1) + 1).round().astype(np.int64))
    steps = np.diff(times[..., parts], axis=-1)
    with np.errstate(divide="ignore", invalid="ignore"):
        paces = np.where(steps > 0, 1e3 * np.diff(parts) / steps, np.nan)
    has_speed = count.max(axis=1) >= 2
    is_measured = ~np.isnan(paces[has_speed])
    total = np.where(is_measured, paces[has_speed], 0.0).sum(axis=1)
    mean = np.divide(total, is_measured.sum(axis=1), out=np.full(total.shape, np.nan), where=is_measured.any(axis=1))
    middle = (parts[1:] + parts[:-1]) / 2 / (max_arrivals - 1) * 100
    truncated_warps = int((recorded.arrival_counts > recorded.recorded_arrivals).sum())
    return BlockSpeeds(np.flatnonzero(has_speed), middle, mean, truncated_warps)


def _arrival_cycles(
    cycles: NDArray[np.float64], is_arrival: NDArray[np.bool_], max_arrivals: int
) -> NDArray[np.float64]:
    """Cycles from a warp's start to its k-th arrival: shape (blocks, warps, most), NaN after its last."""
    order = np.argsort(~is_arrival, axis=-1, kind="stable")[..., :max_arrivals]
    sorted_times = np.take_along_axis(cycles, order, axis=-1)
    return np.where(np.take_along_axis(is_arrival, order, axis=-1), sorted_times, np.nan)
