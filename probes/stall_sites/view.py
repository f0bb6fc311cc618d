"""Page ``stalls``: the wait sites of a kernel by share of warp life, from all groups that had a launch."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any, Final

from tui_probe.draw import units
from tui_probe.draw.shorten import shorten
from tui_probe.draw.spans import clip
from tui_probe.draw.table import as_record, in_data, shown_keys
from tui_probe.draw.table_content import titled_table
from tui_probe.draw.view import Document
from tui_probe.errors import TraceError
from tui_probe.probekit import probe_results
from tui_probe.probekit.finding import percent
from tui_probe.probekit.probe_view import probe_view
from tui_probe.probekit.recognised import analysis_name
from tui_probe.probekit.shown_results import joined_sources

from .analysis import DELAY, GROUPS, MIN_PERCENT, Stalls, analyse, measured_text, with_tensors
from .columns import (
    DATA_COLUMNS,
    StallRow,
    are_copies,
    is_bound,
    occupancy_notes,
    rows_text,
    share_text,
    slowdown_text,
    stall_columns,
)

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence

    from tui_probe.draw.spans import Line
    from tui_probe.draw.view import Progress
    from tui_probe.probekit.page_kinds import ViewSource
    from tui_probe.probekit.probe_results import ProbeResult
    from tui_probe.trace.model import KernelFacts

    from .analysis import StallSite

_HEADING_LINES: Final = 3
_MIN_NAME_CELLS: Final = 12
_MAX_NAMED: Final = 6
"""Instructions, or source lines, that a note names."""


class StallsView(Document):
    """The newest result of each group, or that nearest to a launch."""

    def __init__(self, source: ViewSource, progress: Progress) -> None:
        progress(0.0)
        self.title = f"Stalls of {source.kernel.demangled}"
        self.results = _results(source)
        groups = _groups_of_run(source)
        self._groups = len(groups)
        self._has_further_groups = not groups <= _groups_of_kernel(source)
        self._launch = source.launch
        self.stalls = Stalls.join([stalls for _, stalls in self.results])
        self._places_by_offset = self.stalls.places()
        rows = [row for result, stalls in self.results for row in _rows_of_group(result.kernel, stalls)]
        self.sites = sorted(rows, key=lambda row: -(row.site.share or 0))
        """All measured sites."""
        self.rows = [row for row in self.sites if row.site.passes]
        """Executed sites, the rows of the table."""
        self.slowdowns = [result.kernel.slowdown for result, _ in self.results]
        """Times as long as without the probe that launches took with each group; None if not timed."""
        self._name = source.kernel.demangled
        progress(1.0)

    @property
    def not_measured(self) -> int | None:
        """Wait sites that no launch has measured yet."""
        return None if self.stalls.total is None else self.stalls.total - len(self.sites)

    def notes(self, column_keys: Collection[str]) -> Iterator[str]:
        """Yield notes for a table with these columns: first causes of waits, then what the shares leave out."""
        yield from self._copy_notes()
        yield from self._memory_notes()
        yield self._remainder_note()
        yield from _sample_notes(self.results, has_executions="executions" in column_keys)
        yield from self._launch_notes()
        yield from occupancy_notes([result.kernel for result, _ in self.results])
        yield from self._line_note()
        yield from self._site_notes()
        if any(row.site.kind and not row.site.producer for row in self.rows):
            yield (
                "producer –: unknown; a barrier wait ends when the last warp arrives, and the probe does not"
                " record this warp"
            )
        yield self._cost_note()
        yield self._cycles_note(column_keys)
        yield "waits include cycles in which a warp is ready but not selected"
        if "null_share" in column_keys:
            yield "clock reads: share of warp life that the probe's clock reads take, in addition to the waits"

    def _cycles_note(self, column_keys: Collection[str]) -> str:
        """Return what the columns of cycles are, and their error."""
        names = {"mean": "mean", "longest": "max"}
        cycles = ", ".join(title for key, title in names.items() if key in column_keys)
        share = percent(max((row.site.share_uncertainty or 0 for row in self.rows), default=0.0), 1)
        text = (
            f"{cycles}: cycles per wait, including an estimate of hidden cycles. The probe hides up to {DELAY} cycles"
            " of each wait; the estimate is at most as large as the measured cycles."
        )
        text += " ± is the largest error of this estimate per wait." if "mean_uncertainty" in column_keys else ""
        text += f" In the column “warp life”, this error is {share if share.startswith('<') else f'at most {share}'}"
        text += " for each row."
        text += (
            f" The error does not cover two effects: a full SM may hide more than {DELAY} cycles, and the probe's delay"
            " may change a wait."
        )
        if "longest" in column_keys and any(row.site.longest_wait is None for row in self.rows):
            text += f" max {units.NOT_MEASURED}: the maximum was not recorded (too few free uniform registers)."
        if any(is_bound(value) for row in self.rows for value in (row.site.per_pass, row.site.longest_wait)):
            text += f" “≤ {DELAY}”: the measured cycles round to 0. On a full SM, the true value may be larger"
        return text.rstrip(".")

    def _remainder_note(self) -> str:
        """Return what the measured waits and the rest of warp life are."""
        unmeasured = (
            "sites that were not measured"
            if self.not_measured is None
            else f"{units.counted(self.not_measured, 'site')} not measured"
            if self.not_measured
            else ""
        )
        return f"measured waits: {measured_text(self.stalls, unmeasured)}"

    def _launch_notes(self) -> Iterator[str]:
        """Yield how many launches measured the sites of each group, and the executed sites that no further launch
        measures.
        """
        counts = [len(result.kernel.result_rows) for result, _ in self.results]
        groups = "wait sites are measured in groups of up to eight, one group per launch"
        if max(counts) > 1:
            numbers = ", ".join(map(units.count, counts))
            launch_text = "newest launch" if self._launch is None else f"launch nearest to launch {self._launch.number}"
            groups += f"; launches per group: {numbers}. A row shows the {launch_text} of its group"
        yield groups
        offsets_by_launch: dict[int, list[int]] = {}
        for row in self.rows:
            if row.ended_after is not None:
                offsets_by_launch.setdefault(row.ended_after, []).append(int(row.site.line))
        for launch, offsets in sorted(offsets_by_launch.items()):
            yield (
                f"{units.counted(len(offsets), 'site')} not measured in launches queued after the result of launch"
                f" {launch}, because no wait of their group reached {MIN_PERCENT}% of warp life in that launch:"
                f" {self._places(offsets)}"
            )

    def _line_note(self) -> Iterator[str]:
        """Yield the sums of the source lines that have several rows."""
        sites: dict[str, list[StallSite]] = {}
        for row in self.rows:
            if row.site.place:
                sites.setdefault(row.site.place, []).append(row.site)
        shared_lines = sorted(
            (
                (sum(site.share or 0 for site in place_sites), place)
                for place, place_sites in sites.items()
                if len(place_sites) > 1
            ),
            reverse=True,
        )
        texts = [f"{place} {share_text(share)} ({rows_text(sites[place])})" for share, place in shared_lines]
        if not texts:
            return
        has_copies = any(are_copies(sites[place]) for _, place in shared_lines[:_MAX_NAMED])
        meaning = "; N × SASS: N rows with the same number of executions, as in an unrolled loop" if has_copies else ""
        yield f"source lines with several rows: {units.listed(texts, _MAX_NAMED)}{meaning}"

    def _copy_notes(self) -> Iterator[str]:
        """Yield the notable waits of pipelines of depth 1."""
        for line in self.stalls.lines:
            is_notable = 100 * (line.main_site.share or 0) >= MIN_PERCENT
            if is_notable and line.copies_of_this_iteration:
                place = line.main_site.place or f"{int(line.main_site.line):#06x}"
                yield f"{place}: the loop starts this copy in the iteration that waits for it (pipeline of depth 1)"

    def _memory_notes(self) -> Iterator[str]:
        """Yield where spills are counted by line."""
        if any(row.site.wait and row.site.wait.spills for row in self.sites):
            yield "spills or local arrays: page Lines counts their loads and stores by line"

    def _site_notes(self) -> Iterator[str]:
        """Yield the sites without a row, by offset and line."""
        idle_offsets = [int(row.site.line) for row in self.sites if not row.site.passes]
        if idle_offsets:
            yield f"{units.counted(len(idle_offsets), 'site')} not executed in the sample: {self._places(idle_offsets)}"
        yield from self._hidden_notes()
        if not self.not_measured:
            return
        places = self._places(self.stalls.unmeasured)
        further = self._has_further_groups
        further_text = "; more launches measure further groups" if further else ""
        reason = (
            ""
            if further
            else f", because all {self._groups} groups are full: sites that disturb each other must be in different"
            " groups"
        )
        places_text = f": {places}" if places else ""
        yield f"{units.counted(self.not_measured, 'wait site')} not measured{reason}{places_text}{further_text}"

    def _hidden_notes(self) -> Iterator[str]:
        """Yield the instructions whose waits cannot be measured."""
        texts = [
            f"{len(offsets)} × {name} ({self._places(offsets)})"
            for name, offsets in sorted(self.stalls.hidden_waits.items())
        ]
        if texts:
            yield f"waits that cannot be measured: {'; '.join(texts)}. The remainder of warp life includes these waits"

    def _places(self, offsets: Sequence[int]) -> str:
        """``0x0340 a.cu:22, 0x0480``"""
        return units.listed(
            [f"{offset:#06x} {self._places_by_offset.get(offset, '')}".rstrip() for offset in offsets], _MAX_NAMED
        )

    def _cost_note(self) -> str:
        """Return how much longer launches took with the probe."""
        kernels = [result.kernel for result, _ in self.results]
        texts = [slowdown_text(kernel) for kernel in kernels]
        if not any(self.slowdowns):
            info = kernels[0].trace.run_info
            probed_all = info is not None and info.options.get("launches") == "all"
            advice = "omit --launches all" if probed_all else "launch the kernel more often"
            return (
                f"slowdown with the probe: {units.NOT_MEASURED}, because no launch shape was timed both with"
                f" and without the probe; {advice}, or run with --benchmark --save-results"
            )
        pairs = any(kernel.slowdown_pairs for kernel in kernels)
        source = "--benchmark" if pairs else "launches of this run with and without the probe, ± standard error"
        return f"slowdown with the probe, one value per group of sites: {', '.join(texts)} ({source})"

    def lines(self, width: int) -> Sequence[Line]:
        launches = f", {_launches_text(self.results)}"
        head = clip(shorten(self._name, max(width - 1 - len(launches), _MIN_NAME_CELLS)) + launches, width - 1)
        columns = stall_columns(has_source=any(row.site.place for row in self.rows))
        return titled_table(head, columns, self.rows, self.notes(shown_keys(columns, self.rows, width - 1)), width)

    def pinned(self, width: int) -> int:
        del width
        return _HEADING_LINES if self.rows else 1

    def row_count(self) -> int:
        return len(self.rows)

    def gutter(self, width: int) -> int:
        return width

    def ptx_line(self, number: int, width: int) -> int | None:
        """The offset of the row's instruction."""
        place = number - self.pinned(width)
        return self.rows[place].site.line if 0 <= place < len(self.rows) else None

    def place_of(self, ptx_line: int, width: int) -> int | None:
        """The row of an instruction."""
        for place, row in enumerate(self.rows):
            if row.site.line == ptx_line:
                return place + self.pinned(width)
        return None

    def anchor_noun(self) -> str:
        return "wait"

    def anchors(self, width: int) -> Sequence[int]:
        """The rows: the next one is the next longest wait."""
        first_row = self.pinned(width)
        return range(first_row, first_row + len(self.rows))

    def target_view(self) -> str:
        return "sass"

    def record(self) -> dict[str, Any]:
        return {
            "measured_share": self.stalls.share,
            "remaining_share": self.stalls.remaining,
            "sites_not_measured": self.not_measured,
            "uncertainty_cycles": DELAY,
            "launches": [result.launch.number if result.launch else None for result, _ in self.results],
            "sites": [as_record(DATA_COLUMNS, row) for row in self.sites],
            "slowdowns": self.slowdowns,
            "samples": [_sample_record(stalls) for _, stalls in self.results],
            "offsets_not_measurable": {
                name: [int(offset) for offset in offsets] for name, offsets in self.stalls.hidden_waits.items()
            },
            "offsets_not_measured": [int(offset) for offset in self.stalls.unmeasured],
        }

    def cells(self) -> Iterator[Sequence[object]]:
        columns = [column for column in in_data(DATA_COLUMNS) if column.key != "tensors"]
        yield [column.key for column in columns]
        for row in self.sites:
            yield [column.value(row) for column in columns if column.value is not None]


def _rows_of_group(kernel: KernelFacts, stalls: Stalls) -> Iterator[StallRow]:
    for site in stalls.sites:
        yield StallRow(site, stalls.sample, len(kernel.result_rows), kernel.outcome.ended_after)


def _launches_text(results: Sequence[tuple[ProbeResult, Stalls]]) -> str:
    """``launches 4–7 of #0``"""
    numbers = [result.launch.number for result, _ in results if result.launch is not None]
    known_numbers = [number for number in numbers if number is not None]
    if len(known_numbers) < len(results):
        return ", ".join(result.launch_label for result, _ in results)
    texts = [str(start) if start == end else f"{start}–{end}" for start, end in units.runs(known_numbers)]
    noun = "launches" if len(known_numbers) > 1 else "launch"
    return f"{noun} {', '.join(texts)} of #{results[0][0].kernel.index}"


def _sample_notes(results: Sequence[tuple[ProbeResult, Stalls]], *, has_executions: bool) -> Iterator[str]:
    """Yield the warps whose executions the rows have, and how long they lived."""
    counts = Counter(stalls.sample for _, stalls in results if stalls.sample)
    texts = [
        f"{units.count(sample.blocks)} of {units.count(sample.grid_blocks)} blocks"
        f" in{' each of' if launches > 1 else ''} {units.counted(launches, 'launch')},"
        f" {units.count(sample.warps)} warps per block"
        for sample, launches in counts.items()
    ]
    if texts:
        executions = ". “executions”: sum over these warps in the launch of the row" if has_executions else ""
        yield f"sample: {'; '.join(texts)}{executions}"
    lives = sorted(round(stalls.life / stalls.sample.warps) for _, stalls in results if stalls.sample and stalls.life)
    if lives:
        spread = units.count(lives[0]) + (f" to {units.count(lives[-1])}" if lives[-1] > lives[0] else "")
        by_launch = ", by launch" if lives[-1] > lives[0] else ""
        yield f"warp life, from entry to exit: mean {spread} cycles per warp{by_launch}"


def _sample_record(stalls: Stalls) -> dict[str, int | None]:
    sample = stalls.sample
    return {
        "warps": sample.warps if sample else None,
        "blocks": sample.blocks if sample else None,
        "launched_blocks": sample.grid_blocks if sample else None,
        "life_cycles": stalls.life,
    }


def _results(source: ViewSource) -> list[tuple[ProbeResult, Stalls]]:
    """Return the newest result of each group of the kernel, or those of the launches nearest to the chosen one.

    Raises TraceError for none that can be read.
    """
    results = []
    for part in joined_sources(source):
        if part.kernel.result_rows:
            result = probe_results.read_result(part)
            stalls = analyse(result.result, result.sites, result.kernel.folder)
            results.append((result, with_tensors(stalls, result)))
    if not results:
        raise TraceError(f"{source.trace.directory}: there is no result of {GROUPS[0]}")
    return results


def _groups_of_run(source: ViewSource) -> set[str]:
    """Return the groups of sites that the run measures; all where the trace does not name its probes."""
    info = source.trace.run_info
    return {*GROUPS} & {*(info.probes if info else ())} or {*GROUPS}


def _groups_of_kernel(source: ViewSource) -> set[str]:
    """Return the groups that have a result or no site."""
    kernels = (part.kernel for part in source.of_all_probes())
    names = (analysis_name(kernel) for kernel in kernels if kernel.result_rows or kernel.matched_nothing)
    return {name for name in names if name is not None}


STALLS_VIEW: Final = probe_view(
    "stalls",
    "Stalls",
    "SASS instructions at which warps wait, with the causes",
    StallsView,
    explanation=(
        "One row per SASS instruction at which warps wait, sorted by share of warp life. Warp life is the time from"
        " entry to exit in cycles, summed over all warps. The producer is the earlier instruction whose result, barrier"
        " or copies the warp waits for.",
        "Instructions are measured in groups of eight, one group per launch, so rows may come from different launches."
        f" A group is measured again only if one of its instructions has at least {MIN_PERCENT}% of warp life."
        " Executions, waits and warp life cover only the sampled blocks; the page lists these blocks.",
        "For instructions from headers of the CUDA Toolkit, the row shows the calling line of the program, if known.",
    ),
    order=15,
)
