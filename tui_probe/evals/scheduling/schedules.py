"""Block schedules of launches: how long the slots of each SM run blocks and wait for the next one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Protocol

import numpy as np

from tui_probe.draw import units
from tui_probe.draw.shorten import shorten
from tui_probe.draw.table import Column
from tui_probe.draw.units import NOT_MEASURED
from tui_probe.probekit.probe_results import cycles_text

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from tui_probe.evals.inputs import EvaluationInput
    from tui_probe.probekit.measured import AnalysedResult


class BlockSchedule(Protocol):
    """Schedule of one launch, from the probe's analysis, which defines the cycles. Arrays have one element per SM."""

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
    blocks_on_sms: BlockSchedule
    clock_khz: int | None
    simulated: bool

    @property
    def running(self) -> float:
        return float(self.blocks_on_sms.sm_running.mean())

    @property
    def scheduling(self) -> float:
        return float(self.blocks_on_sms.sm_scheduling.mean())

    @property
    def running_sum(self) -> float:
        return float((self.blocks_on_sms.sm_running * self.blocks_on_sms.sm_slots).mean())

    @property
    def scheduling_sum(self) -> float:
        return float((self.blocks_on_sms.sm_scheduling * self.blocks_on_sms.sm_slots).mean())

    @property
    def slots(self) -> float:
        """Blocks that are on an SM together, mean over SMs."""
        return float(self.blocks_on_sms.sm_slots.mean())

    @property
    def factor(self) -> float | None:
        """Ratio of the published sums to the means over slots."""
        total = self.running + self.scheduling
        return (self.running_sum + self.scheduling_sum) / total if total else None

    @property
    def share(self) -> float | None:
        """Scheduling in Running + Scheduling, from 0 to 1; the same in means and in sums where all SMs have as many
        slots."""
        total = self.running + self.scheduling
        return self.scheduling / total if total else None

    @property
    def share_of_span(self) -> float | None:
        """Scheduling in the time from the first start to the last end on an SM, from 0 to 1."""
        return self.scheduling / self.blocks_on_sms.span if self.blocks_on_sms.span else None

    def line(self) -> str:
        """Return the line in the published format, with sums over slots."""
        running, scheduling = round(self.running_sum), round(self.scheduling_sum)
        return f"No.block:{self.blocks_on_sms.blocks} Running:{running} Scheduling:{scheduling}(cycle)"

    def text(self) -> str:
        """Return the means per slot, and how the published line differs from them."""
        running, scheduling = (cycles_text(n, self.clock_khz) for n in (self.running, self.scheduling))
        text = f"mean per slot: running {running}, scheduling {scheduling}, {percent_text(self.share)} of their sum"
        if self.factor is None or self.slots == 1:
            return f"{text}; the line above has the same values, because each SM had one block at a time"
        return f"{text}; the line above sums over {self.slots:.3g} slots per SM ({self.factor:.3g} times as much)"


def schedule_of(given: EvaluationInput, result: AnalysedResult) -> Schedule:
    """Return the schedule in an analysed result."""
    trace = result.kernel.trace
    device = trace.state.device
    simulated = trace.state.simulated
    clock = None if device is None or simulated else device.clock_khz or None
    return Schedule(given.label, result.kernel.demangled, result.label, result.analysis, clock, simulated)


def percent_text(share: float | None) -> str:
    """Return a share from 0 to 1 as a percentage."""
    return NOT_MEASURED if share is None else f"{share:.1%}"


def _cycles(value: float) -> str:
    return units.count(round(value))


SCHEDULE_COLUMNS: Final[tuple[Column[Schedule], ...]] = (
    Column("trace", lambda r: r.label, "trace", lambda r: r.label, False, narrow=12),
    Column("kernel", lambda r: r.kernel, "kernel", lambda r: r.kernel, False, 1, 12, shorten),
    Column("launch", lambda r: r.launch),
    Column("blocks", lambda r: r.blocks_on_sms.blocks, "blocks", lambda r: units.count(r.blocks_on_sms.blocks)),
    Column("sms", lambda r: len(r.blocks_on_sms.sm), "SMs", lambda r: str(len(r.blocks_on_sms.sm)), rank=3),
    Column("slots", lambda r: r.slots, "slots", lambda r: f"{r.slots:.3g}", rank=3),
    Column("running", lambda r: r.running, "running", lambda r: _cycles(r.running)),
    Column("scheduling", lambda r: r.scheduling, "scheduling", lambda r: _cycles(r.scheduling)),
    Column("share", lambda r: r.share, "share", lambda r: percent_text(r.share)),
    Column("running_sum", lambda r: r.running_sum, "Σ running", lambda r: _cycles(r.running_sum), rank=2),
    Column("scheduling_sum", lambda r: r.scheduling_sum, "Σ scheduling", lambda r: _cycles(r.scheduling_sum), rank=2),
    Column("factor", lambda r: r.factor, "factor", lambda r: NOT_MEASURED if r.factor is None else f"{r.factor:.3g}"),
    Column("span", lambda r: float(r.blocks_on_sms.span), "span", lambda r: _cycles(r.blocks_on_sms.span), rank=2),
    Column("share_of_span", lambda r: r.share_of_span, "of span", lambda r: percent_text(r.share_of_span), rank=3),
)


def sm_rows(schedule: Schedule) -> list[dict[str, Any]]:
    """Return a row per SM; cycles are means over its slots."""
    blocks = schedule.blocks_on_sms
    totals = blocks.sm_running + blocks.sm_scheduling
    names = ("sm_blocks", "sm_slots", "sm_running", "sm_scheduling", "sm_ramp", "sm_tail")
    columns = {"sm": blocks.sm, **{name.removeprefix("sm_"): getattr(blocks, name) for name in names}}
    shares = np.divide(blocks.sm_scheduling, totals, out=np.full(len(totals), np.nan), where=totals > 0)
    return [
        {
            "trace": schedule.label,
            "launch": schedule.launch,
            **dict(zip(columns, row, strict=True)),
            "share": None if np.isnan(share) else share,
        }
        for share, *row in zip(shares.tolist(), *(column.tolist() for column in columns.values()), strict=True)
    ]
