"""Tree of where the GPU time goes: program, NVTX ranges, kernels, lines of code, with time and share at each level."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final, Literal

from tui_probe.draw import units
from tui_probe.draw.shorten import cut_middle, fitted_command, shorten
from tui_probe.draw.table import Column
from tui_probe.draw.table_content import PageTexts
from tui_probe.draw.units import NOT_MEASURED
from tui_probe.draw.view import no_progress
from tui_probe.pages.all_lines import measured_lines
from tui_probe.pages.range_tree import range_tree
from tui_probe.pages.table_page import TablePage
from tui_probe.verdicts.kernel_snapshot import GPU_TIME, LAUNCH_CYCLES, sorting_title
from tui_probe.verdicts.run_findings import cycle_shares
from tui_probe.verdicts.run_outcome import program_command

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from tui_probe.draw.view import Progress
    from tui_probe.pages.all_lines import KernelLine
    from tui_probe.pages.range_tree import KernelLaunches, RangeNode
    from tui_probe.trace.model import Trace

TREE_ABOUT: Final = (
    "The program, its NVTX ranges (merged by name), the kernels launched in them, and the most important lines of"
    " each kernel. Time is the number of launches × the median time of the kernel. The share is relative to the time"
    " of all launches. If kernels were not timed, the share is relative to the cycles of all measured launches. The"
    " share of a line is the line's part of the probe's main metric. This metric is summed over all kernels.",
    "Press Enter to open the program, a range or a kernel; press Enter on a line to see the code. Press h to go up.",
)
OUTSIDE_RANGES: Final = "(outside ranges)"
MAX_LINES: Final = 5
"""Lines of a kernel in the tree."""
_NAME_CELLS: Final = 60
Level = Literal["program", "range", "kernel", "line"]
_NAME_COLUMN: Final[Column[TreeNode]] = Column(
    "name", lambda n: n.name, "program › range › kernel › line", lambda n: n.name, right=False, narrow=24
)
_COLUMNS: Final[tuple[Column[TreeNode], ...]] = (
    Column("level", lambda n: n.level),
    Column("depth", lambda n: len(n.path) - 1),
    Column("share", lambda n: n.share, "share", lambda n: units.share(n.share)),
    Column("seconds", lambda n: n.seconds, "time", lambda n: units.duration(n.seconds)),
    Column("launches", lambda n: n.launches, "launches", lambda n: units.count(n.launches) if n.launches else ""),
    Column("kernel", lambda n: n.kernel),
    Column("line", lambda n: n.line),
    Column("note", lambda n: n.note or None, "", lambda n: n.note, right=False, rank=1, narrow=12),
)


@dataclass(slots=True)
class TreeNode:
    """A node. ``path`` are the names from the program to it; ``seconds`` and ``share`` are None if not measured."""

    level: Level
    path: tuple[str, ...]
    launches: int | None = None
    seconds: float | None = None
    share: float | None = None
    note: str = ""
    kernel: int | None = None
    line: int | None = None
    inner: list[TreeNode] = field(default_factory=list)

    @property
    def name(self) -> str:
        """Name without the path."""
        return self.path[-1]

    def walk(self, unfolded: frozenset[tuple[str, ...]] | None) -> Iterator[TreeNode]:
        """Yield this node, then those inside it, depth first, if they are ``unfolded``; None: all."""
        yield self
        if unfolded is None or self.path in unfolded:
            for node in self.inner:
                yield from node.walk(unfolded)


def program_tree(trace: Trace, progress: Progress = no_progress) -> TreeNode:
    """Return the tree of a trace. Reads the results of probes that measure lines."""
    lines: dict[int, list[KernelLine]] = {}
    for line in measured_lines(trace, progress).lines:
        lines.setdefault(line.kernel.index, []).append(line)
    command = program_command(trace) or trace.directory.name
    kernels = [_KernelTotals(kernel.index, kernel.launches, _seconds(trace, kernel.index, kernel.launches))
               for kernel in trace.kernels if kernel.launches]  # fmt: skip
    root = TreeNode(
        "program",
        (command,),
        sum(kernel.launches for kernel in kernels),
        _total_seconds(kernel.seconds for kernel in kernels),
    )
    ranges = range_tree(trace, merge_runs=True)
    root.inner = [_range_node(trace, node, root.path, lines) for node in ranges]
    outer_totals = _launches_outside_ranges(trace, kernels, ranges)
    if ranges and outer_totals:
        path = (*root.path, OUTSIDE_RANGES)
        launches, total = (
            sum(totals.launches for totals in outer_totals),
            _total_seconds(totals.seconds for totals in outer_totals),
        )
        root.inner.append(
            TreeNode("range", path, launches, total, inner=_kernel_nodes(trace, outer_totals, path, lines))
        )
    elif outer_totals:
        root.inner = _kernel_nodes(trace, outer_totals, root.path, lines)
    _set_time_shares(root, root.seconds)
    if root.seconds is None:
        _set_cycle_shares(trace, root, cycle_shares(trace))
    return root


@dataclass(frozen=True, slots=True)
class _KernelTotals:
    """Launches of a kernel in a part of the program."""

    kernel: int
    launches: int
    seconds: float | None


def _seconds(trace: Trace, kernel: int, launches: int) -> float | None:
    kernel_facts = trace.kernels.get(kernel)
    return None if kernel_facts is None or kernel_facts.time_ms is None else launches * kernel_facts.time_ms / 1e3


def _total_seconds(values: Iterable[float | None]) -> float | None:
    """Return the sum; None where one is not known."""
    seconds = list(values)
    return None if None in seconds else sum(value for value in seconds if value is not None)


def _launches_outside_ranges(
    trace: Trace, kernels: Sequence[_KernelTotals], ranges: Sequence[RangeNode]
) -> list[_KernelTotals]:
    """Return the launches that no range encloses."""
    enclosed_counts: dict[int, int] = {}
    for node in ranges:
        for totals in node.all_launches:
            enclosed_counts[totals.kernel] = enclosed_counts.get(totals.kernel, 0) + totals.launches
    remaining = ((totals.kernel, totals.launches - enclosed_counts.get(totals.kernel, 0)) for totals in kernels)
    return [_KernelTotals(kernel, count, _seconds(trace, kernel, count)) for kernel, count in remaining if count > 0]


def _range_node(
    trace: Trace, node: RangeNode, parent_path: tuple[str, ...], lines: Mapping[int, Sequence[KernelLine]]
) -> TreeNode:
    path = (*parent_path, node.text)
    count_text = f"{units.count(node.range_count)} times" if node.range_count > 1 else ""
    inner = [_range_node(trace, child, path, lines) for child in node.inner]
    return TreeNode(
        "range", path, node.launches, node.kernel_seconds, note=count_text,
        inner=[*inner, *_kernel_nodes(trace, node.direct_launches, path, lines)],
    )  # fmt: skip


def _kernel_nodes(
    trace: Trace,
    totals: Iterable[_KernelTotals | KernelLaunches],
    parent_path: tuple[str, ...],
    lines: Mapping[int, Sequence[KernelLine]],
) -> list[TreeNode]:
    nodes = []
    for kernel_total in totals:
        kernel = trace.kernels.get(kernel_total.kernel)
        name = "kernels that the log does not name" if kernel is None else f"#{kernel_total.kernel} {kernel.demangled}"
        path = (*parent_path, name)
        inner = [_line_node(line, path) for line in lines.get(kernel_total.kernel, ())[:MAX_LINES]]
        index = None if kernel is None else kernel.index
        nodes.append(TreeNode("kernel", path, kernel_total.launches, kernel_total.seconds, kernel=index, inner=inner))
    return nodes


def _line_node(line: KernelLine, parent_path: tuple[str, ...]) -> TreeNode:
    place = line.source_position if line.source_position != NOT_MEASURED else f"line {line.row.line}"
    name = " ".join(filter(None, (place, line.opcode)))
    note = f"{units.count(round(line.value))} {line.measure_name}"
    return TreeNode(
        "line", (*parent_path, name), share=float(line.share), note=note, kernel=line.kernel.index, line=line.row.line
    )


def _set_time_shares(node: TreeNode, total: float | None) -> None:
    """Set shares, and put what takes most time, or has most launches, first."""
    if node.level != "line":
        node.share = node.seconds / total if node.seconds is not None and total else None
        node.inner.sort(key=lambda inner: (-(inner.seconds or 0.0), -(inner.launches or 0)))
    for inner in node.inner:
        _set_time_shares(inner, total)


def _set_cycle_shares(trace: Trace, node: TreeNode, shares: Mapping[int, float]) -> None:
    """Set shares of the cycles of all launches, where known, and put the largest first."""
    for inner in node.inner:
        _set_cycle_shares(trace, inner, shares)
    if node.level == "kernel":
        share = shares.get(-1 if node.kernel is None else node.kernel)
        if share is not None and node.kernel is not None:
            node.share = share * (node.launches or 0) / trace.kernels[node.kernel].launches
    elif node.level != "line":
        shares_inside = [inner.share for inner in node.inner if inner.share is not None]
        node.share = sum(shares_inside) if shares_inside else None
        node.inner.sort(key=lambda inner: -(inner.share or 0.0))


def _order_text(trace: Trace, root: TreeNode) -> str:
    if root.seconds is not None:
        return sorting_title(GPU_TIME, simulated=False)
    if root.share is None:
        return "by launches: nothing was timed"
    return f"{sorting_title(LAUNCH_CYCLES, simulated=trace.state.simulated)}: not all kernels were timed"


def tree_page(trace: Trace, progress: Progress = no_progress) -> TablePage[TreeNode]:
    """Return the page of the whole tree, for text and data."""
    return page_of_tree(trace, program_tree(trace, progress), None)


def page_of_tree(trace: Trace, root: TreeNode, unfolded: frozenset[tuple[str, ...]] | None) -> TablePage[TreeNode]:
    """Return the page of the ``unfolded`` part of a tree; None: of all of it."""
    rows = list(root.walk(unfolded))
    all_columns = [replace(_NAME_COLUMN, text=lambda node: _indented_name(node, unfolded)), *_COLUMNS]
    columns = [column if _has_values(rows, column) else replace(column, text=None) for column in all_columns]

    def kernel_target(node: TreeNode) -> tuple[Path, int] | None:
        return None if node.kernel is None else (trace.directory, node.kernel)

    return TablePage(
        "tree", "Where the GPU time goes", columns, rows, PageTexts((), [_order_text(trace, root)], about=TREE_ABOUT),
        kernel_of_row=kernel_target, has_fixed_order=True, names_of_row=lambda node: (node.name,),
    )  # fmt: skip


def _indented_name(node: TreeNode, unfolded: frozenset[tuple[str, ...]] | None) -> str:
    sign = " " if not node.inner else "▾" if unfolded is None or node.path in unfolded else "▸"
    number, _, name = node.name.partition(" ") if node.level == "kernel" else ("", "", node.name)
    if node.level == "program":
        name = fitted_command(name, _NAME_CELLS)
    short_name = f"{number} {shorten(name, _NAME_CELLS)}" if number else cut_middle(name, _NAME_CELLS)
    return f"{'  ' * (len(node.path) - 1)}{sign} {short_name}"


def _has_values(rows: Sequence[TreeNode], column: Column[TreeNode]) -> bool:
    return column.key not in ("share", "seconds") or any(column.value and column.value(row) is not None for row in rows)
