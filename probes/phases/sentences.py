"""Sentences on a launch: the longest wait, overlap, tensor cores, and what was not recorded or moved."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Final

from tui_probe.draw import units
from tui_probe.probekit.finding import percent
from tui_probe.probekit.record_counts import sampled_blocks_text
from tui_probe.ptx.phase_names import CLUSTER_BARRIER, COPIES, MBARRIER, POLLING

from .kinds import ALL_WARPS, NO_LOOP
from .tables import NOTABLY_SLOWER, ProductGaps, TensorRates, overlap_of, rows_of
from .waits import waits_of

if TYPE_CHECKING:
    from collections import Counter
    from collections.abc import Iterator, Sequence

    from tui_probe.probekit.probe import MeasuredWait
    from tui_probe.probekit.probe_results import ProbeResult

    from .analysis import LaunchPhases
    from .kinds import Phase
    from .stalls import PhaseStalls
    from .tables import PhaseRow
    from .waits import Wait

_NOTABLE_WAIT: Final = 0.02
"""Part of a role's life from which on its waits are listed in text."""
_NOTABLE_TIME: Final = 0.005
"""Part of block time from which on they are: the waits of warps that exit early are short."""
_NOTABLE_UNNAMED: Final = 0.1
"""Part of warp life from which on time in no phase of the user's is reported."""
_NOTABLE_GAPS: Final = 0.01
"""Part of recorded time from which on time without products is reported."""
_MAX_GAPS: Final = 3
"""Phases that are listed for it, of each role."""
_NOTABLE_LATE: Final = 0.01
"""Part of a wait from which on a late role or warp is mentioned."""
_MOSTLY_LATE: Final = 0.5
"""Part of a wait that is for its partner from which on the text says what the partner does."""
_ALMOST_ALWAYS: Final = 0.95
_WAITS_FOR_OTHER_SMS: Final = (CLUSTER_BARRIER, POLLING)
"""Waits for blocks on other SMs."""
_NOTABLE_STALLS: Final = 0.02
"""Part of warp life from which on the measured stalls of a phase are listed, and those of unknown phases."""
_MAX_STALLS: Final = 3
"""Causes that are listed of each phase."""
_NOTABLE_OCCUPATION: Final = 0.25
"""Part of the time of those who are late from which on a phase explains it."""


@dataclass(frozen=True, eq=False)
class Sentences:
    """Sentences on a launch. ``moved_counts``: instructions of SASS that are of other named phases, by phase.
    ``stalls``: the waits that another probe measured at single instructions.
    """

    probe_result: ProbeResult
    launch: LaunchPhases
    block: int
    moved_counts: Counter[str] | None
    stalls: PhaseStalls | None = None

    def longest_wait(self) -> list[str]:
        """The answer of the page: which role waits longest, and for whom; none if no wait is notable."""
        return [wait_text(wait) for wait in self._notable_waits[:1]]

    @cached_property
    def _notable_waits(self) -> list[Wait]:
        block_time = {(row.role, row.phase): row.share for row in rows_of(self.launch)}
        return [
            wait
            for wait in waits_of(self.launch)
            if wait.share >= _NOTABLE_WAIT
            and block_time[wait.role, wait.phase] >= _NOTABLE_TIME
            and wait.late_share is not None
        ]

    def other_notes(self) -> Iterator[str]:
        """Yield sentences on other waits, overlap, tensor cores, and what was not recorded or moved."""
        yield from (wait_text(wait) for wait in self._notable_waits[1:])
        distant_waits = (wait for wait in waits_of(self.launch) if wait.phase.work in _WAITS_FOR_OTHER_SMS)
        yield from (wait_text(wait) for wait in distant_waits if wait.share >= _NOTABLE_WAIT)
        launch, overlap = self.launch, overlap_of(self.launch)
        if overlap is not None:
            compute_text, load_text, overlap_text, idle_text = (percent(part, 1) for part in overlap.parts)
            yield (
                f"time of blocks: in {compute_text}, at least one warp computes; in {load_text}, at least one warp"
                f" issues loads (in {overlap_text}, both); in {idle_text}, all warps wait or do other work such as"
                " integer arithmetic"
            )
        yield from self._stall_notes()
        yield from self._tensor_notes()
        if launch.kept_text:
            yield f"kept: {launch.kept_text}{self._unrecorded_text()}"
        if launch.sampled_text:
            yield f"recorded: {launch.sampled_text}"
        if launch.phases_missing:
            missing_text = units.counted(launch.phases_missing, "phase start")
            yield (
                f"{missing_text} could not be recorded in the SASS; the time of each such phase is added to the phase"
                " before it"
            )
        for phase in launch.phases:
            if phase.waits:
                yield f"“{phase.name}”: contains {', '.join(phase.waits)}"
            if phase.moved_count:
                yield (
                    f"“{phase.name}”: includes {units.counted(phase.moved_count, 'instruction')} that the compiler"
                    " moved here from other named phases"
                )
        yield from self._unnamed_notes()
        for name, count in (self.moved_counts or {}).items():
            if count:
                yield f"“{name}”: includes at least {units.counted(count, 'SASS instruction')} of other named phases"
        yield from self._measurement_notes()

    def _unrecorded_text(self) -> str:
        if not self.launch.unrecorded:
            return ""
        share = percent(self.launch.unrecorded, self.launch.life)
        return (
            f"; {share} of warp life has no record (drawn as ?), so the shares of all phases are too low. To record"
            f" more, name fewer phases with --phase, or use --phase-records every:8; to record the end, use"
            f" --phase-records last"
        )

    def _unnamed_notes(self) -> Iterator[str]:
        """Yield where the time goes that is in no phase that the user named, if it is much."""
        unnamed_rows = [row for row in rows_of(self.launch) if not row.phase.is_named]
        cycles = sum(row.cycles for row in unnamed_rows)
        if len(unnamed_rows) == len(rows_of(self.launch)) or cycles < _NOTABLE_UNNAMED * self.launch.life:
            return
        longest_row = max(unnamed_rows, key=lambda row: row.cycles)
        place = f" ({longest_row.place})" if longest_row.place else ""
        yield (
            f"in no named phase: {percent(cycles, self.launch.life)} of warp life, most of it in"
            f" “{longest_row.phase.name}”{place}. Some compilers assign all code of a loop to one source line (CuTe"
            " DSL: the line of the function's end). Name this line in a --phase option, or omit --phase: automatic"
            " phases name each loop"
        )

    def _measurement_notes(self) -> Iterator[str]:
        """Sentences on the measurement of the launch."""
        launch = self.launch
        if launch.sample is not None:
            yield sampled_blocks_text(launch.sample)
        slowdown = self.probe_result.kernel.slowdown
        if slowdown is not None:
            yield f"slowdown with the probe: {slowdown:.2f}×"
        if self.probe_result.simulated:
            yield "simulated: cycles of a model"

    def _tensor_notes(self) -> Iterator[str]:
        """Sentences on the tensor cores: a role's rate over the whole block, and in each phase that issues products."""
        if TensorRates.for_block(self.launch, self.block) is not None:
            basis = (
                "an SM's tensor-core peak" if self.probe_result.products_per_clock else "the highest rate in the row"
            )
            yield f"row “tensor”: multiply-adds issued per cycle, in tenths of {basis}"
        for role in self.launch.roles:
            rows = [row for row in rows_of(self.launch) if row.role == role]
            product_rows = [row for row in rows if row.multiply_adds]
            if not product_rows:
                continue
            cycles = sum(row.cycles for row in rows)
            issued = sum(row.multiply_adds or 0 for row in product_rows)
            block_rate = issued * product_rows[0].warps / product_rows[0].blocks / cycles
            text = f"{role}: {self._rate(block_rate)} over the whole block"
            rows_above_peak = [row for row in product_rows if self._is_above_peak(row)]
            text += "".join(
                f", {self._rate(row.per_clock() or 0)} in “{row.phase.name}”"
                for row in product_rows
                if row not in rows_above_peak
            )
            if rows_above_peak:
                phases = ", ".join(f"“{row.phase.name}”" for row in rows_above_peak)
                text += (
                    "; this phase issues products faster than the tensor core executes them, so some execute later,"
                    f" in {phases}"
                )
            yield text
        yield from self._gap_notes()

    def _stall_notes(self) -> Iterator[str]:
        """Sentences on the stalls inside phases, by the instructions at which another probe measured them."""
        stalls = self.stalls
        if stalls is None:
            return
        if stalls.problem:
            yield f"stalls in phases are unknown: {stalls.problem}"
            return
        roles: dict[Phase, list[str]] = {}
        for row in rows_of(self.launch):
            roles.setdefault(row.phase, []).append(row.role)
        for number, share in sorted(stalls.shares.items(), key=lambda item: -item[1]):
            phase = self.launch.phases[number]
            if share >= _NOTABLE_STALLS:
                role_names = f" ({', '.join(roles[phase])})" if len(self.launch.roles) > 1 and phase in roles else ""
                causes = _causes_text(stalls.by_phase[number])
                yield f"stalls in “{phase.name}”{role_names}: {percent(share, 1)} of warp life: {causes}"
        if stalls.elsewhere_share >= _NOTABLE_STALLS:
            yield (
                f"stalls whose phase is unknown: {percent(stalls.elsewhere_share, 1)} of warp life:"
                f" {_causes_text(stalls.elsewhere)}. The code or source line of these stalls belongs to several phases,"
                " or the code has no source line"
            )
        yield f"stalls: measured in {stalls.launches}; 100% is the warp life of all roles together"

    @cached_property
    def product_gaps(self) -> ProductGaps | None:
        return ProductGaps.for_block(self.launch, self.block)

    def _gap_notes(self) -> Iterator[str]:
        """Sentences on the time without products, and the phases in which roles spend it that issue products."""
        gaps = self.product_gaps
        if gaps is None or gaps.cycles < _NOTABLE_GAPS * gaps.recorded:
            return
        parts = []
        for role, cycles in gaps.by_role.items():
            longest_phases = sorted(cycles, key=lambda phase: -cycles[phase])[:_MAX_GAPS]
            phases = (
                f"{percent(cycles[phase], gaps.recorded)} in “{self.launch.phases[phase].name}”"
                for phase in longest_phases
            )
            parts.append(f"{self.launch.roles[role]}: {', '.join(phases)}")
        share = percent(gaps.cycles, gaps.recorded)
        yield f"without products: {share} of block {self.block}'s time ({'; '.join(parts)})"

    def _is_above_peak(self, row: PhaseRow) -> bool:
        """Return whether a phase issues asynchronous products faster than they execute."""
        peak = self.probe_result.products_per_clock
        return peak is not None and (row.per_clock() or 0) > peak

    def _rate(self, per_clock: float) -> str:
        peak = self.probe_result.products_per_clock
        if peak is None:
            return f"{units.count(round(per_clock))} tensor-core multiply-adds per cycle"
        return f"{percent(per_clock, peak)} of an SM's tensor-core peak"


def _causes_text(waits: Sequence[MeasuredWait]) -> str:
    """``31% wgmma at WARPGROUP attn.py:32 (for HGMMA attn.py:30); …``; equal causes at one line are one."""
    shares: defaultdict[str, float] = defaultdict(float)
    for wait in waits:
        producer = f" (for {wait.producer})" if wait.producer else ""
        place = wait.place or f"{wait.offset:#06x}"
        shares[f"{wait.kind or 'wait'} at {wait.instruction} {place}{producer}"] += wait.share
    main_causes = sorted(shares, key=lambda cause: -shares[cause])[:_MAX_STALLS]
    texts = [f"{percent(shares[cause], 1)} {cause}" for cause in main_causes]
    return "; ".join([*texts, *(["…"] if len(shares) > _MAX_STALLS else [])])


def wait_text(wait: Wait) -> str:
    """``consumer waits 62% of its time in “loop: full[2] wait” (mbarrier for bulk copy of K). During …``."""
    places = [text for text in (_mbarrier_text(wait), wait.place) if text]
    place = f" ({', '.join(places)})" if places else ""
    subject = "warps without a loop" if wait.role == NO_LOOP else wait.role
    verb, pronoun = ("wait", "their") if wait.role in (ALL_WARPS, NO_LOOP) else ("waits", "its")
    text = f"{subject} {verb} {percent(wait.share, 1)} of {pronoun} time in “{wait.phase.name}”{place}"
    if wait.phase.work in _WAITS_FOR_OTHER_SMS:
        return f"{text}. The late block is unknown because SMs have different clocks"
    if wait.late_share is None:
        return text
    if wait.late_share < _NOTABLE_LATE:
        return f"{text}. {_prompt_text(wait)}"
    text += f". During {percent(wait.late_share, 1)} of this wait, "
    if wait.signal is None:
        return f"{text}{_late_warp_text(wait)}{_busy_text(wait)}"
    stages_text = f"; all {wait.stages_full} stages are in use" if wait.stages_full else ""
    order = _stages_text(wait) if wait.by_order else "; waits are matched with signals by time"
    return f"{text}{_unsignaled_text(wait)}{order}{stages_text}{_busy_text(wait)}"


def _unsignaled_text(wait: Wait) -> str:
    """``producer has not issued “loop: bulk copy” yet``: a copy that is issued late is not a slow copy."""
    assert wait.signal is not None
    if wait.signal.work in COPIES:
        verb, remainder = "issued", "the copy is in progress, or the wait is for the barrier itself"
    else:
        verb, remainder = "finished", "the wait is for copies or for the barrier itself"
    return f"{wait.partner} has not {verb} “{wait.signal.name}” yet; for the remaining time, {remainder}"


def _stages_text(wait: Wait) -> str:
    """Return the use of the pipeline by a role that may run ahead; "" for others, and without a pipeline."""
    if (wait.stages_ahead or 0) < 2 or wait.stages_in_use is None:
        return ""
    return f"; on average, {wait.role} has {wait.stages_in_use:.1f} of {wait.stages_ahead} stages in use"


def _mbarrier_text(wait: Wait) -> str:
    """Return ``mbarrier for bulk copy of K``: the purpose of a barrier, which its name does not tell."""
    if wait.phase.work != MBARRIER or not wait.phase.barriers:
        return ""
    tensors = ", ".join(wait.phase.tensors)
    return f"mbarrier for {wait.signal.work} of {tensors}" if tensors and wait.signal is not None else "mbarrier"


def _prompt_text(wait: Wait) -> str:
    """Sentence on a wait for which no warp is late."""
    if wait.signal is None:
        return "All warps arrive at nearly the same time"
    return f"No warp is late, so the wait is for copies or for the barrier itself{_stages_text(wait)}"


def _late_warp_text(wait: Wait) -> str:
    if wait.last_share is None or (wait.late_share or 0.0) < _MOSTLY_LATE:
        return "the last warp has not arrived"
    if wait.last_share >= _ALMOST_ALWAYS:
        return f"warp {wait.last_warp} has not arrived"
    return (
        f"the last warp has not arrived (in {percent(wait.last_share, 1)} of this time, this is warp {wait.last_warp})"
    )


def _busy_text(wait: Wait) -> str:
    """Return the work of those for whom a role mostly waits; "" where it waits for something else."""
    if (
        wait.occupation is None
        or wait.occupation_share < _NOTABLE_OCCUPATION
        or (wait.late_share or 0.0) < _MOSTLY_LATE
    ):
        return ""
    late_name = f"warp {wait.last_warp}" if wait.partner is None else wait.partner
    place = f" ({wait.occupation_place})" if wait.occupation_place else ""
    text = (
        f". Of its own time, {late_name} spends {percent(wait.occupation_share, 1)} in “{wait.occupation.name}”{place}"
    )
    if wait.last_warp_slowdown is None or wait.last_warp_slowdown < NOTABLY_SLOWER:
        return text
    return f"{text}, where it takes {wait.last_warp_slowdown:.1f} times as long as the other warps (median)"
