"""One kernel on a page: its names, why it was probed or not, what to do, and what the probe costs it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tui_probe.analysis.occupancy import occupancy, warps_of
from tui_probe.draw import units
from tui_probe.draw.side_by_side import beside
from tui_probe.draw.spans import Line, Span, pad, wrap
from tui_probe.pages.advice import advice

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from tui_probe.pages.kernel_row import KernelRow
    from tui_probe.trace.gpu_time import TimeOfKind

LABEL = 16
TWO_COLUMNS = 130
"""Cells from which on there are two."""
NAME_LINES = 2
"""Lines of the name above everything; a longer one is whole at the end of the page."""
_GLYPHS = {"probed": "✔", "skipped": "–", "failed": "✘", "excluded": "·", "pending": "◌"}


def detail_lines(
    row: KernelRow,
    cells: int,
    extra: Sequence[Line] = (),
    found: Sequence[Line] = (),
    asked: Callable[[int], Sequence[Line]] = lambda _: (),
    limit: Sequence[Line] = (),
) -> list[Line]:
    """The page as lines of at most ``cells`` cells, in two columns where there is room for them.

    Long names and reasons are wrapped. ``limit`` says first what limits the kernel, ``found`` stands under the state.
    ``asked`` makes lines of at most so many cells, which stand above what the probe costs, or in the other column;
    ``extra`` goes below everything, or at the end of the second column.
    """
    head, names = name_lines(row, cells)
    above = [*head, *failure_lines(row, cells), *limit, *state_lines(row, cells), *_after_a_blank(found), ()]
    if cells < TWO_COLUMNS:
        questions = asked(cells)
        parts = [*questions, *((),) * bool(questions), *cost_lines(row), (), *_launches(row, cells)]
        return [*above, *parts, *_after_a_blank(extra), *names]
    half = cells // 2 - 1
    questions = asked(half)
    left = [*questions, *((),) * bool(questions), *_launches(row, half)]
    return [*above, *beside(left, [*cost_lines(row), *_after_a_blank(extra)], half), *names]


def _after_a_blank(lines: Sequence[Line]) -> list[Line]:
    return [(), *lines] if lines else []


def name_lines(row: KernelRow, cells: int) -> tuple[list[Line], list[Line]]:
    """The name above everything, and the forms of it that stand at the end: names may have thousands of letters."""
    whole = wrap(row.demangled, cells - 2)
    head: list[Line] = [((f" {text}", "title"),) for text in whole[:NAME_LINES]]
    rest: list[Line] = []
    if len(whole) > NAME_LINES:
        head[-1] = ((f" {whole[NAME_LINES - 1]}…", "title"),)
        rest += _field("whole name", row.demangled, cells)
    if row.name != row.demangled:
        rest += _field("mangled", row.name, cells, "dim")
    return head, [(), *rest] if rest else []


def failure_lines(row: KernelRow, cells: int) -> list[Line]:
    """What went wrong with its launches."""
    failures = enumerate(row.failures)
    return [line for i, text in failures for line in _field("" if i else "failed", f"✘ {text}", cells, "bad")]


def state_lines(row: KernelRow, cells: int) -> list[Line]:
    """Whether it was probed, why not, and what to do."""
    where = " in its machine code (graft)" if row.way == "graft" else ""
    glyph, role = ("✘", "failed") if row.failures else (_GLYPHS.get(row.status, " "), row.status)
    lines = list(_field("status", f"{glyph} {row.status}{where}", cells, role))
    if row.reason:
        label = "note" if row.status == "probed" else "why"
        lines += _field(label, row.reason, cells, "bad" if row.status == "failed" else "")
    if words := advice(row.status, row.why):
        lines += _field("what to do", words, cells)
    return lines


def _field(label: str, text: str, cells: int, role: str = "") -> Iterator[Line]:
    for i, part in enumerate(wrap(text, max(10, cells - LABEL - 3))):
        yield ((" " + pad("" if i else label, LABEL), "dim"), (part, role))


def cost_lines(row: KernelRow) -> list[Line]:
    """Resources of the kernel before and after probing, as a small table."""
    capability = row.device.capability if row.device else None
    filled = [occupancy(blocks, row.block, capability) for blocks in (row.blocks_per_sm, row.blocks_per_sm_probed)]
    table: list[tuple[str, float | None, float | None, Callable[[float], str]]] = [
        ("registers/thread", row.registers_pruned, row.registers_probed, str),
        ("spilled bytes", row.spills_pruned, row.spills_probed, str),
        ("local bytes", row.local_original, row.local_probed, str),
        ("static shared", row.static_shared, row.static_shared_probed, units.size),
        ("blocks per SM", row.blocks_per_sm, row.blocks_per_sm_probed, str),
        ("occupancy", filled[0], filled[1], lambda share: f"{share:.0%}"),
    ]
    lines: list[Line] = [((" " + pad("", LABEL), "dim"), ("  original    probed    change", "head"))]
    for label, before, after, show in table:
        spans: list[Span] = [(" " + pad(label, LABEL), "dim")]
        for value in (before, after):
            text = units.NOT_MEASURED if value is None else show(value)
            spans.append((pad(text, 10, right=True), "" if value is not None else "dim"))
        spans.append((pad(_difference(before, after, label), 10, right=True), _verdict(before, after, label)))
        lines.append(tuple(spans))
    return lines


_MORE_IS_BETTER = ("blocks per SM", "occupancy")


def _difference(before: float | None, after: float | None, label: str) -> str:
    if before is None or after is None:
        return ""
    if label == "occupancy":
        return f"{100 * (after - before):+.0f} pp" if after != before else "same"
    return f"{after - before:+}" if after != before else "same"


def _verdict(before: float | None, after: float | None, label: str) -> str:
    if before is None or after is None or before == after:
        return "dim"
    return "good" if (after > before) == (label in _MORE_IS_BETTER) else "warn"


def _launches(row: KernelRow, cells: int) -> Iterator[Line]:
    """How often and how it was launched, and what that cost."""
    yield from _field(
        "launches", f"{units.count(row.launches)}, {units.count(row.launches_probed)} of them probed", cells
    )
    if row.grid is not None and row.block is not None:
        blocks = row.grid[0] * row.grid[1] * row.grid[2]
        warps = warps_of(row.block)
        sides, whole = units.extent(row.grid), units.counted(blocks, "block")
        grid = whole if sides == str(blocks) else f"{sides} = {whole}"
        yield from _field(
            "grid", grid + (" (varies between launches; this is the last)" if row.grid_varies else ""), cells
        )
        block = f"{units.extent(row.block)} = {units.counted(warps, 'warp')}"
        yield from _field(
            "block", block + (" (varies between launches; this is the last)" if row.block_varies else ""), cells
        )
    if row.shared_dynamic:
        yield from _field("dynamic shared", f"{units.size(row.shared_dynamic)} per block", cells)
    yield from _times(row, cells)
    if row.probe_bytes is not None:
        yield from _field("probe memory", f"{units.size(row.probe_bytes)} per launch", cells)
    yield from _field("results", f"{_files(row)} in the trace", cells)
    if row.folder is not None:
        yield from _field("files", f"{row.folder.parent.name}/{row.folder.name}", cells, "dim")


def _files(row: KernelRow) -> str:
    """``7 of 600 files`` of a trace that was thinned out."""
    files = units.counted(row.results, "file")
    return files if row.files is None or row.files == row.results else f"{units.count(row.files)} of {files}"


def _times(row: KernelRow, cells: int) -> Iterator[Line]:
    """What it takes of the GPU's time, and what the probe adds."""
    time, share = row.gpu_time, row.time_share
    if time is not None:
        whole = "" if share is None else f", {share:.1%} of that of all kernels"
        yield from _field("GPU time", f"{_with_doubt(time.total_ns, time.total_doubt_ns)} estimated{whole}", cells)
        for label, kind in (("original", time.original), ("probed", time.probed)):
            if kind is not None:
                yield from _field(label, _of_kind(kind), cells)
    if row.slowdown is not None:
        doubt = f" ± {row.slowdown_doubt:.2f}" if row.slowdown_doubt else ""
        yield from _field("slowdown", f"{row.slowdown:.2f}×{doubt} ({_slowdown_of(row)})", cells)


def _slowdown_of(row: KernelRow) -> str:
    """Of what it is the slowdown, which is seldom that of the median times."""
    if not row.slowdown_pairs:
        return "ratio of the mean times, over the shapes timed both ways"
    times = f"{_milliseconds(row.time_ms)} original, {_milliseconds(row.time_probed_ms)} probed"
    if row.slowdown_pairs == 1:
        return f"one pair: {times}"
    return f"median of the ratios of {row.slowdown_pairs} pairs; median times {times}"


def _of_kind(kind: TimeOfKind) -> str:
    """Figures of launches with the probe, or without it."""
    mean = _with_doubt(kind.mean_ns, kind.mean_doubt_ns)
    least, median, p99, most = (
        units.duration(ns / 1e9) for ns in (kind.least_ns, kind.median_ns, kind.p99_ns, kind.most_ns)
    )
    waited = f", {units.count(kind.host_bound)} of them bound by the host" if kind.host_bound else ""
    timed = f"{units.counted(kind.samples, 'launch')} timed{waited}"
    return f"mean {mean}, median {median}, p99 {p99}, {least} to {most}; {timed}"


def _with_doubt(ns: float, doubt_ns: float | None) -> str:
    """``12.3 µs ± 410 ns``: an estimate and its standard error: ``–`` if not known, none if there is no doubt."""
    text = units.duration(ns / 1e9)
    return text if doubt_ns == 0 else f"{text} ± {units.duration(None if doubt_ns is None else doubt_ns / 1e9)}"


def _milliseconds(value: float | None) -> str:
    return units.NOT_MEASURED if value is None else units.duration(value / 1e3)
