"""Limiter of a kernel in sentences: the verdict, the utilization of units, and the evidence for it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from tui_probe.draw import units
from tui_probe.draw.units import NOT_MEASURED
from tui_probe.probekit.measured import probe_option_for
from tui_probe.verdicts.utilization import (
    LIMITING_UTILIZATION,
    first_known,
    fits_in_l2,
    relative_demand,
    requested_bytes,
    uncounted,
)

if TYPE_CHECKING:
    from tui_probe.verdicts.utilization import Demand, LimiterVerdict, PeakRates, UnitUtilization

UNIT_NAMES: Final = {"tensor": "tensor cores", "issue": "issue slots"}
NO_TIMES: Final = f"{NOT_MEASURED} no times on a simulated GPU"
SASS_DATA: Final = "machine code"
"""The name of SASS in ``counted_in``, as in data of earlier versions."""
_UNITS_SHOWN: Final = 4
_MIN_UTILIZATION_SHOWN: Final = 0.005


@dataclass(frozen=True, slots=True)
class KernelLimiter:
    """Verdict of one kernel, with the numbers that it is based on."""

    verdict: LimiterVerdict
    demand: Demand
    machine: PeakRates
    command: str
    """Command that measures missing values; "" if none."""
    counted_in: tuple[str, ...] = ()
    """Unit of the counts of instructions: PTX, SASS, or some in each."""
    cause: str = ""
    """Reason why warps wait, from a probe of waits; "" for other limiters and without such a probe."""
    next_question: str = ""
    """Key of the question that tells more where no unit is near its peak, or none is known to be; "" for none."""
    question_text: str = ""
    """The question with the option of a run that answers it."""

    @property
    def source(self) -> str:
        """Source of the counts of instructions; "" if there are none."""
        if not self.counted_in or self.demand.instructions is None:
            return ""
        note = "; ptxas removes or merges some of them" if "PTX" in self.counted_in else ""
        codes = ("SASS" if code == SASS_DATA else code for code in self.counted_in)
        return f"instructions counted in {' and '.join(codes)}{note}"

    @property
    def short_text(self) -> str:
        """Text for a column, ``memory (L2) 83%``; ``–`` if unknown."""
        verdict = self.verdict
        if verdict.limit is None:
            return NOT_MEASURED
        return f"{_limiter_name(self.verdict)} {_percent(verdict.share)}" if _is_unit(verdict) else verdict.limit

    @property
    def limit(self) -> str | None:
        """Limiter, ``memory (L2)``, ``latency``; None if unknown."""
        return None if self.verdict.limit is None else _limiter_name(self.verdict)

    @property
    def relative(self) -> tuple[UnitUtilization, ...]:
        """The need of each unit relative to the largest, where no time was measured."""
        return relative_demand(self.demand, self.machine)

    @property
    def words(self) -> str:
        """Sentence, ``memory (L2): 83% utilization``, or the reason why no unit limits, and the longest wait."""
        return _verdict_sentence(self) + (f"; {self.cause}" if self.cause else "")

    @property
    def numbers(self) -> str:
        """Utilization of each unit."""
        return _utilization_text(self)

    @property
    def level(self) -> str:
        """Evidence for the level of memory, or why there is none; "" if memory does not limit."""
        return _memory_level_text(self)

    def record(self) -> dict[str, Any]:
        """Return the JSON record."""
        verdict = self.verdict
        return {
            "limit": verdict.limit,
            "level": verdict.level or None,
            "share": verdict.share,
            "words": self.words,
            "units": [
                {"unit": share.unit, "level": share.level or None, "share": share.share, "certain": share.is_certain}
                for share in verdict.shares
            ],
            "counted_in": list(self.counted_in),
            "not_measured": list(verdict.unknown),
            "command": self.command or None,
        }


def limiter_texts(limiter: KernelLimiter) -> tuple[str, ...]:
    """Return the verdict, its numbers, and the command that measures more, a line each."""
    return tuple(
        filter(
            None,
            (
                limiter.words,
                limiter.numbers,
                limiter.source,
                limiter.level,
                _unmeasured_text(limiter),
                f"to measure: {limiter.command}" if limiter.command else "",
                limiter.question_text,
            ),
        )
    )


def _unmeasured_text(limiter: KernelLimiter) -> str:
    """Return the note on metrics that were not measured, unless the verdict has it."""
    is_unknown = limiter.verdict.limit is None and not limiter.machine.simulated
    unknown = [unit for unit in limiter.verdict.unknown if unit != "time" or not limiter.machine.simulated]
    return f"not measured: {', '.join(unknown)}" if unknown and not is_unknown else ""


def _is_unit(verdict: LimiterVerdict) -> bool:
    return verdict.limit not in (None, "latency", "too small", "launch")


def _limiter_name(verdict: LimiterVerdict) -> str:
    return f"{verdict.limit} ({verdict.level})" if verdict.level else str(verdict.limit)


def _percent(share: float | None) -> str:
    return NOT_MEASURED if share is None else f"{share:.0%}" if share >= 0.01 or not share else "<1%"


def _verdict_sentence(limiter: KernelLimiter) -> str:
    verdict = limiter.verdict
    if _is_unit(verdict):
        limit = verdict.limit or ""
        name = UNIT_NAMES.get(limit, limit) + (f" ({verdict.level})" if verdict.level else "")
        share = verdict.share or 0.0
        if share > 1 and not _is_behind_caches(verdict):
            return f"{name}: fully utilized; the counts amount to {_percent(share)} of its peak"
        if share > 1:
            return f"{name}: requests amount to {share:.1f} times its peak; caches serve the requests above the peak"
        return f"{name}: {_percent(share)} utilization"
    if verdict.limit == "latency":
        return f"latency bound: no unit reaches {LIMITING_UTILIZATION:.0%} utilization"
    if verdict.limit == "too small":
        return f"too small: {units.counted(verdict.blocks or 0, 'block')} for {units.counted(verdict.sms, 'SM')}"
    if verdict.limit == "launch":
        return f"launch bound: {units.duration(verdict.seconds)} is close to launch overhead"
    return _unknown_limiter_text(limiter)


def _is_behind_caches(verdict: LimiterVerdict) -> bool:
    return any(
        share.behind_caches for share in verdict.shares if (share.unit, share.level) == (verdict.limit, verdict.level)
    )


def _unknown_limiter_text(limiter: KernelLimiter) -> str:
    if limiter.machine.simulated:
        return f"{NO_TIMES}{_longest_unit_text(limiter)}"
    return f"{NOT_MEASURED} not measured: {', '.join(limiter.verdict.unknown)}"


def _longest_unit_text(limiter: KernelLimiter) -> str:
    """Return the unit that would take longest; "" if only one of several units was counted."""
    demands, missing_counts = limiter.relative, uncounted(limiter.verdict)
    if not demands or (missing_counts and len(demands) == 1):
        return ""
    counts = "incomplete counts" if missing_counts else "counts"
    return f"; from {counts}, {_unit_text(demands[0])} would be the busiest unit of an A100"


def _unit_text(unit: UnitUtilization) -> str:
    """Return the name of a unit among others: two levels of memory may be in one sentence."""
    if unit.unit == "memory" and not unit.level:
        return "memory (L2 or DRAM)"
    return UNIT_NAMES.get(unit.unit, unit.name)


def _utilization_text(limiter: KernelLimiter) -> str:
    """Return the largest shares, ``memory 34%, issue 12%``; "" without a time."""
    if limiter.machine.simulated:
        parts = [f"{_unit_text(unit)} {_percent(unit.share)}" for unit in limiter.relative[1:_UNITS_SHOWN]]
        return f"relative to the busiest unit: {', '.join(parts)}" if parts else ""
    shares = [share for share in limiter.verdict.shares if share.share >= _MIN_UTILIZATION_SHOWN] or list(
        limiter.verdict.shares[:1]
    )
    parts = [
        f"{share.name} {'' if share.is_certain else '≤ '}{_percent(share.share)}" for share in shares[:_UNITS_SHOWN]
    ]
    return f"utilization: {', '.join(parts)}" if parts else ""


def _memory_level_text(limiter: KernelLimiter) -> str:
    verdict = limiter.verdict
    if verdict.limit != "memory" or requested_bytes(limiter.demand) is None:
        return ""
    touched = first_known(limiter.demand.footprint, limiter.demand.reach)
    if verdict.level == "DRAM":
        if limiter.demand.dram is not None:
            return "DRAM: measured by ncu"
        return "DRAM: the kernel touches each byte only once, and touches more bytes than L2 holds"
    if verdict.level == "L1":
        return "L1 and shared memory: each request takes at least one cycle"
    if fits_in_l2(limiter.demand, limiter.machine):
        return f"L2: the footprint (up to {units.size(touched)}) fits in L2"
    return f"DRAM or L2: requests do not show the level; use {probe_option_for('footprint')} or ncu"
