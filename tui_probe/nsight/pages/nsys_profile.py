"""Profile of an imported timeline: its search and selection, matching traces, and the head of its pages."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Final

import numpy as np

from tui_probe.draw import units
from tui_probe.nsight.analysis.kernel_groups import function_name, search_names
from tui_probe.nsight.analysis.projection import Projection, are_enclosed, are_named, kernels_within, ranges_within
from tui_probe.nsight.importers.nsys_model import UNKNOWN, ProjectedRange
from tui_probe.nsight.pages.cells import nanoseconds, short_names

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from tui_probe.nsight.analysis.projection import ProjectedCounts
    from tui_probe.nsight.importers.nsys_model import NsysReport
    from tui_probe.pages.table_page import PagePart
    from tui_probe.trace.model import Kernel, Trace

TIME_ZERO_NOTE: Final = "times from the start of the capture"
"""Note of the pages on their common time zero, which is that of the file."""
_MAX_NAMES: Final = 6
"""Ranges that match a search and are named in text; in JSON all are."""
_NAME_CELLS: Final = 40
"""Cells for the name of the kernel or range that the profile is limited to."""


@dataclass(frozen=True)
class NsysSources:
    """An imported profile, the search and selection in it, and traces of the same program."""

    report: NsysReport
    search: str = ""
    """Part of a kernel's or range's name."""
    traces: Sequence[Trace] = ()
    progress: Callable[[float], object] = lambda _: None
    """Called with the share of the ranges that is projected, on first use."""
    part: PagePart | None = None
    """The kernel or range to which everything is limited."""
    _traced_kernels: dict[str, Kernel | None] = field(default_factory=dict, repr=False)
    shared_projection: Projection | None = field(default=None, repr=False)
    """Projection of another part of the same profile; None: computed on first use."""

    def limited_to(self, part: PagePart | None) -> NsysSources:
        """Return the profile limited to a kernel or a range; without a limit for None."""
        return replace(self, part=part, shared_projection=self._projection)

    @cached_property
    def _projection(self) -> Projection:
        return self.shared_projection or Projection(self.report, self.progress)

    @property
    def projected(self) -> Sequence[ProjectedRange]:
        """Ranges on streams, as the file has them or by the rule."""
        return self._projection.rows

    @property
    def projected_counts(self) -> ProjectedCounts:
        """Numbers of ranges in ``projected``, and of the host; none are projected only for this."""
        return self._projection.counts

    @property
    def innermost(self) -> NDArray[np.int64]:
        """Position of the innermost range that launched each kernel; -1 for none."""
        return self._projection.innermost

    def range_name(self, kernel: int) -> str | None:
        """Return the name of the innermost range that launched a kernel; None for none."""
        row, ranges = int(self.innermost[kernel]), self.report.ranges
        return None if row == UNKNOWN or ranges is None else ranges.names[ranges.name[row]] or None

    @cached_property
    def _matching_names(self) -> frozenset[str]:
        """Set of the names of ranges that match the search; all without a search."""
        return search_names((row.name for row in self.projected), self.search)

    @property
    def matching_range_names(self) -> list[str]:
        """Names of ranges that match the search, each once, in the order of their first start."""
        return list(dict.fromkeys(row.name for row in self.projected if row.name in self._matching_names))

    @cached_property
    def matching_ranges(self) -> Sequence[ProjectedRange]:
        """Ranges that match the search and the selection, and those within them."""
        selection = None if self.part is None else self.part.key
        if isinstance(selection, str):
            named_ranges = [row for row in self.projected if row.name == selection]
            return ranges_within(self._ranges_in_search, named_ranges)
        if isinstance(selection, ProjectedRange):
            return [row for row in ranges_within(self._ranges_in_search, [selection]) if row.queue == selection.queue]
        return self._ranges_in_search

    @cached_property
    def _ranges_in_search(self) -> Sequence[ProjectedRange]:
        """Ranges that match the search, and those within them; all without a search."""
        if not self.search:
            return self.projected
        named_ranges = [row for row in self.projected if row.name in self._matching_names]
        return ranges_within(self.projected, named_ranges)

    @cached_property
    def matching(self) -> NDArray[np.bool_]:
        """Mask of kernels that match the search and the selection."""
        return self._mask_of_search() & self._mask_of_part(self.part)

    def _mask_of_part(self, part: PagePart | None) -> NDArray[np.bool_]:
        """Return the mask of the kernels of a name, or of those that a range launched on its stream."""
        kernels, ranges = self.report.kernels, self.report.ranges
        if part is None:
            return np.ones(len(kernels), dtype=np.bool_)
        if part.kind == "kernel":
            has_name = np.array([name == part.name for name in kernels.names], dtype=np.bool_)
            return (has_name[kernels.name] if len(kernels) else has_name[:0]) & self._mask_of_part(part.range_part)
        if isinstance(part.key, str):  # all ranges of a name
            if ranges is not None:
                return kernels_within(kernels, ranges, are_named(ranges, part.key))
            return self._mask_of_times([row for row in self.projected if row.name == part.key])
        if isinstance(part.key, ProjectedRange):
            return self._mask_of_range(part.key)
        raise TypeError(f"{part.key!r} is neither a kernel nor a range, but a {part.kind}")

    def _mask_of_range(self, selected: ProjectedRange) -> NDArray[np.bool_]:
        """Return the mask of kernels that a range launched on its stream; by time in a file without launch calls."""
        kernels, ranges = self.report.kernels, self.report.ranges
        if ranges is None or selected.row is None:
            return self._mask_of_times([selected])
        is_selected = np.zeros(len(ranges), dtype=np.bool_)
        is_selected[selected.row] = True
        return np.asarray(kernels_within(kernels, ranges, is_selected) & (kernels.queue == selected.queue))

    def _mask_of_times(self, rows: Sequence[ProjectedRange]) -> NDArray[np.bool_]:
        """Return the mask of kernels that ran within one of the ranges on its stream, or on any if it is unknown."""
        kernels = self.report.kernels
        is_within = np.zeros(len(kernels), dtype=np.bool_)
        for queue in {row.queue for row in rows}:
            on_queue = np.flatnonzero(kernels.queue == queue) if queue is not None else np.arange(len(kernels))
            times = np.array([(row.start, row.end) for row in rows if row.queue == queue], dtype=np.int64)
            is_within[on_queue] |= are_enclosed(
                kernels.start[on_queue], kernels.end[on_queue], times[:, 0], times[:, 1]
            )
        return is_within

    def _mask_of_search(self) -> NDArray[np.bool_]:
        """Return the mask of kernels that match the search by name, or ran within a range that does."""
        kernels, ranges, needle = self.report.kernels, self.report.ranges, self.search.lower()
        if not needle:
            return np.ones(len(kernels), dtype=np.bool_)
        has_name = np.array([needle in name.lower() for name in kernels.names], dtype=np.bool_)
        matches = has_name[kernels.name] if len(kernels) else has_name[:0]
        if ranges is not None and len(ranges):
            is_searched = np.array([name in self._matching_names for name in ranges.names], dtype=np.bool_)
            matches = matches | kernels_within(kernels, ranges, is_searched[ranges.name])
        return matches

    @property
    def is_filtered(self) -> bool:
        """True if a search or selection limits the kernels."""
        return bool(self.search) or self.part is not None

    def traced_kernel(self, name: str, mangled: str) -> Kernel | None:
        """Return the kernel of the traces with this name: the first one that was probed, else the first."""
        if not self.traces:
            return None
        key = mangled or name
        if key not in self._traced_kernels:
            kernels = (kernel for trace in self.traces for kernel in trace.kernels)
            matches = [kernel for kernel in kernels if _is_same_kernel(kernel, name, mangled)]
            probed_kernels = (kernel for kernel in matches if kernel.status == "probed")
            self._traced_kernels[key] = next(probed_kernels, matches[0] if matches else None)
        return self._traced_kernels[key]


def _is_same_kernel(kernel: Kernel, name: str, mangled: str) -> bool:
    """Compare mangled names or, if a file has none, functions."""
    return kernel.name == mangled if mangled else function_name(kernel.demangled) == function_name(name)


def nsys_head(sources: NsysSources, *, timed: bool = True) -> list[tuple[str, str]]:
    """Return files, devices and a summary of contents or matches; ``timed`` if the page has times of the capture."""
    report = sources.report
    head = [("files", ", ".join(short_names(report.files)))]
    for device in report.devices.values():
        sms = "number of SMs unknown" if device.sms is None else units.counted(device.sms, "SM")
        number = f"GPU {device.number}: " if len(report.devices) > 1 else ""
        head.append(("device", f"{number}{device.name}, {sms}"))
    parts = _summary(sources)
    if timed and len(report.kernels):
        parts.append(TIME_ZERO_NOTE)
    head.append(("seen", ", ".join(parts)))
    if sources.part is not None:
        head.append(("only", sources.part.label(_NAME_CELLS)))
    if sources.search:
        head.append(("search", f"“{sources.search}”, {_search_text(sources)}"))
    return head


def _summary(sources: NsysSources) -> list[str]:
    """Summarise kernels, streams, ranges and the time from first to last, with totals if a part is shown."""
    report = sources.report
    if not len(report.kernels) and report.sums:
        launches = sum(total.launches for total in report.sums)
        return [units.counted(len(report.sums), "kernel"), units.counted(launches, "launch")]
    kernels, matching, is_graph = report.kernels, sources.matching, report.kernels.is_graph
    parts = [found_text(sources, int((matching & ~is_graph).sum()), len(kernels) - int(is_graph.sum()), "kernel")]
    if is_graph.any():
        parts.append(found_text(sources, int((matching & is_graph).sum()), int(is_graph.sum()), "graph execution"))
    parts.append(units.counted(len(np.unique(kernels.queue[matching])), "stream"))
    processes = {kernels.streams[queue].process for queue in np.unique(kernels.queue[matching]).tolist()}
    parts += [units.counted(len(processes), "process")] if len(processes) > 1 else []
    if sources.part is None or sources.part.kind == "range":
        projected = sources.projected_counts.ranges
        of_these = len(sources.matching_ranges) if sources.is_filtered else projected
        parts.append(found_text(sources, of_these, projected, "projected range"))
    if report.ranges is not None and not sources.is_filtered:
        host_only = len(report.ranges) - sources.projected_counts.host_ranges
        parts += [f"{units.counted(host_only, 'host-only range')} left out"] if host_only > 0 else []
    if matching.any():
        parts.append(nanoseconds(int(kernels.end[matching].max() - kernels.start[matching].min())))
    return parts


def found_text(sources: NsysSources, matching: int, total: int, noun: str) -> str:
    """Format ``3 kernels``, or ``3 of 40 kernels`` if a search or selection limits them."""
    if sources.is_filtered and total:
        return f"{units.count(matching)} of {units.counted(total, noun)}"
    return units.counted(matching, noun)


def _search_text(sources: NsysSources) -> str:
    """Return the text of the first range names that match the search, or that none does."""
    names = sources.matching_range_names
    if not names:
        return (
            "found in kernel names, but in no range name"
            if sources.matching.any()
            else "found in no kernel name and in no range name"
        )
    return f"ranges: {units.listed(names, _MAX_NAMES)}"
