"""Blocks of a kernel's page: names, status, cost of the probe, and small charts."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from statistics import fmean
from typing import TYPE_CHECKING, Final

import numpy as np

from tui_probe.draw import units
from tui_probe.draw.charts import column_chart
from tui_probe.draw.shorten import without_abi_tags
from tui_probe.draw.spans import Line, Span, clip, clip_clauses, pad, side_by_side, width, wrap
from tui_probe.errors import TraceError
from tui_probe.probekit import probe_results
from tui_probe.probekit.page_kinds import ViewSource
from tui_probe.probekit.probe_results import cycles_text
from tui_probe.probekit.recognised import analysis_name
from tui_probe.probekit.record_counts import sampled_blocks_text, status_word
from tui_probe.probekit.registry import probe_named
from tui_probe.probekit.timelines.rows import BusyRows
from tui_probe.trace.gpu_time import weighted_times
from tui_probe.verdicts.findings import MAX_UNASKED_BYTES, result_bytes
from tui_probe.verdicts.kernel_values import occupancy, warps_per_block
from tui_probe.verdicts.probe_coverage import kernel_advice

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from tui_probe.probekit.timelines.launch import LaunchTimeline
    from tui_probe.trace.gpu_time import VariantTime
    from tui_probe.trace.model import Kernel, Trace
    from tui_probe.verdicts.kernel_snapshot import KernelSnapshot

LABEL_CELLS: Final = 16
"""Cells of a label."""
TWO_COLUMN_CELLS: Final = 130
"""Cells from which on there are two."""
NAME_LINES: Final = 2
"""Lines of the name above everything; a longer one is whole at the end of the page."""
_GLYPHS: Final = {"probed": "✔", "skipped": "–", "failed": "✘", "excluded": "·", "pending": "◌"}
_MORE_IS_BETTER: Final = ("blocks per SM", "occupancy")
CHART_CELLS: Final = 60
"""Cells of a chart at least."""
CHART_COLUMNS: Final = 120
"""Columns of its values, and its cells at most."""
CHART_ROWS: Final = 3
"""Rows of a chart at least."""
CHART_FRAME_ROWS: Final = 2
"""A title above it, and an axis below."""
MIN_TIMES: Final = 8
"""Timed launches from which on there is something to see of how they differ."""
_HIGHEST_PART: Final = 0.99
"""Quantile of the times at which the last column of their distribution begins."""


def detail_lines(
    row: KernelSnapshot,
    cells: int,
    lines_below: Sequence[Line] = (),
    findings: Sequence[Line] = (),
    question_lines: Callable[[int], Sequence[Line]] = lambda _: (),
    limit: Sequence[Line] = (),
) -> list[Line]:
    """Return the page as lines of at most ``cells`` cells, in two columns where there is room for them.

    Long names and reasons are wrapped. ``limit`` says first what limits the kernel, ``findings`` are under the state.
    ``question_lines`` makes lines of at most that many cells, above what the probe costs, or in the other column;
    ``lines_below`` goes below everything, or at the end of the second column.
    """
    head, names = name_lines(row, cells)
    lines_above = [
        *head,
        *snapshot_failure_lines(row, cells),
        *limit,
        *state_lines(row, cells),
        *_with_blank_first(findings),
        (),
    ]
    if cells < TWO_COLUMN_CELLS:
        parts = [*_with_blank_last(question_lines(cells)), *cost_lines(row), (), *_launch_lines(row, cells)]
        return [*lines_above, *parts, *_with_blank_first(lines_below), *names]
    half = cells // 2 - 1
    left_column = [*_with_blank_last(question_lines(half)), *_launch_lines(row, half)]
    return [*lines_above, *side_by_side(left_column, [*cost_lines(row), *_with_blank_first(lines_below)], half), *names]


def _with_blank_first(lines: Sequence[Line]) -> list[Line]:
    return [(), *lines] if lines else []


def _with_blank_last(lines: Sequence[Line]) -> list[Line]:
    return [*lines, ()] if lines else []


def name_lines(row: KernelSnapshot, cells: int) -> tuple[list[Line], list[Line]]:
    """The name above everything, and the forms of it that are at the end: names may have thousands of letters."""
    name = without_abi_tags(row.demangled)
    name_parts = wrap(name, cells - 2)
    head: list[Line] = [((f" {text}", "title"),) for text in name_parts[:NAME_LINES]]
    lines: list[Line] = []
    if len(name_parts) > NAME_LINES:
        head[-1] = ((f" {name_parts[NAME_LINES - 1]}…", "title"),)
    if len(name_parts) > NAME_LINES or name != row.demangled:
        lines += _labelled_field("full name", row.demangled, cells)
    if row.name != row.demangled:
        lines += _labelled_field("mangled", row.name, cells, "dim")
    return head, [(), *lines] if lines else []


def snapshot_failure_lines(row: KernelSnapshot, cells: int) -> list[Line]:
    """Failures of its launches."""
    failures = enumerate(row.failures)
    return [line for i, text in failures for line in _labelled_field("" if i else "failed", f"✘ {text}", cells, "bad")]


def state_lines(row: KernelSnapshot, cells: int) -> list[Line]:
    """Status of the kernel, why it was not probed, and what to do."""
    word = status_word(row.status, row.launches, row.launches_probed, row.results)
    mode_text = " in SASS (graft)" if row.mode == "graft" and word == row.status else ""
    glyph, role = ("✘", "failed") if row.failures else (_GLYPHS.get(word, _GLYPHS["pending"]), word)
    lines = list(_labelled_field("status", f"{glyph} {word}{mode_text}", cells, role))
    if row.reason:
        label = "note" if row.status == "probed" else "why"
        lines += _labelled_field(label, row.reason, cells, "bad" if row.status == "failed" else "")
    if words := kernel_advice(row.status, row.probe_reason):
        lines += _labelled_field("what to do", words, cells)
    return lines


def _labelled_field(label: str, text: str, cells: int, role: str = "") -> Iterator[Line]:
    for i, part in enumerate(wrap(text, max(10, cells - LABEL_CELLS - 3))):
        yield ((" " + pad("" if i else label, LABEL_CELLS), "dim"), (part, role))


def cost_lines(row: KernelSnapshot) -> list[Line]:
    """Resources of the kernel before and after probing, as a small table."""
    capability = row.device.capability if row.device else None
    occupancies = [occupancy(blocks, row.block, capability) for blocks in (row.blocks_per_sm, row.blocks_per_sm_probed)]
    table: list[tuple[str, float | None, float | None, Callable[[float], str]]] = [
        ("registers/thread", row.registers_pruned, row.registers_probed, str),
        ("spilled bytes", row.spills_pruned, row.spills_probed, str),
        ("local bytes", row.local_original, row.local_probed, str),
        ("static shared", row.static_shared, row.static_shared_probed, units.size),
        ("blocks per SM", row.blocks_per_sm, row.blocks_per_sm_probed, str),
        ("occupancy", occupancies[0], occupancies[1], lambda share: f"{share:.0%}"),
    ]
    lines: list[Line] = [((" " + pad("", LABEL_CELLS), "dim"), ("  original    probed    change", "head"))]
    for label, original, probed, format_value in table:
        spans: list[Span] = [(" " + pad(label, LABEL_CELLS), "dim")]
        for value in (original, probed):
            text = units.NOT_MEASURED if value is None else format_value(value)
            spans.append((pad(text, 10, right=True), "" if value is not None else "dim"))
        spans.append(
            (pad(_difference_text(original, probed, label), 10, right=True), _change_role(original, probed, label))
        )
        lines.append(tuple(spans))
    return lines


def _difference_text(original: float | None, probed: float | None, label: str) -> str:
    if original is None or probed is None:
        return ""
    if label == "occupancy":
        return f"{100 * (probed - original):+.0f} pp" if probed != original else "same"
    return f"{probed - original:+}" if probed != original else "same"


def _change_role(original: float | None, probed: float | None, label: str) -> str:
    if original is None or probed is None or original == probed:
        return "dim"
    return "good" if (probed > original) == (label in _MORE_IS_BETTER) else "warn"


def _launch_lines(row: KernelSnapshot, cells: int) -> Iterator[Line]:
    """Launches: their number, shape and cost."""
    yield from _labelled_field(
        "launches", f"{units.count(row.launches)} ({units.count(row.launches_probed)} probed)", cells
    )
    if row.grid is not None and row.block is not None:
        blocks = row.grid[0] * row.grid[1] * row.grid[2]
        warps = warps_per_block(row.block)
        sides, blocks_text = units.extent(row.grid), units.counted(blocks, "block")
        grid = blocks_text if sides == str(blocks) else f"{sides} = {blocks_text}"
        yield from _labelled_field(
            "grid", grid + (" (varies between launches; value of the newest launch)" if row.grid_varies else ""), cells
        )
        block = f"{units.extent(row.block)} = {units.counted(warps, 'warp')}"
        yield from _labelled_field(
            "block",
            block + (" (varies between launches; value of the newest launch)" if row.block_varies else ""),
            cells,
        )
    if row.shared_dynamic:
        yield from _labelled_field("dynamic shared", f"{units.size(row.shared_dynamic)} per block", cells)
    yield from _time_lines(row, cells)
    if row.probe_bytes is not None:
        yield from _labelled_field("probe memory", f"{units.size(row.probe_bytes)} per launch", cells)
    yield from _labelled_field("results", f"{_file_count_text(row)} in the trace", cells)
    if row.folder is not None:
        yield from _labelled_field("files", f"{row.folder.parent.name}/{row.folder.name}", cells, "dim")


def _file_count_text(row: KernelSnapshot) -> str:
    """``7 of 600 files`` of a trace that was thinned out."""
    files = units.counted(row.results, "file")
    return files if row.files is None or row.files == row.results else f"{units.count(row.files)} of {files}"


def _time_lines(row: KernelSnapshot, cells: int) -> Iterator[Line]:
    """Share of the GPU's time, and what the probe adds."""
    time, share = row.gpu_time, row.time_share
    if time is not None:
        share_text = "" if share is None else f", {share:.1%} of all kernels"
        yield from _labelled_field(
            "GPU time", f"{_time_with_error(time.total_ns, time.total_stderr_ns)} estimated{share_text}", cells
        )
        for label, kind in (("original", time.original), ("probed", time.probed)):
            if kind is not None:
                is_mixed = label == "probed" and row.slowdown is None and time.original is not None
                yield from _labelled_field(label, _launch_times_text(kind, is_mixed=is_mixed), cells)
    if row.slowdown is not None:
        standard_error = f" ± {row.slowdown_stderr:.2f}" if row.slowdown_stderr else ""
        yield from _labelled_field("slowdown", f"{row.slowdown:.2f}×{standard_error} ({_slowdown_basis(row)})", cells)


def _slowdown_basis(row: KernelSnapshot) -> str:
    """Return the times that the slowdown is the ratio of, which are seldom the medians."""
    if not row.slowdown_pairs:
        return "ratio of mean times, for shapes timed with and without the probe"
    times = f"{_milliseconds(row.time_ms)} original, {_milliseconds(row.time_probed_ms)} probed"
    if row.slowdown_pairs == 1:
        return f"one pair of launches: {times}"
    return f"median ratio of {row.slowdown_pairs} pairs of launches; median times: {times}"


def _launch_times_text(kind: VariantTime, *, is_mixed: bool) -> str:
    """Times of launches with the probe, or without it; a mean over launches of several probes would mean nothing."""
    mean = _time_with_error(kind.mean_ns, kind.mean_stderr_ns)
    minimum, median, p99, maximum = (
        units.duration(ns / 1e9) for ns in (kind.least_ns, kind.median_ns, kind.p99_ns, kind.most_ns)
    )
    host_bound_text = f", {units.count(kind.host_bound)} of them host bound" if kind.host_bound else ""
    timed = f"{units.counted(kind.samples, 'launch')} timed{host_bound_text}"
    if is_mixed:
        return f"median {median}, {minimum} to {maximum} over all probes; {timed}"
    return f"mean {mean}, median {median}, p99 {p99}, {minimum} to {maximum}; {timed}"


def _time_with_error(ns: float, stderr_ns: float | None) -> str:
    """Return ``12.3 µs ± 410 ns``: an estimate and its standard error: ``–`` if not known, none if it is exact."""
    text = units.duration(ns / 1e9)
    return text if stderr_ns == 0 else f"{text} ± {units.duration(None if stderr_ns is None else stderr_ns / 1e9)}"


def _milliseconds(value: float | None) -> str:
    return units.NOT_MEASURED if value is None else units.duration(value / 1e3)


@dataclass(frozen=True, slots=True)
class Chart:
    """Columns of equal width between the texts ``first_label`` and ``last_label``; a value of None is of no launch."""

    title: str
    values: tuple[float | None, ...]
    first_label: str
    last_label: str

    @property
    def is_constant(self) -> bool:
        """True if all values are the same, so that words say as much."""
        return len(set(self.values)) < 2


def preview_charts(trace: Trace, kernel: Kernel) -> tuple[Chart, ...]:
    """Data of a kernel for drawings. Reads the newest result of a probe that records times, if it is not large."""
    return tuple(chart for chart in (_running_chart(trace, kernel), _times_chart(kernel)) if chart is not None)


def chart_lines(
    chart: Chart, cells: int = CHART_CELLS, rows: int = CHART_ROWS, *, ascii_only: bool = False
) -> list[Line]:
    """Return ``rows`` and ``CHART_FRAME_ROWS`` lines of at most ``cells`` cells."""
    values = _mean_by_cell(chart.values, cells)
    maximum = max(value or 0 for value in values)
    chart_rows = column_chart(values, cells, rows, maximum=maximum, ascii_only=ascii_only)
    if all(value == maximum for value in values):  # a solid block would say no more than a line
        chart_rows = ["─" * cells, clip("constant from start to end", cells), *[""] * (rows - 2)]
    last_label_cells = cells - width(chart.first_label)
    axis = chart.first_label + pad(clip(chart.last_label, last_label_cells - 1), last_label_cells, right=True)
    return [
        ((clip_clauses(chart.title, cells, ", "), "head"),),
        *(((row, "hue0"),) for row in chart_rows),
        ((axis, "dim"),),
    ]


def _mean_by_cell(values: Sequence[float | None], cells: int) -> list[float | None]:
    """Return the mean of the columns that fall into each cell; None where none of them has a value."""
    edges = [round(cell * len(values) / cells) for cell in range(cells + 1)]
    parts = ([value for value in values[start:end] if value is not None] for start, end in pairwise(edges))
    return [fmean(part) if part else None for part in parts]


def _running_chart(trace: Trace, kernel: Kernel) -> Chart | None:
    """Concurrent blocks in the newest launch for which that is known."""
    for source in ViewSource(trace, kernel).by_probe():
        probe = probe_named(analysis_name(source.kernel) or "")
        if probe is None or probe.timeline is None or not 0 < result_bytes(source) <= MAX_UNASKED_BYTES:
            continue
        try:
            timeline = probe.timeline(probe_results.read_result(source), lambda _: None)
        except (TraceError, OSError):
            continue  # which the findings of the kernel say
        return _timeline_chart(timeline)
    return None


def _timeline_chart(launch: LaunchTimeline) -> Chart | None:
    timeline = launch.timeline
    blocks = timeline.blocks
    if not len(blocks) or timeline.span < 1:
        return None
    edges = np.unique(np.linspace(0, timeline.span, CHART_COLUMNS + 1).astype(np.int64))
    busy_rows = BusyRows(blocks.start, blocks.end, np.zeros(len(blocks), dtype=np.int64), 1)
    running_blocks = busy_rows.covered_cycles(0, 1, edges)[0] / np.diff(edges)
    values = (
        np.repeat(running_blocks, -(-CHART_COLUMNS // len(running_blocks)))[:CHART_COLUMNS]
        if len(running_blocks) < CHART_COLUMNS
        else running_blocks
    )
    maximum_text = f"up to {units.count(round(float(running_blocks.max())))} at a time"
    sample = "" if timeline.sample is None else f", {sampled_blocks_text(timeline.sample)}"
    simulated = ", simulated" if launch.simulated else ""
    last_label = cycles_text(timeline.span, launch.clock_khz)
    return Chart(
        f"{launch.launch_label}: running blocks, {maximum_text}{sample}{simulated}",
        tuple(values.tolist()),
        "0",
        last_label,
    )


def _times_chart(kernel: Kernel) -> Chart | None:
    """Distribution of the GPU times of its launches; the longest hundredth is in the last column."""
    time = kernel.gpu_time
    if time is None or time.preferred_variant.samples < MIN_TIMES:
        return None
    times_ns, weight = weighted_times(kernel.samples, probed=time.only_probed)
    minimum, quantile = float(times_ns.min()), float(np.quantile(times_ns, _HIGHEST_PART))
    if not quantile > minimum:
        return None
    counts, _ = np.histogram(np.minimum(times_ns, quantile), CHART_COLUMNS, (minimum, quantile), weights=weight)
    probed_text = ", all of them probed" if time.only_probed else ""
    title = f"GPU time of #{kernel.index}: {units.counted(time.preferred_variant.samples, 'launch')} timed{probed_text}"
    last_label = f"{units.duration(quantile / 1e9)} (longest {units.duration(float(times_ns.max()) / 1e9)})"
    return Chart(title, tuple(count or None for count in counts.tolist()), units.duration(minimum / 1e9), last_label)
