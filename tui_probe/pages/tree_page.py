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
OUTSIDE: Final = "(outside ranges)"
MAX_LINES: Final = 5
"""Lines of a kernel in the tree."""
_NAME_CELLS: Final = 60
Level = Literal["program", "range", "kernel", "line"]
_NAME: Final[Column[TreeNode]] = Column(
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

    def walk(self, opened: frozenset[tuple[str, ...]] | None) -> Iterator[TreeNode]:
        """Yield this node, then those inside it, depth first, if they are ``opened``; None: all."""
        yield self
        if opened is None or self.path in opened:
            for node in self.inner:
                yield from node.walk(opened)


def program_tree(trace: Trace, progress: Progress = no_progress) -> TreeNode:
    """Return the tree of a trace. Reads the results of probes that measure lines."""
    lines: dict[int, list[KernelLine]] = {}
    for line in measured_lines(trace, progress).lines:
        lines.setdefault(line.kernel.index, []).append(line)
    command = program_command(trace) or trace.directory.name
    kernels = [_Launched(kernel.index, kernel.launches, _seconds(trace, kernel.index, kernel.launches))
               for kernel in trace.kernels if kernel.launches]  # fmt: skip
    root = TreeNode(
        "program", (command,), sum(kernel.launches for kernel in kernels), _sum(kernel.seconds for kernel in kernels)
    )
    ranges = range_tree(trace, together=True)
    root.inner = [_range_node(trace, node, root.path, lines) for node in ranges]
    outside = _outside(trace, kernels, ranges)
    if ranges and outside:
        path = (*root.path, OUTSIDE)
        launches, total = sum(part.launches for part in outside), _sum(part.seconds for part in outside)
        root.inner.append(TreeNode("range", path, launches, total, inner=_kernel_nodes(trace, outside, path, lines)))
    elif outside:
        root.inner = _kernel_nodes(trace, outside, root.path, lines)
    _rank(root, root.seconds)
    if root.seconds is None:
        _rank_by_cycles(trace, root, cycle_shares(trace))
    return root


@dataclass(frozen=True, slots=True)
class _Launched:
    """Launches of a kernel in a part of the program."""

    kernel: int
    launches: int
    seconds: float | None


def _seconds(trace: Trace, kernel: int, launches: int) -> float | None:
    known = trace.kernels.get(kernel)
    return None if known is None or known.time_ms is None else launches * known.time_ms / 1e3


def _sum(values: Iterable[float | None]) -> float | None:
    """The sum; None where one is not known."""
    known = list(values)
    return None if None in known else sum(value for value in known if value is not None)


def _outside(trace: Trace, kernels: Sequence[_Launched], ranges: Sequence[RangeNode]) -> list[_Launched]:
    """Return the launches that no range encloses."""
    inside: dict[int, int] = {}
    for node in ranges:
        for launched in node.everything:
            inside[launched.kernel] = inside.get(launched.kernel, 0) + launched.launches
    left = ((launched.kernel, launched.launches - inside.get(launched.kernel, 0)) for launched in kernels)
    return [_Launched(kernel, count, _seconds(trace, kernel, count)) for kernel, count in left if count > 0]


def _range_node(
    trace: Trace, node: RangeNode, above: tuple[str, ...], lines: Mapping[int, Sequence[KernelLine]]
) -> TreeNode:
    path = (*above, node.text)
    times = f"{units.count(node.times)} times" if node.times > 1 else ""
    inner = [_range_node(trace, child, path, lines) for child in node.inner]
    return TreeNode(
        "range", path, node.launches, node.kernel_seconds, note=times,
        inner=[*inner, *_kernel_nodes(trace, node.own, path, lines)],
    )  # fmt: skip


def _kernel_nodes(
    trace: Trace,
    launched: Iterable[_Launched | KernelLaunches],
    above: tuple[str, ...],
    lines: Mapping[int, Sequence[KernelLine]],
) -> list[TreeNode]:
    nodes = []
    for part in launched:
        kernel = trace.kernels.get(part.kernel)
        name = "kernels that the log does not name" if kernel is None else f"#{part.kernel} {kernel.demangled}"
        path = (*above, name)
        inner = [_line_node(line, path) for line in lines.get(part.kernel, ())[:MAX_LINES]]
        index = None if kernel is None else kernel.index
        nodes.append(TreeNode("kernel", path, part.launches, part.seconds, kernel=index, inner=inner))
    return nodes


def _line_node(line: KernelLine, above: tuple[str, ...]) -> TreeNode:
    place = line.place if line.place != NOT_MEASURED else f"line {line.row.line}"
    name = " ".join(filter(None, (place, line.opcode)))
    note = f"{units.count(round(line.value))} {line.name}"
    return TreeNode(
        "line", (*above, name), share=float(line.share), note=note, kernel=line.kernel.index, line=line.row.line
    )


def _rank(node: TreeNode, total: float | None) -> None:
    """Set shares, and put what takes most time, or has most launches, first."""
    if node.level != "line":
        node.share = node.seconds / total if node.seconds is not None and total else None
        node.inner.sort(key=lambda inner: (-(inner.seconds or 0.0), -(inner.launches or 0)))
    for inner in node.inner:
        _rank(inner, total)


def _rank_by_cycles(trace: Trace, node: TreeNode, shares: Mapping[int, float]) -> None:
    """Set shares of the cycles of all launches, where known, and put the largest first."""
    for inner in node.inner:
        _rank_by_cycles(trace, inner, shares)
    if node.level == "kernel":
        share = shares.get(-1 if node.kernel is None else node.kernel)
        if share is not None and node.kernel is not None:
            node.share = share * (node.launches or 0) / trace.kernels[node.kernel].launches
    elif node.level != "line":
        known = [inner.share for inner in node.inner if inner.share is not None]
        node.share = sum(known) if known else None
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


def page_of_tree(trace: Trace, root: TreeNode, opened: frozenset[tuple[str, ...]] | None) -> TablePage[TreeNode]:
    """Return the page of the ``opened`` part of a tree; None: of all of it."""
    rows = list(root.walk(opened))
    marked = [replace(_NAME, text=lambda node: _indented(node, opened)), *_COLUMNS]
    columns = [column if _has_values(rows, column) else replace(column, text=None) for column in marked]

    def opens(node: TreeNode) -> tuple[Path, int] | None:
        return None if node.kernel is None else (trace.directory, node.kernel)

    return TablePage(
        "tree", "Where the GPU time goes", columns, rows, PageTexts((), [_order_text(trace, root)], about=TREE_ABOUT),
        opens=opens, ordered=True, names=lambda node: (node.name,),
    )  # fmt: skip


def _indented(node: TreeNode, opened: frozenset[tuple[str, ...]] | None) -> str:
    sign = " " if not node.inner else "▾" if opened is None or node.path in opened else "▸"
    number, _, name = node.name.partition(" ") if node.level == "kernel" else ("", "", node.name)
    if node.level == "program":
        name = fitted_command(name, _NAME_CELLS)
    short = f"{number} {shorten(name, _NAME_CELLS)}" if number else cut_middle(name, _NAME_CELLS)
    return f"{'  ' * (len(node.path) - 1)}{sign} {short}"


def _has_values(rows: Sequence[TreeNode], column: Column[TreeNode]) -> bool:
    return column.key not in ("share", "seconds") or any(column.value and column.value(row) is not None for row in rows)
