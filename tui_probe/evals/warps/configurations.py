"""A launch in one configuration of its blocks: how long blocks and warps took."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from tui_probe.analysis.distribution import Distribution, distribution
from tui_probe.draw import units
from tui_probe.draw.table import Column
from tui_probe.draw.units import NOT_MEASURED
from tui_probe.probekit.registry import probe_named

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    import numpy as np
    from numpy.typing import NDArray

    from tui_probe.draw.view import Progress
    from tui_probe.evals.given import Given
    from tui_probe.probekit.probe_results import ProbeResult

LIFETIMES: Final = "block_sched"
PROGRESS: Final = "warp_progress"


@dataclass(frozen=True, slots=True)
class Configuration:
    """One launch. ``cycles`` (i8, shape (blocks,)) are the elapsed cycles of blocks, ``together`` the most blocks that
    were on an SM at a time."""

    given: Given
    of: ProbeResult
    cycles: NDArray[np.int64]
    together: int
    span: int
    sms: int

    @property
    def label(self) -> str:
        return self.given.label

    @property
    def is_exclusive(self) -> bool:
        """Whether no block shared its SM."""
        return self.together == 1

    @property
    def kind(self) -> str:
        """``exclusive``, ``shared``; with a word where progress was recorded, which takes time of its own."""
        kind = "exclusive" if self.is_exclusive else "shared"
        return f"{kind}, progress" if self.of.probe == PROGRESS else kind

    @property
    def lengths(self) -> Distribution | None:
        return distribution(self.cycles)

    @property
    def spread(self) -> float | None:
        """(most - least) / least."""
        least = int(self.cycles.min()) if len(self.cycles) else 0
        return (int(self.cycles.max()) - least) / least if least else None


def configuration_of(given: Given, of: ProbeResult, progress: Progress) -> Configuration:
    """The configuration of a result. Raises TraceError if it is not of the probe that the trace names."""
    probe = probe_named(of.probe)
    assert probe is not None  # results are asked for by the names of built-in probes
    assert probe.timeline is not None
    timeline = probe.timeline(of, progress).timeline
    together = int(timeline.slots.max(initial=0))
    ran = int((timeline.slots > 0).sum())
    return Configuration(given, of, timeline.blocks.duration, together, timeline.span, ran)


def percent(share: float | None) -> str:
    return NOT_MEASURED if share is None else f"{share:.2%}"


def _at(percentile: int) -> Callable[[Configuration], float | None]:
    def read(row: Configuration) -> float | None:
        lengths = row.lengths
        return None if lengths is None else lengths.record()[f"p{percentile}"]

    return read


def _column(percentile: int, title: str, rank: int = 0) -> Column[Any]:
    read = _at(percentile)

    def text(row: Configuration) -> str:
        value = read(row)
        return NOT_MEASURED if value is None else units.count(round(value))

    return Column(f"p{percentile}", read, title, text, rank=rank)


COLUMNS: Final[tuple[Column[Configuration], ...]] = (
    Column("trace", lambda r: r.label, "trace", lambda r: r.label, False, narrow=15),
    Column("kind", lambda r: r.kind, "blocks are", lambda r: r.kind, False),
    Column("blocks", lambda r: len(r.cycles), "blocks", lambda r: units.count(len(r.cycles)), rank=1),
    Column("together", lambda r: r.together, "per SM", lambda r: str(r.together), rank=1),
    Column("sms", lambda r: r.sms),
    _column(0, "least"),
    _column(25, "25 %", 2),
    _column(50, "median"),
    _column(75, "75 %", 2),
    _column(95, "95 %", 1),
    _column(99, "99 %", 2),
    _column(100, "most"),
    Column("spread", lambda r: r.spread, "spread", lambda r: percent(r.spread)),
    Column("span", lambda r: r.span, "launch", lambda r: units.count(r.span), rank=3),
)
