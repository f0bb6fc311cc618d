"""Page ``phases``: what the warps of a block do over time, phases by role, and who waits for whom."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

from tui_probe.draw import units
from tui_probe.draw.shorten import cut_middle, shorten
from tui_probe.draw.spans import clip, wrap
from tui_probe.draw.table import Column, as_record, in_data
from tui_probe.draw.table_content import titled_table
from tui_probe.draw.view import Document
from tui_probe.probekit import probe_results
from tui_probe.probekit.finding import percent
from tui_probe.probekit.record_counts import sampled_blocks_text
from tui_probe.ptx.phase_names import BARRIER_WAITS, MBARRIER

from .analysis import analyse_launch
from .kinds import ALL_WARPS
from .lanes import ProductGaps, TensorRates, lanes, main_iterations, shown_warps, trace_events
from .tables import PhaseRow, moved_in_trace, multiply_adds, overlap_of, rows_of
from .waits import Wait, waits_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tui_probe.draw.spans import Line
    from tui_probe.draw.view import Progress
    from tui_probe.probekit.page_kinds import ViewSource
    from tui_probe.probekit.probe_results import ProbeResult

    from .analysis import Phases

_NOTABLE_WAIT: Final = 0.02
"""Part of a role's life from which on its waits are listed in text."""
_NOTABLE_UNNAMED: Final = 0.1
_NOTABLE_GAPS: Final = 0.01
_SHOWN_GAPS: Final = 3
"""Part of warp life from which on time in no phase of the user's is reported."""
_MIN_NAME: Final = 12
_MIN_PLACE: Final = 16
_HEADINGS: Final = 3
"""Lines between the table of phases and the first row of the table of barriers."""
_NOTICED: Final = 0.01
"""Part of a wait from which on a late role or warp is mentioned."""
_MOSTLY: Final = 0.5
"""Part of a wait that is for its partner from which on the text says what the partner does."""
_ALMOST_ALWAYS: Final = 0.95
_TELLING: Final = 0.25
"""Part of the time of those who are late from which on a phase explains it."""


def _cycles(value: float) -> str:
    return units.count(round(value))


def _share(part: float | None) -> str:
    return units.NOT_MEASURED if part is None else percent(part, 1)


def _stages(mean: float | None) -> str:
    return units.NOT_MEASURED if mean is None else f"{mean:.1f}"


_COLUMNS: Final[tuple[Column[PhaseRow], ...]] = (
    Column("letter", lambda r: r.phase.letter, "", lambda r: r.phase.letter, False),
    Column("phase", lambda r: r.phase.name, "phase", lambda r: r.phase.name, False, narrow=_MIN_NAME),
    Column("role", lambda r: r.role, "role", lambda r: r.role, False, 1),
    Column("share", lambda r: r.share, "block time", lambda r: percent(r.share, 1)),
    Column("median", lambda r: r.median, "median cycles", lambda r: _cycles(r.median)),
    Column("p95", lambda r: r.p95, "p95", lambda r: _cycles(r.p95), rank=2),
    Column("iterations", lambda r: r.iterations, "times", lambda r: units.count(r.iterations), rank=3),
    Column(
        "place",
        lambda r: r.place or None,
        "source",
        lambda r: r.place or units.NOT_MEASURED,
        False,
        narrow=_MIN_PLACE,
        shorten=cut_middle,
    ),
    Column("multiply_adds", lambda r: r.multiply_adds),
    Column("multiply_adds_per_cycle", lambda r: r.per_clock()),
    Column("activity", lambda r: r.phase.activity),
    Column("stage", lambda r: r.phase.stage),
    Column("loop", lambda r: r.phase.loop),
    Column("ptx_lines", lambda r: list(r.phase.lines)),
    Column("warps", lambda r: r.warps),
    Column("cycles", lambda r: r.cycles),
    Column("instructions", lambda r: r.phase.instructions),
    Column("moved", lambda r: r.phase.moved),
    Column("waits", lambda r: list(r.phase.waits)),
    Column("tensors", lambda r: list(r.phase.tensors)),
)


_BARRIER_COLUMNS: Final[tuple[Column[Wait], ...]] = (
    Column("letter", lambda w: w.phase.letter, "", lambda w: w.phase.letter, False),
    Column("barrier", lambda w: w.barrier, "barrier", lambda w: w.barrier, False, narrow=_MIN_NAME),
    Column("role", lambda w: w.role, "waiting", lambda w: w.role, False, 1),
    Column("waits", lambda w: w.count, "waits", lambda w: units.count(w.count)),
    Column(
        "arrivals",
        lambda w: w.signals,
        "arrivals",
        lambda w: units.count(w.signals) if w.signals else units.NOT_MEASURED,
    ),
    Column("partner", lambda w: w.late_name, "waits for", lambda w: w.late_name or units.NOT_MEASURED, False, 2),
    Column("late", lambda w: w.late_share, "late", lambda w: _share(w.late_share)),
    Column("stages_in_use", lambda w: w.stages_in_use, "stages in use", lambda w: _stages(w.stages_in_use), rank=3),
)


class PhasesView(Document):
    """One launch, drawn for its block of median length."""

    def __init__(self, of: ProbeResult, launch: Phases) -> None:
        self.title = f"Phases of {of.name}"
        self.of = of
        self.launch = launch
        self.rows = rows_of(launch)
        self.waits = waits_of(launch)
        self.overlap = overlap_of(launch)
        self.block = launch.median_block
        self.moved = moved_in_trace(of, launch.sites)
        """Instructions of SASS that are of other named phases, by phase; None if unknown."""

    def _head(self, cells: int) -> str:
        """Return the kernel, its name cut to fit, and the block that is drawn."""
        cycles = units.count(self.launch.block_cycles[self.block])
        about = f", {self.of.which}: block {self.block}, {cycles} cycles"
        return clip(shorten(self.of.name, max(cells - len(about), _MIN_NAME)) + about, cells)

    def notes(self) -> Iterator[str]:
        """Return waits, overlap, and what was left out."""
        yield from self._longest_wait()
        yield from self._other_notes()

    def _longest_wait(self) -> list[str]:
        """The answer of the page: which role waits longest, and for whom."""
        return [wait_text(wait) for wait in self._notable_waits[:1]]

    @cached_property
    def _notable_waits(self) -> list[Wait]:
        return [wait for wait in self.waits if wait.share >= _NOTABLE_WAIT and wait.late_share is not None]

    def _other_notes(self) -> Iterator[str]:
        yield from (wait_text(wait) for wait in self._notable_waits[1:])
        launch, overlap = self.launch, self.overlap
        if overlap is not None:
            compute, load, both, idle = (percent(part, 1) for part in overlap.parts)
            yield (
                f"block time: {compute} computing, {load} issuing loads, {both} both, {idle} none of"
                " these (waits, integer and other work)"
            )
        yield from self._tensor_notes()
        if launch.kept_text:
            yield f"kept: {launch.kept_text}{self._unrecorded_text()}"
        if launch.sampled_text:
            yield f"recorded: {launch.sampled_text}"
        if launch.phases_missing:
            starts = units.counted(launch.phases_missing, "phase start")
            yield (
                f"{starts} could not be recorded in the SASS; the time of each such phase is added to the phase before"
                " it"
            )
        for phase in launch.phases:
            if phase.waits:
                yield f"{phase.name}: contains {', '.join(phase.waits)}"
            if phase.moved:
                yield (
                    f"{phase.name}: includes {units.counted(phase.moved, 'instruction')} of other named phases, which"
                    f" the compiler moved here"
                )
        yield from self._unnamed_notes()
        for name, count in (self.moved or {}).items():
            if count:
                yield f"{name}: includes at least {units.counted(count, 'SASS instruction')} of other named phases"
        yield from self._measurement_notes()

    def _unrecorded_text(self) -> str:
        if not self.launch.unrecorded:
            return ""
        share = percent(self.launch.unrecorded, self.launch.life)
        return (
            f"; {share} of warp life has no record (?), so the shares of all phases are too low. To record more of it,"
            " name fewer phases with --phase, or use --phase-records every:8; for the end, --phase-records last"
        )

    def _unnamed_notes(self) -> Iterator[str]:
        """Yield where the time goes that is in no phase that the user named, if it is much."""
        others = [row for row in self.rows if not row.phase.is_named]
        cycles = sum(row.cycles for row in others)
        if len(others) == len(self.rows) or cycles < _NOTABLE_UNNAMED * self.launch.life:
            return
        longest = max(others, key=lambda row: row.cycles)
        place = f" ({longest.place})" if longest.place else ""
        yield (
            f"in no named phase: {percent(cycles, self.launch.life)} of warp life, most of it in"
            f" {longest.phase.name}{place}. Compilers may give all code of a loop one line (CuTe DSL: the line of the"
            " function's end). Include this line in a --phase, or omit --phase: automatic phases name each loop"
        )

    def _measurement_notes(self) -> Iterator[str]:
        """Sentences on the measurement of the launch."""
        launch = self.launch
        if launch.sample is not None:
            yield sampled_blocks_text(launch.sample)
        slowdown = self.of.kernel.slowdown
        if slowdown is not None:
            yield f"slowdown with the probe: {slowdown:.2f}×"
        if self.of.simulated:
            yield "simulated: cycles of a model"

    def _tensor_notes(self) -> Iterator[str]:
        """Sentences on the tensor cores: a role's rate over the whole block, and in each phase that issues products."""
        if TensorRates.of(self.launch, self.block) is not None:
            of = "an SM's tensor-core peak" if self.of.products_per_clock else "the highest rate in the row"
            yield f"row “tensor”: multiply-adds issued per cycle, in tenths of {of}"
        for role in self.launch.roles:
            rows = [row for row in self.rows if row.role == role]
            issuing = [row for row in rows if row.multiply_adds]
            if not issuing:
                continue
            cycles = sum(row.cycles for row in rows)
            issued = sum(row.multiply_adds or 0 for row in issuing)
            text = f"{role}: {self._rate(issued * issuing[0].warps / issuing[0].blocks / cycles)} over the whole block"
            text += "".join(f", {self._issue_rate(row)}" for row in issuing)
            yield text
        yield from self._gap_notes()

    @cached_property
    def _product_gaps(self) -> ProductGaps | None:
        return ProductGaps.of(self.launch, self.block)

    def _gap_notes(self) -> Iterator[str]:
        """Sentences on the time without products, and the phases in which roles spend it that issue products."""
        gaps = self._product_gaps
        if gaps is None or gaps.cycles < _NOTABLE_GAPS * gaps.recorded:
            return
        parts = []
        for role, cycles in gaps.by_role.items():
            longest = sorted(cycles, key=lambda phase: -cycles[phase])[:_SHOWN_GAPS]
            phases = (
                f"{percent(cycles[phase], gaps.recorded)} in {self.launch.phases[phase].name}" for phase in longest
            )
            parts.append(f"{self.launch.roles[role]}: {', '.join(phases)}")
        share = percent(gaps.cycles, gaps.recorded)
        yield f"without products: {share} of block {self.block}'s time ({'; '.join(parts)})"

    def _issue_rate(self, row: PhaseRow) -> str:
        """The rate in a phase. Asynchronous products also execute after it, so they can be issued above the peak."""
        rate, peak = row.per_clock() or 0, self.of.products_per_clock
        if peak is not None and rate > peak:
            return f"{row.phase.name} issues products above the peak rate, so some of them execute after this phase"
        return f"{self._rate(rate)} in {row.phase.name}"

    def _rate(self, per_clock: float) -> str:
        peak = self.of.products_per_clock
        if peak is None:
            return f"{units.count(round(per_clock))} tensor-core multiply-adds per cycle"
        return f"{percent(per_clock, peak)} of an SM's tensor-core peak"

    def lines(self, width: int) -> Sequence[Line]:
        head = self._head(width - 1)
        table = titled_table(head, _COLUMNS, self.rows, (), width)
        waits = [((f" {part}", ""),) for note in self._longest_wait() for part in wrap(note, width - 1)]
        notes = (((f" {part}", "dim"),) for note in self._other_notes() for part in wrap(note, width - 1))
        drawn = list(lanes(self.launch, self.block, width, self.of.products_per_clock))
        return [
            ((f" {head}", "title"),),
            *drawn,
            (),
            *([*waits, ()] if waits else []),
            *table[1:],
            *self._barrier_table(width),
            *notes,
        ]

    def _barrier_table(self, width: int) -> list[Line]:
        """The waits at barriers, below an empty line; nothing without waits."""
        table = titled_table("", _BARRIER_COLUMNS, self._at_barriers, (), width)[1:]
        return [(), *table, ()] if table else []

    @cached_property
    def _at_barriers(self) -> list[Wait]:
        return [wait for wait in self.waits if wait.phase.work in BARRIER_WAITS]

    def pinned(self, width: int) -> int:
        del width
        return 1

    def gutter(self, width: int) -> int:
        return width

    def begins(self, width: int) -> int:
        """The first row of the table."""
        return len(self.lines(width)) - self._below(width)

    def _below(self, width: int) -> int:
        notes = sum(len(wrap(note, width - 1)) for note in self._other_notes())
        return len(self.rows) + len(self._barrier_table(width)) + notes

    def ptx_line(self, number: int, width: int) -> int | None:
        """The first line of the phase in a row of the table, or of the wait in a row of the table of barriers."""
        place = number - self.begins(width)
        lines: list[int | None] = [row.site.instruction.line for row in self.rows]
        lines += [*[None] * _HEADINGS, *(wait.line for wait in self._at_barriers)]
        return lines[place] if 0 <= place < len(lines) else None

    def place_of(self, ptx_line: int, width: int) -> int | None:
        """The row of the phase that begins at a line."""
        for place, row in enumerate(self.rows):
            if ptx_line in row.phase.lines:
                return place + self.begins(width)
        return None

    def target_view(self) -> str:
        return "ptx"

    def record(self) -> dict[str, Any]:
        launch, overlap = self.launch, self.overlap
        warps = shown_warps(launch, self.block)
        window = main_iterations(launch, warps)
        return {
            "block": self.block,
            "block_cycles": launch.block_cycles[self.block],
            "blocks": len(launch.block_cycles),
            "warps": len(launch.warps.block),
            "roles": [
                {"role": name, "warps": int((launch.warps.role == role).sum())}
                for role, name in enumerate(launch.roles)
            ],
            "named_share": launch.named(),
            "starts": launch.starts_seen,
            "starts_kept": launch.starts_kept,
            "kept": "last" if launch.keeps_last else "first",
            "every": launch.every or None,
            "starts_not_recorded": launch.phases_missing,
            "moved_in_sass": self.moved,
            "multiply_adds": multiply_adds(launch),
            "tensor_peak": self.of.products_per_clock,
            "tensor": self._tensor_record(),
            "overlap": None
            if overlap is None
            else dict(zip(("compute", "load", "both", "idle"), overlap.parts, strict=True)),
            "phases": [as_record(_COLUMNS, row) for row in self.rows],
            "waits": [_wait_record(wait) for wait in self.waits],
            "main_iterations": None
            if window is None
            else dict(zip(("first", "last", "start", "end"), window, strict=True)),
            "lanes": [self._lane_record(warp) for warp in warps],
        }

    def _tensor_record(self) -> dict[str, Any] | None:
        """The row “tensor” as sums of multiply-adds from the start of the block to each cycle, and its gaps."""
        rates, gaps = TensorRates.of(self.launch, self.block), self._product_gaps
        if rates is None or gaps is None:
            return None
        return {
            "cycle": rates.times.tolist(),
            "multiply_adds": rates.issued.tolist(),
            "recorded_cycles": gaps.recorded,
            "gap_cycles": gaps.cycles,
            "gaps": [
                {"role": self.launch.roles[role], "phase": self.launch.phases[phase].name, "cycles": cycles}
                for role, phases in gaps.by_role.items()
                for phase, cycles in phases.items()
            ],
        }

    def _lane_record(self, warp: int) -> dict[str, Any]:
        launch = self.launch
        spans = launch.spans.where(launch.spans.warp == warp)
        return {
            "warp": int(launch.warps.warp[warp]),
            "role": launch.roles[int(launch.warps.role[warp])],
            "start": spans.start.tolist(),
            "end": spans.end.tolist(),
            "letter": [launch.phases[phase].letter if phase >= 0 else None for phase in spans.phase.tolist()],
        }

    def trace_events(self) -> Iterator[dict[str, Any]]:
        return trace_events(self.launch, self.waits, f"{self.of.which} {self.of.name}", self.of.clock_khz)

    def trace_facts(self) -> dict[str, Any]:
        return {
            "simulated": self.of.simulated,
            "time": "cycles since the block began, at the device's highest clock"
            if self.of.clock_khz
            else "cycles: 1 ns in this file is 1 cycle, because the clock rate is unknown",
            "blocks": self.launch.some_blocks,
        }

    def cells(self) -> Iterator[Sequence[object]]:
        columns = [column for column in in_data(_COLUMNS) if column.key not in ("ptx_lines", "waits", "tensors")]
        yield [column.key for column in columns]
        for row in self.rows:
            yield [column.value(row) for column in columns if column.value is not None]


def wait_text(wait: Wait) -> str:
    """``consumer waits 62% of its time in loop: full[2] wait (mbarrier for bulk copy of K, attn.cu:40). During …``."""
    places = [text for text in (_mbarrier_text(wait), wait.place) if text]
    place = f" ({', '.join(places)})" if places else ""
    waits, its = ("wait", "their") if wait.role == ALL_WARPS else ("waits", "its")
    text = f"{wait.role} {waits} {percent(wait.share, 1)} of {its} time in {wait.phase.name}{place}"
    if wait.late_share is None:
        return text
    if wait.late_share < _NOTICED:
        return f"{text}. {_prompt_text(wait)}"
    text += f". During {percent(wait.late_share, 1)} of this wait, "
    if wait.signal is None:
        return f"{text}{_late_warp_text(wait)}{_busy_text(wait)}"
    full = f"; all {wait.stages_full} stages are in use" if wait.stages_full else ""
    order = _stages_text(wait) if wait.by_order else "; waits are matched with signals by time"
    return (
        f"{text}{wait.partner} has not finished {wait.signal.name}; the rest is for copies or the barrier"
        f"{order}{full}{_busy_text(wait)}"
    )


def _stages_text(wait: Wait) -> str:
    """Return the use of the pipeline by a role that may run ahead; "" for others, and without a pipeline."""
    if wait.ahead < 2 or wait.stages_in_use is None:
        return ""
    return f"; on average, {wait.role} has {wait.stages_in_use:.1f} of {wait.ahead} stages in use"


def _mbarrier_text(wait: Wait) -> str:
    """Return ``mbarrier for bulk copy of K``: what a barrier is for whose name alone does not tell."""
    if wait.phase.work != MBARRIER or not wait.phase.barriers:
        return ""
    of = ", ".join(wait.phase.tensors)
    return f"mbarrier for {wait.signal.work} of {of}" if of and wait.signal is not None else "mbarrier"


def _prompt_text(wait: Wait) -> str:
    """Sentence on a wait for which no warp is late."""
    if wait.signal is None:
        return "All warps arrive at nearly the same time"
    return f"No warp is late, so the wait is for copies or for the barrier itself{_stages_text(wait)}"


def _late_warp_text(wait: Wait) -> str:
    if wait.last_share is None or (wait.late_share or 0.0) < _MOSTLY:
        return "the last warp has not arrived"
    if wait.last_share >= _ALMOST_ALWAYS:
        return f"warp {wait.last_warp} has not arrived"
    return f"the last warp has not arrived (warp {wait.last_warp} in {percent(wait.last_share, 1)} of this time)"


def _busy_text(wait: Wait) -> str:
    """Return the work of those for whom a role mostly waits; "" where it waits for something else."""
    if wait.occupation is None or wait.occupied < _TELLING or (wait.late_share or 0.0) < _MOSTLY:
        return ""
    late = f"warp {wait.last_warp}" if wait.partner is None else wait.partner
    place = f" ({wait.occupied_at})" if wait.occupied_at else ""
    return f". Meanwhile, {late} spends {percent(wait.occupied, 1)} of its time in {wait.occupation.name}{place}"


def _wait_record(wait: Wait) -> dict[str, Any]:
    return {
        "role": wait.role,
        "phase": wait.phase.name,
        "letter": wait.phase.letter,
        "place": wait.place or None,
        "barriers": list(wait.phase.barriers),
        "waits": wait.count,
        "cycles": wait.cycles,
        "share": wait.share,
        "partner": wait.partner,
        "signal": None if wait.signal is None else wait.signal.name,
        "late_share": wait.late_share,
        "partner_busy_in": None if wait.occupation is None else wait.occupation.name,
        "partner_busy_at": wait.occupied_at or None,
        "partner_busy_share": None if wait.occupation is None else wait.occupied,
        "last_warp": wait.last_warp,
        "last_share": wait.last_share,
        "stages_ahead": wait.ahead if wait.by_order else None,
        "stages_full": wait.stages_full or None,
        "arrivals_per_phase": wait.arrivals or None,
        "arrivals": wait.signals or None,
        "stages_in_use": wait.stages_in_use,
        "matched_by": None if wait.partner is None else "order" if wait.by_order else "time",
    }


def open_view(source: ViewSource, progress: Progress) -> PhasesView:
    """Read the phases of a launch."""
    progress(0.0)
    of = probe_results.read_result(source)
    launch = analyse_launch(of)
    progress(0.5)
    return PhasesView(of, launch)
