"""Page ``phases``: what the warps of a block do over time, phases by role, and who waits for whom."""

from __future__ import annotations

from dataclasses import replace
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
from tui_probe.ptx.phase_names import BARRIER_WAITS
from tui_probe.trace.kernel_files import code_page
from tui_probe.trace.kernel_status import demangle

from .analysis import analyse_launch
from .code_phases import moved_in_trace
from .lanes import lanes, main_iterations, shown_warps, trace_events
from .sentences import Sentences
from .stalls import PhaseStalls, stalls_of
from .tables import PhaseRow, TensorRates, multiply_adds, overlap_of, rows_of
from .waits import Wait, waits_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tui_probe.draw.spans import Line
    from tui_probe.draw.view import Progress
    from tui_probe.probekit.page_kinds import ViewSource
    from tui_probe.probekit.probe import MeasuredWait
    from tui_probe.probekit.probe_results import ProbeResult

    from .analysis import LaunchPhases
    from .kinds import Phase

_MIN_NAME_CELLS: Final = 12
_MIN_PLACE_CELLS: Final = 16
_SHARE_OF_ALL: Final = "warps' time"
"""Title of the share where all warps have one role."""
_TITLE_LINES: Final = 2
"""Lines with the titles of a table and the rule below them."""
_HEADING_LINES: Final = 1 + _TITLE_LINES
"""Lines between the table of phases and the first row of the table of barriers."""


def _cycles_text(value: float) -> str:
    return units.count(round(value))


def _share_text(part: float | None) -> str:
    return units.NOT_MEASURED if part is None else percent(part, 1)


def _line_text(row: PhaseRow) -> str:
    """``:17``; the file is in the first line."""
    return f":{row.place.rpartition(':')[2]}" if row.place else units.NOT_MEASURED


def _stages_text(mean: float | None) -> str:
    return units.NOT_MEASURED if mean is None else f"{mean:.1f}"


_COLUMNS: Final[tuple[Column[PhaseRow], ...]] = (
    Column("letter", lambda r: r.phase.letter, "", lambda r: "" if r.part else r.phase.letter, right=False),
    Column("phase", lambda r: r.phase.name, "phase", lambda r: r.name, right=False, narrow=_MIN_NAME_CELLS),
    Column("role", lambda r: r.role, "role", lambda r: r.role, right=False, rank=1),
    Column("share", lambda r: r.share, "role's time", lambda r: percent(r.share, 1)),
    Column("median", lambda r: r.median, "median cycles", lambda r: _cycles_text(r.median)),
    Column("p95", lambda r: r.p95, "p95", lambda r: _cycles_text(r.p95), rank=2),
    Column("iterations", lambda r: r.iterations, "times", lambda r: units.count(r.iterations), rank=3),
    Column(
        "place",
        lambda r: r.place or None,
        "source",
        lambda r: r.place or units.NOT_MEASURED,
        right=False,
        narrow=_MIN_PLACE_CELLS,
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
    Column("moved", lambda r: r.phase.moved_count),
    Column("waits", lambda r: list(r.phase.waits)),
    Column("tensors", lambda r: list(r.phase.tensors)),
)


_BARRIER_COLUMNS: Final[tuple[Column[Wait], ...]] = (
    Column("letter", lambda w: w.phase.letter, "", lambda w: w.phase.letter, right=False),
    Column("barrier", lambda w: w.barrier, "barrier", lambda w: w.barrier, right=False, narrow=_MIN_NAME_CELLS),
    Column("role", lambda w: w.role, "waiting", lambda w: w.role, right=False, rank=1),
    Column("waits", lambda w: w.count, "waits", lambda w: units.count(w.count)),
    Column(
        "arrivals",
        lambda w: w.signal_count,
        "arrivals",
        lambda w: units.count(w.signal_count) if w.signal_count else units.NOT_MEASURED,
    ),
    Column(
        "partner", lambda w: w.late_name, "waits for", lambda w: w.late_name or units.NOT_MEASURED, right=False, rank=2
    ),
    Column("late", lambda w: w.late_share, "late", lambda w: _share_text(w.late_share)),
    Column(
        "stages_in_use", lambda w: w.stages_in_use, "stages in use", lambda w: _stages_text(w.stages_in_use), rank=3
    ),
)


class PhasesView(Document):
    """One launch, drawn for its block of median length."""

    def __init__(self, probe_result: ProbeResult, launch: LaunchPhases, stalls: PhaseStalls | None = None) -> None:
        """``stalls``: waits of single instructions, if another probe of the run measured them."""
        self.probe_result, self.name = probe_result, demangle(probe_result.kernel_name)
        self.title = f"Phases of {self.name}"
        self.launch = launch
        self.rows = rows_of(launch)
        self._table_rows = [part for row in self.rows for part in (row, *row.parts)]
        self.waits = waits_of(launch)
        self.overlap = overlap_of(launch)
        self.block = launch.median_block
        self.moved_counts = moved_in_trace(probe_result, launch.sites)
        """Instructions of SASS that are of other named phases, by phase; None if unknown."""
        self.stalls = stalls
        self.sentences = Sentences(probe_result, launch, self.block, self.moved_counts, stalls)
        self._first_row = 0
        """Line of the first row of the table, of the lines that were made last."""

    def _head(self, cells: int) -> str:
        """Return the kernel, its name cut to fit, and the block that is drawn."""
        cycles = units.count(self.launch.block_cycles[self.block])
        description = f", {self.probe_result.launch_label}: block {self.block}, {cycles} cycles"
        legend = "; ?: not recorded" if self.launch.sampled_text or self.launch.unrecorded else ""
        if len(description) + len(legend) + _MIN_NAME_CELLS <= cells:
            description += legend
        if len(description) + len(self._file_text) + _MIN_NAME_CELLS <= cells:
            description += self._file_text
        return clip(shorten(self.name, max(cells - len(description), _MIN_NAME_CELLS)) + description, cells)

    def notes(self) -> Iterator[str]:
        """Return waits, overlap, and what was left out."""
        yield from self.sentences.longest_wait()
        yield from self.sentences.other_notes()

    @cached_property
    def _file_text(self) -> str:
        """``; gather.cu``: the source file that all rows share; "" if there are several or none."""
        files = {row.place.rpartition(":")[0] for row in self.rows if row.place}
        return f"; {files.pop()}" if len(files) == 1 else ""

    def _columns(self, head: str) -> list[Column[PhaseRow]]:
        """Return the columns; that of roles only if there are several, and lines without the file that heads all."""
        columns = {column.key: column for column in _COLUMNS}
        if len({row.role for row in self.rows}) == 1:
            columns["share"] = replace(columns.pop("share"), title=_SHARE_OF_ALL)
            columns = {column.key: columns[column.key] for column in _COLUMNS if column.key != "role"}
        if self._file_text and head.endswith(self._file_text):
            columns["place"] = replace(columns["place"], title="line", text=_line_text, narrow=None)
        return list(columns.values())

    def lines(self, width: int) -> Sequence[Line]:
        head = self._head(width - 1)
        table = titled_table(head, self._columns(head), self._table_rows, (), width)
        waits = [((f" {part}", ""),) for note in self.sentences.longest_wait() for part in wrap(note, width - 1)]
        notes = (((f" {part}", "dim"),) for note in self.sentences.other_notes() for part in wrap(note, width - 1))
        lane_lines = list(lanes(self.launch, self.block, width, self.probe_result.products_per_clock))
        top_lines: list[Line] = [((f" {head}", "title"),), *lane_lines, (), *([*waits, ()] if waits else [])]
        self._first_row = len(top_lines) + _TITLE_LINES
        return [*top_lines, *table[1:], *self._barrier_table(width), *notes]

    def headings(self) -> Sequence[tuple[range, range]]:
        """Titles and rows of the table of phases and of the table of barriers, of those that have rows."""
        start, end = self._first_row, self._first_row + len(self._table_rows)
        barriers = end + _HEADING_LINES
        tables = (range(start, end), range(barriers, barriers + len(self._barrier_waits)))
        return tuple((range(rows.start - _TITLE_LINES, rows.start), rows) for rows in tables if rows)

    def _barrier_table(self, width: int) -> list[Line]:
        """The waits at barriers, below an empty line; nothing without waits."""
        table_lines = titled_table("", _BARRIER_COLUMNS, self._barrier_waits, (), width)[1:]
        return [(), *table_lines, ()] if table_lines else []

    @cached_property
    def _barrier_waits(self) -> list[Wait]:
        return [wait for wait in self.waits if wait.phase.work in BARRIER_WAITS]

    def pinned(self, width: int) -> int:
        del width
        return 1

    def gutter(self, width: int) -> int:
        return width

    def begins(self, width: int) -> int:
        """The first row of the table."""
        return len(self.lines(width)) - self._lines_below(width)

    def _lines_below(self, width: int) -> int:
        notes = sum(len(wrap(note, width - 1)) for note in self.sentences.other_notes())
        return len(self._table_rows) + len(self._barrier_table(width)) + notes

    def ptx_line(self, number: int, width: int) -> int | None:
        """The first line of the phase in a row of the table, or of the wait in a row of the table of barriers."""
        place = number - self.begins(width)
        lines: list[int | None] = [row.site.instruction.line for row in self._table_rows]
        lines += [*[None] * _HEADING_LINES, *(wait.line for wait in self._barrier_waits)]
        return lines[place] if 0 <= place < len(lines) else None

    def place_of(self, ptx_line: int, width: int) -> int | None:
        """The row of the phase that begins at a line."""
        for number, row in enumerate(self._table_rows):
            if ptx_line in row.phase.lines:
                return number + self.begins(width)
        return None

    def target_view(self) -> str:
        return code_page(site.instruction.line for site in self.launch.sites)

    def record(self) -> dict[str, Any]:
        launch, overlap = self.launch, self.overlap
        warps = shown_warps(launch, self.block)
        iterations = main_iterations(launch, warps)
        return {
            "block": self.block,
            "block_cycles": launch.block_cycles[self.block],
            "blocks": len(launch.block_cycles),
            "warps": len(launch.warps.block),
            "roles": [
                {"role": name, "warps": int((launch.warps.role == role).sum())}
                for role, name in enumerate(launch.roles)
            ],
            "named_share": launch.named_share(),
            "starts": launch.starts_seen,
            "starts_kept": launch.starts_kept,
            "kept": "last" if launch.keeps_last else "first",
            "every": launch.sampling_period or None,
            "starts_not_recorded": launch.phases_missing,
            "moved_in_sass": self.moved_counts,
            "multiply_adds": multiply_adds(launch),
            "tensor_peak": self.probe_result.products_per_clock,
            "tensor": self._tensor_record(),
            "overlap": None
            if overlap is None
            else dict(zip(("compute", "load", "both", "idle"), overlap.parts, strict=True)),
            "phases": [
                as_record(_COLUMNS, row) | _parts_record(row) | self._stalls_record(row.phase) for row in self.rows
            ],
            "stalls": None
            if self.stalls is None or self.stalls.problem
            else {
                "launches": self.stalls.launches,
                "elsewhere": [_stall_record(stall) for stall in self.stalls.elsewhere],
            },
            "waits": [_wait_record(wait) for wait in self.waits],
            "main_iterations": None if iterations is None else iterations._asdict(),
            "lanes": [self._lane_record(warp) for warp in warps],
        }

    def _stalls_record(self, phase: Phase) -> dict[str, Any]:
        """The waits of single instructions in a phase, of all roles together; None if none were measured."""
        if self.stalls is None or self.stalls.problem:
            return {"stalls": None}
        waits = self.stalls.by_phase.get(self.launch.phases.index(phase), ())
        return {"stalls": [_stall_record(wait) for wait in waits]}

    def _tensor_record(self) -> dict[str, Any] | None:
        """The row “tensor” as sums of multiply-adds from the start of the block to each cycle, and its gaps."""
        rates, gaps = TensorRates.for_block(self.launch, self.block), self.sentences.product_gaps
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
        spans = launch.spans.select(launch.spans.warp == warp)
        return {
            "warp": int(launch.warps.warp[warp]),
            "role": launch.roles[int(launch.warps.role[warp])],
            "start": spans.start.tolist(),
            "end": spans.end.tolist(),
            "letter": [launch.phases[phase].letter if phase >= 0 else None for phase in spans.phase.tolist()],
        }

    def trace_events(self) -> Iterator[dict[str, Any]]:
        return trace_events(
            self.launch, self.waits, f"{self.probe_result.launch_label} {self.name}", self.probe_result.clock_khz
        )

    def trace_facts(self) -> dict[str, Any]:
        return {
            "simulated": self.probe_result.simulated,
            "time": "cycles since the block began, at the device's highest clock"
            if self.probe_result.clock_khz
            else "cycles: the clock rate is unknown, so 1 ns in this file stands for 1 cycle",
            "blocks": self.launch.some_blocks,
        }

    def cells(self) -> Iterator[Sequence[object]]:
        columns = [column for column in in_data(_COLUMNS) if column.key not in ("ptx_lines", "waits", "tensors")]
        yield [column.key for column in columns]
        for row in self.rows:
            yield [column.value(row) for column in columns if column.value is not None]


def _parts_record(row: PhaseRow) -> dict[str, Any]:
    """The warps that take much longer than others of the role, and the others; none where all take about as long."""
    keys = ("warps", "cycles", "share", "iterations", "median", "p95")
    return {"slow_warps": [{"part": part.part} | {key: getattr(part, key) for key in keys} for part in row.parts]}


def _stall_record(wait: MeasuredWait) -> dict[str, Any]:
    return {
        "offset": wait.offset,
        "sass": wait.instruction,
        "place": wait.place or None,
        "waits_for": wait.kind or None,
        "producer": wait.producer or None,
        "share": wait.share,
    }


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
        "partner_busy_at": wait.occupation_place or None,
        "partner_busy_share": None if wait.occupation is None else wait.occupation_share,
        "last_warp": wait.last_warp,
        "last_share": wait.last_share,
        "stages_ahead": wait.stages_ahead,
        "stages_full": wait.stages_full or None,
        "arrivals_per_phase": wait.arrivals or None,
        "arrivals": wait.signal_count or None,
        "stages_in_use": wait.stages_in_use,
        "matched_by": None if wait.partner is None else "order" if wait.by_order else "time",
    }


def open_view(source: ViewSource, progress: Progress) -> PhasesView:
    """Read the phases of a launch."""
    progress(0.0)
    probe_result = probe_results.read_result(source)
    launch = analyse_launch(probe_result)
    progress(0.5)
    return PhasesView(probe_result, launch, stalls_of(source, probe_result, launch))
