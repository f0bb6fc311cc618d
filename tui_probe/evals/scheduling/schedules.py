"""The block schedule of a launch: figures per slot, and those summed over slots as they were published."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Protocol

import numpy as np

from tui_probe.draw import units
from tui_probe.draw.shorten import shorten
from tui_probe.draw.table import Column
from tui_probe.draw.units import NOT_MEASURED
from tui_probe.probekit.probe_results import cycles_words

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from tui_probe.evals.given import Given
    from tui_probe.probekit.measured import Measured


class BlockSchedule(Protocol):
    """What the probe's analysis gives; its docstring defines the cycles. Arrays have one element per SM."""

    blocks: int
    sm: NDArray[np.uint32]
    sm_blocks: NDArray[np.int64]
    sm_slots: NDArray[np.int64]
    sm_running: NDArray[np.float64]
    sm_scheduling: NDArray[np.float64]
    sm_ramp: NDArray[np.float64]
    sm_tail: NDArray[np.float64]

    @property
    def span(self) -> float: ...


@dataclass(frozen=True, slots=True)
class Schedule:
    """One launch. Cycles are means over SMs: per slot, and (``_sum``) summed over the slots of an SM."""

    label: str
    kernel: str
    launch: str
    of: BlockSchedule
    clock_khz: int | None
    simulated: bool

    @property
    def running(self) -> float:
        return float(self.of.sm_running.mean())

    @property
    def scheduling(self) -> float:
        return float(self.of.sm_scheduling.mean())

    @property
    def running_sum(self) -> float:
        return float((self.of.sm_running * self.of.sm_slots).mean())

    @property
    def scheduling_sum(self) -> float:
        return float((self.of.sm_scheduling * self.of.sm_slots).mean())

    @property
    def slots(self) -> float:
        """Blocks that are on an SM together, mean over SMs."""
        return float(self.of.sm_slots.mean())

    @property
    def factor(self) -> float | None:
        """How many times larger the published sums are than the means over slots."""
        whole = self.running + self.scheduling
        return (self.running_sum + self.scheduling_sum) / whole if whole else None

    @property
    def share(self) -> float | None:
        """Scheduling in Running + Scheduling, from 0 to 1; the same in means and in sums where all SMs have as many
        slots."""
        whole = self.running + self.scheduling
        return self.scheduling / whole if whole else None

    @property
    def share_of_span(self) -> float | None:
        """Scheduling in the time from the first start to the last end on an SM, from 0 to 1."""
        return self.scheduling / self.of.span if self.of.span else None

    def line(self) -> str:
        """The line as it was published, with sums over slots."""
        running, scheduling = round(self.running_sum), round(self.scheduling_sum)
        return f"No.block:{self.of.blocks} Running:{running} Scheduling:{scheduling}(cycle)"

    def words(self) -> str:
        """Ours, and how the two differ."""
        running, scheduling = (cycles_words(n, self.clock_khz) for n in (self.running, self.scheduling))
        words = f"mean per slot: running {running}, scheduling {scheduling}, {_percent(self.share)} of both"
        if self.factor is None or self.slots == 1:
            return f"{words}; an SM had one block at a time, so the line above is the same"
        return f"{words}; the line above sums over {self.slots:.3g} slots per SM: {self.factor:.3g} times as much"


def schedule_of(given: Given, result: Measured) -> Schedule:
    """The schedule in a result that could be analysed."""
    trace = result.kernel.trace
    device = trace.state.device
    simulated = trace.state.simulated
    clock = None if device is None or simulated else device.clock_khz or None
    return Schedule(given.label, result.kernel.demangled, result.label, result.analysis, clock, simulated)


def _percent(share: float | None) -> str:
    return NOT_MEASURED if share is None else f"{share:.1%}"


def _cycles(value: float) -> str:
    return units.count(round(value))


COLUMNS: Final[tuple[Column[Schedule], ...]] = (
    Column("trace", lambda r: r.label, "trace", lambda r: r.label, False, narrow=12),
    Column("kernel", lambda r: r.kernel, "kernel", lambda r: r.kernel, False, 1, 12, shorten),
    Column("launch", lambda r: r.launch),
    Column("blocks", lambda r: r.of.blocks, "blocks", lambda r: units.count(r.of.blocks)),
    Column("sms", lambda r: len(r.of.sm), "SMs", lambda r: str(len(r.of.sm)), rank=3),
    Column("slots", lambda r: r.slots, "slots", lambda r: f"{r.slots:.3g}", rank=3),
    Column("running", lambda r: r.running, "running", lambda r: _cycles(r.running)),
    Column("scheduling", lambda r: r.scheduling, "scheduling", lambda r: _cycles(r.scheduling)),
    Column("share", lambda r: r.share, "share", lambda r: _percent(r.share)),
    Column("running_sum", lambda r: r.running_sum, "Σ running", lambda r: _cycles(r.running_sum), rank=2),
    Column("scheduling_sum", lambda r: r.scheduling_sum, "Σ scheduling", lambda r: _cycles(r.scheduling_sum), rank=2),
    Column("factor", lambda r: r.factor, "factor", lambda r: NOT_MEASURED if r.factor is None else f"{r.factor:.3g}"),
    Column("span", lambda r: float(r.of.span), "span", lambda r: _cycles(r.of.span), rank=2),
    Column("share_of_span", lambda r: r.share_of_span, "of span", lambda r: _percent(r.share_of_span), rank=3),
)


def sm_rows(schedule: Schedule) -> list[dict[str, Any]]:
    """One row per SM; cycles are means over its slots."""
    of = schedule.of
    whole = of.sm_running + of.sm_scheduling
    columns = (of.sm, of.sm_blocks, of.sm_slots, of.sm_running, of.sm_scheduling, of.sm_ramp, of.sm_tail)
    names = ("sm", "blocks", "slots", "running", "scheduling", "ramp", "tail")
    shares = np.divide(of.sm_scheduling, whole, out=np.full(len(whole), np.nan), where=whole > 0)
    return [
        {
            "trace": schedule.label,
            "launch": schedule.launch,
            **dict(zip(names, row, strict=True)),
            "share": None if np.isnan(share) else share,
        }
        for share, *row in zip(shares.tolist(), *(column.tolist() for column in columns), strict=True)
    ]
