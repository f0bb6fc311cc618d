"""An imported timeline: search, projection, matching traces, and kernels as rows made on demand."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Final, Generic, TypeVar

import numpy as np

from tui_probe.draw import units
from tui_probe.nsight.analysis.kernel_groups import function_name, search_names
from tui_probe.nsight.analysis.projection import (
    ProjectedCounts,
    ProjectedRows,
    count_projected,
    enclosed,
    innermost,
    of_name,
    project,
    ranges_within,
    within,
)
from tui_probe.nsight.importers.nsys_model import UNKNOWN, ProjectedRange, system_id
from tui_probe.nsight.pages.cells import nanoseconds, short_names
from tui_probe.nsight.pages.row_batches import KernelBatch
from tui_probe.nsight.pages.row_batches import known as _known

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from numpy.typing import NDArray

    from tui_probe.draw.csv_output import Batch
    from tui_probe.nsight.importers.nsys_model import Column, NsysReport, SharedRows, Stream
    from tui_probe.pages.table_page import Only
    from tui_probe.trace.model import Kernel, Trace

FROM_ZERO: Final = "times from the start of the capture"
"""Note of the pages on their common time zero, which is that of the file."""
_MAX_NAMES: Final = 6
"""Ranges that a search means which are named in text; in JSON all are."""
_OF_ALL: Final = ("projected", "projected_counts", "innermost")
_NAME_CELLS: Final = 40
"""Cells for the name of the kernel or range that the profile is limited to."""
Row = TypeVar("Row")
_AT_ONCE: Final = 4096
"""Rows that are made at a time: numbers of a list are far quicker to ask for than those of an array."""


@dataclass
class NsysSources:
    """An imported profile, what is searched for in it, and traces of the same program."""

    report: NsysReport
    search: str = ""
    """Part of a kernel's or range's name."""
    traces: Sequence[Trace] = ()
    progress: Callable[[float], object] = lambda _: None
    """Called with the share of the ranges that is projected, on first use."""
    only: Only | None = None
    """The kernel or range to which everything is limited."""
    _probed: dict[str, Kernel | None] = field(default_factory=dict, repr=False)

    def filtered(self, only: Only | None) -> NsysSources:
        """Return the profile limited to a kernel or a range; without a limit for None."""
        other = replace(self, only=only)
        of_all = {name: value for name, value in vars(self).items() if name in _OF_ALL}
        vars(other).update(of_all)  # what is cached, and takes long
        return other

    @cached_property
    def projected(self) -> Sequence[ProjectedRange]:
        """Ranges on streams, as the file has them or by the rule."""
        report = self.report
        return report.projected if report.ranges is None else project(report.kernels, report.ranges, self.progress)

    @cached_property
    def projected_counts(self) -> ProjectedCounts:
        """Numbers of ranges in ``projected``, and of the host; none are projected only for this."""
        report = self.report
        if report.ranges is None or "projected" in vars(self):
            rows = self.projected
            return ProjectedCounts(len(rows), rows.on_host if isinstance(rows, ProjectedRows) else 0)
        return count_projected(report.kernels, report.ranges, self.progress)

    @cached_property
    def innermost(self) -> NDArray[np.int64]:
        """Position of the innermost range that launched each kernel; -1 for none."""
        report = self.report
        if report.ranges is None:
            return np.full(len(report.kernels), UNKNOWN, dtype=np.int64)
        return innermost(report.kernels, report.ranges)

    def range_name(self, kernel: int) -> str | None:
        """The name of the innermost range that launched a kernel."""
        row, ranges = int(self.innermost[kernel]), self.report.ranges
        return None if row == UNKNOWN or ranges is None else ranges.names[ranges.name[row]] or None

    @cached_property
    def ranges_meant(self) -> frozenset[str]:
        """The names of ranges that the search means; all without one."""
        return search_names((row.name for row in self.projected), self.search)

    @cached_property
    def ranges_found(self) -> Sequence[ProjectedRange]:
        """The ranges that the search means, and those within them."""
        selected = None if self.only is None else self.only.key
        if isinstance(selected, str):
            named = [row for row in self.projected if row.name == selected]
            return ranges_within(self._ranges_searched, named)
        if isinstance(selected, ProjectedRange):
            return [row for row in ranges_within(self._ranges_searched, [selected]) if row.queue == selected.queue]
        return self._ranges_searched

    @cached_property
    def _ranges_searched(self) -> Sequence[ProjectedRange]:
        if not self.search:
            return self.projected
        named = [row for row in self.projected if row.name in self.ranges_meant]
        return ranges_within(self.projected, named)

    @cached_property
    def found(self) -> NDArray[np.bool_]:
        """Mask of kernels that match the search and the selection."""
        return self._searched() & self._left(self.only)

    def _left(self, only: Only | None) -> NDArray[np.bool_]:
        """The kernels of a name, or those that a range launched on its stream."""
        kernels, ranges = self.report.kernels, self.report.ranges
        if only is None:
            return np.ones(len(kernels), dtype=np.bool_)
        if only.kind == "kernel":
            named = np.array([name == only.words for name in kernels.names], dtype=np.bool_)
            return (named[kernels.name] if len(kernels) else named[:0]) & self._left(only.within)
        if isinstance(only.key, str):  # all ranges of a name
            if ranges is not None:
                return within(kernels, ranges, of_name(ranges, only.key))
            return self._in_times([row for row in self.projected if row.name == only.key])
        assert isinstance(only.key, ProjectedRange)
        return self._in_range(only.key)

    def _in_range(self, whole: ProjectedRange) -> NDArray[np.bool_]:
        """The kernels that a range launched on its stream; by time in a file without the calls that launched them."""
        kernels, ranges = self.report.kernels, self.report.ranges
        if ranges is None or whole.row is None:
            return self._in_times([whole])
        chosen = np.zeros(len(ranges), dtype=np.bool_)
        chosen[whole.row] = True
        return np.asarray(within(kernels, ranges, chosen) & (kernels.queue == whole.queue))

    def _in_times(self, rows: Sequence[ProjectedRange]) -> NDArray[np.bool_]:
        """The kernels that ran within one of the ranges on its stream, or on any stream where a file does not say."""
        kernels = self.report.kernels
        is_within = np.zeros(len(kernels), dtype=np.bool_)
        for queue in {row.queue for row in rows}:
            own = np.flatnonzero(kernels.queue == queue) if queue is not None else np.arange(len(kernels))
            times = np.array([(row.start, row.end) for row in rows if row.queue == queue], dtype=np.int64)
            is_within[own] |= enclosed(kernels.start[own], kernels.end[own], times[:, 0], times[:, 1])
        return is_within

    def _searched(self) -> NDArray[np.bool_]:
        """The kernels that the search means: by their names, or since they ran within a range of that name."""
        kernels, ranges, needle = self.report.kernels, self.report.ranges, self.search.lower()
        if not needle:
            return np.ones(len(kernels), dtype=np.bool_)
        named = np.array([needle in name.lower() for name in kernels.names], dtype=np.bool_)
        matches = named[kernels.name] if len(kernels) else named[:0]
        if ranges is not None and len(ranges):
            meant = np.array([name in self.ranges_meant for name in ranges.names], dtype=np.bool_)
            matches = matches | within(kernels, ranges, meant[ranges.name])
        return matches

    @property
    def counts_part(self) -> bool:
        """True if a search or selection limits the kernels."""
        return bool(self.search) or self.only is not None

    def traced(self, name: str, mangled: str) -> Kernel | None:
        """Return the kernel of the traces with this name: the first one that was probed, else the first."""
        if not self.traces:
            return None
        key = mangled or name
        if key not in self._probed:
            same = [kernel for trace in self.traces for kernel in trace.kernels if _same(kernel, name, mangled)]
            self._probed[key] = next(
                (kernel for kernel in same if kernel.status == "probed"), same[0] if same else None
            )
        return self._probed[key]


def _same(kernel: Kernel, name: str, mangled: str) -> bool:
    """Equal mangled names, or where a file has none, the same function."""
    return kernel.name == mangled if mangled else function_name(kernel.demangled) == function_name(name)


def nsys_head(sources: NsysSources, *, timed: bool = True) -> list[tuple[str, str]]:
    """Return files, devices and a summary of contents or matches; ``timed`` if the page has times of the capture."""
    report = sources.report
    head = [("files", ", ".join(short_names(report.files)))]
    for device in report.devices.values():
        sms = "SMs not known" if device.sms is None else units.counted(device.sms, "SM")
        number = f"GPU {device.number}: " if len(report.devices) > 1 else ""
        head.append(("device", f"{number}{device.name}, {sms}"))
    parts = _found_summary(sources)
    if timed and len(report.kernels):
        parts.append(FROM_ZERO)
    head.append(("seen", ", ".join(parts)))
    if sources.only is not None:
        head.append(("only", sources.only.label(_NAME_CELLS)))
    if sources.search:
        head.append(("search", f"“{sources.search}”, {_searched_names(sources)}"))
    return head


def _found_summary(sources: NsysSources) -> list[str]:
    """Summarise kernels, streams, ranges and the time from first to last, with totals if a part is shown."""
    report = sources.report
    if not len(report.kernels) and report.sums:
        launches = sum(total.launches for total in report.sums)
        return [units.counted(len(report.sums), "kernel"), units.counted(launches, "launch")]
    kernels, found, is_graph = report.kernels, sources.found, report.kernels.is_graph
    parts = [found_text(sources, int((found & ~is_graph).sum()), len(kernels) - int(is_graph.sum()), "kernel")]
    if is_graph.any():
        parts.append(found_text(sources, int((found & is_graph).sum()), int(is_graph.sum()), "graph execution"))
    parts.append(units.counted(len(np.unique(kernels.queue[found])), "stream"))
    processes = {kernels.streams[queue].process for queue in np.unique(kernels.queue[found]).tolist()}
    parts += [units.counted(len(processes), "process")] if len(processes) > 1 else []
    if sources.only is None or sources.only.kind == "range":
        projected = sources.projected_counts.ranges
        of_these = len(sources.ranges_found) if sources.counts_part else projected
        parts.append(found_text(sources, of_these, projected, "projected range"))
    if report.ranges is not None and not sources.counts_part:
        host_only = len(report.ranges) - sources.projected_counts.on_host
        parts += [f"{units.counted(host_only, 'host-only range')} left out"] if host_only > 0 else []
    if found.any():
        parts.append(nanoseconds(int(kernels.end[found].max() - kernels.start[found].min())))
    return parts


def found_text(sources: NsysSources, found: int, of: int, noun: str) -> str:
    """``3 kernels``, where not all count ``3 of 40 kernels``."""
    some = sources.counts_part and of
    return f"{units.count(found)} of {units.counted(of, noun)}" if some else units.counted(found, noun)


def _searched_names(sources: NsysSources) -> str:
    """Name the ranges that the search matches, the first ones by name."""
    names = list(ranges_searched(sources) or ())
    if not names:
        return "in names of kernels; no range has it" if sources.found.any() else "no name of a kernel or range has it"
    more = len(names) - _MAX_NAMES
    return f"ranges: {', '.join(names[:_MAX_NAMES])}" + (f" and {units.count(more)} more" if more > 0 else "")


def ranges_searched(sources: NsysSources) -> list[str] | None:
    """The names of the ranges that the search means, in the order of their start; None without a search."""
    if not sources.search:
        return None
    return list(dict.fromkeys(row.name for row in sources.projected if row.name in sources.ranges_meant))


@dataclass(frozen=True, slots=True)
class NsysKernelRow:
    """One kernel, or one execution of a whole graph; ``number`` is its place in the order of start.

    ``shape`` has grid and block, six sides. -1 is not known.
    """

    sources: NsysSources
    number: int
    start: int
    duration: int
    at: Stream
    name: str
    mangled: str
    shape: Sequence[int]
    registers_used: int
    shared_bytes: int
    graph: int

    @property
    def device(self) -> int:
        return self.at.device

    @property
    def stream(self) -> int | None:
        return _known(self.at.number)

    @property
    def process(self) -> int | None:
        return system_id(self.at.process)

    @property
    def context(self) -> int | None:
        return _known(self.at.context)

    @property
    def registers(self) -> int | None:
        return _known(self.registers_used)

    @property
    def shared(self) -> int | None:
        return _known(self.shared_bytes)

    @property
    def grid(self) -> tuple[int, ...] | None:
        return None if UNKNOWN in self.shape[:3] else tuple(self.shape[:3])

    @property
    def block(self) -> tuple[int, ...] | None:
        return None if UNKNOWN in self.shape[3:] else tuple(self.shape[3:])

    @property
    def blocks(self) -> int | None:
        grid = self.grid
        return None if grid is None else grid[0] * grid[1] * grid[2]

    @property
    def few_blocks(self) -> bool | None:
        """Return whether there are fewer blocks than SMs; None if either is not known."""
        device = self.sources.report.devices.get(self.device)
        sms = None if device is None else device.sms
        return None if sms is None or self.blocks is None else self.blocks < sms

    @property
    def range(self) -> str | None:
        return self.sources.range_name(self.number)

    @property
    def traced(self) -> Kernel | None:
        """Return the same kernel in a trace; None if there is none."""
        return self.sources.traced(self.name, self.mangled)

    @property
    def probed(self) -> str | None:
        """Trace, number and status of the same kernel in the traces."""
        kernel = self.traced
        return None if kernel is None else f"{kernel.trace.directory.name} #{kernel.index} {kernel.status}"


class RowsOnDemand(Generic[Row]):
    """``count`` rows. ``make`` makes those from one position to another, ``batch`` their batch."""

    def __init__(self, count: int, make: Callable[[int, int], list[Row]], batch: Callable[[int, int], Batch]) -> None:
        self._count, self._make, self._batch = count, make, batch
        self._part: tuple[int, list[Row]] = UNKNOWN, []
        """The part that was made last, and its rows."""

    def __len__(self) -> int:
        return self._count

    def __getitem__(self, place: int) -> Row:
        part, offset = divmod(range(self._count)[place], _AT_ONCE)
        return self._rows(part)[offset]

    def __iter__(self) -> Iterator[Row]:
        for part in range(-(-self._count // _AT_ONCE)):
            yield from self._rows(part)

    def batches(self) -> Iterator[Batch]:
        for begin in range(0, self._count, _AT_ONCE):
            yield self._batch(begin, min(begin + _AT_ONCE, self._count))

    def _rows(self, part: int) -> list[Row]:
        number, rows = self._part
        if number != part:
            rows = self._make(part * _AT_ONCE, min(self._count, (part + 1) * _AT_ONCE))
            self._part = part, rows
        return rows


def kernel_rows(sources: NsysSources, positions: NDArray[np.int64]) -> RowsOnDemand[NsysKernelRow]:
    """Rows of the kernels at some positions."""

    def batch(begin: int, end: int) -> KernelBatch:
        some = positions[begin:end]
        return KernelBatch(
            sources.report,
            some,
            lambda: sources.innermost,
            lambda: _few_rows(sources, some),
            traces=bool(sources.traces),
        )

    return RowsOnDemand(len(positions), lambda begin, end: _few_rows(sources, positions[begin:end]), batch)


def _few_rows(sources: NsysSources, positions: NDArray[np.int64]) -> list[NsysKernelRow]:
    """The rows of a few kernels."""
    kernels = sources.report.kernels
    names, streams = kernels.names, kernels.streams
    columns: tuple[Column | SharedRows, ...] = (
        kernels.start, kernels.end, kernels.queue, kernels.name, kernels.mangled, kernels.shape,
        kernels.registers, kernels.shared, kernels.graph,
    )  # fmt: skip
    return [
        NsysKernelRow(
            sources, number, start, end - start, streams[queue], names[name],
            "" if mangled == UNKNOWN else names[mangled], shape, registers, shared, graph,
        )
        for number, start, end, queue, name, mangled, shape, registers, shared, graph in zip(
            positions.tolist(), *(column[positions].tolist() for column in columns), strict=True
        )
    ]  # fmt: skip


def few_blocks(sources: NsysSources, positions: NDArray[np.int64]) -> int:
    """Count the kernels with fewer blocks than their GPU has SMs."""
    kernels = sources.report.kernels
    sms = np.array([_sms(sources, stream) for stream in kernels.streams], dtype=np.int64)
    grids = kernels.shape[positions][:, :3].astype(np.int64)
    few = (grids > 0).all(axis=1) & (grids.prod(axis=1) < sms[kernels.queue[positions]]) if len(grids) else grids[:, 0]
    return int(few.sum())


def _sms(sources: NsysSources, stream: Stream) -> int:
    device = sources.report.devices.get(stream.device)
    return 0 if device is None or device.sms is None else device.sms
