"""An imported profile of Nsight Systems, and what is asked of it."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from tui_probe.analysis.kernel_names import function_of
from tui_probe.analysis.name_search import names_meant
from tui_probe.analysis.projection import innermost, project, within
from tui_probe.draw import units
from tui_probe.importers.nsys_model import UNKNOWN, ProjectedRange
from tui_probe.pages.nsight.figures import nanoseconds, short_names

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from tui_probe.importers.nsys_model import NsysReport
    from tui_probe.pages.nsight.page import Only
    from tui_probe.trace.model import Kernel, Trace

FROM_ZERO: Final = "times from the start of the capture"
"""What the pages say of their one time zero, which is that of the file."""
_NAMED: Final = 6
"""Ranges that a search means which are named in text; in JSON all are."""
_NAME: Final = 40
"""Cells of the name of what alone counts."""


@dataclass
class NsysSources:
    """An imported profile, what is searched for in it, and traces of the same program."""

    report: NsysReport
    search: str = ""
    """Part of a kernel's or range's name."""
    traces: Sequence[Trace] = ()
    progress: Callable[[float], object] = lambda _: None
    """Told how far the ranges are projected, when that is first asked for."""
    only: Only | None = None
    """The kernel or range of which alone everything is."""
    _probed: dict[str, Kernel | None] = field(default_factory=dict, repr=False)

    def left(self, only: Only | None) -> NsysSources:
        """The same profile, of which only a kernel or a range counts; all of it again with None."""
        other = replace(self, only=only)
        of_all = {name: value for name, value in vars(self).items() if name in ("projected", "range_names", "columns")}
        vars(other).update(of_all)  # what is cached, and takes long
        return other

    @cached_property
    def projected(self) -> list[ProjectedRange]:
        """Ranges on streams, as the file has them or by the rule."""
        report = self.report
        return (
            list(report.projected) if report.ranges is None else project(report.kernels, report.ranges, self.progress)
        )

    @cached_property
    def range_names(self) -> list[str]:
        """For each kernel the name of the innermost range that launched it, "" if there is none."""
        report = self.report
        if report.ranges is None:
            return [""] * len(report.kernels)
        names, codes = report.ranges.names, report.ranges.name
        rows = innermost(report.kernels, report.ranges).tolist()
        return ["" if row == UNKNOWN else names[codes[row]] for row in rows]

    @cached_property
    def ranges_meant(self) -> frozenset[str]:
        """The names of ranges that the search means; all without one."""
        return names_meant((each.name for each in self.projected), self.search)

    @cached_property
    def ranges_found(self) -> list[ProjectedRange]:
        """The ranges that the search means, and those within them."""
        if self.only is not None and self.only.kind == "range":
            return [each for each in self._ranges_searched if _took_place_in(each, self.only)]
        return self._ranges_searched

    @cached_property
    def _ranges_searched(self) -> list[ProjectedRange]:
        if not self.search:
            return self.projected
        named = [each for each in self.projected if each.name in self.ranges_meant]
        return [each for each in self.projected if any(_is_in(each, other) for other in named)]

    @cached_property
    def found(self) -> list[bool]:
        """For each kernel whether it counts: the search means it, and it is what is left."""
        left = self._left(self.only)
        return [bool(each) for each in (self._searched() & left).tolist()]

    def _left(self, only: Only | None) -> NDArray[np.bool_]:
        """The kernels of a name, or those that ran within a range that has a time of its own."""
        kernels = self.report.kernels
        if only is None:
            return np.ones(len(kernels), dtype=np.bool_)
        if only.kind == "kernel":
            named = np.array([name == only.words for name in kernels.names], dtype=np.bool_)
            return (named[kernels.name] if len(kernels) else named[:0]) & self._left(only.within)
        inside = (only.start <= kernels.start) & (kernels.end <= only.end)
        return inside if only.stream is None else inside & (kernels.stream == only.stream)

    def _searched(self) -> NDArray[np.bool_]:
        """The kernels that the search means: by their names, or since they ran within a range of that name."""
        kernels, ranges, needle = self.report.kernels, self.report.ranges, self.search.lower()
        if not needle:
            return np.ones(len(kernels), dtype=np.bool_)
        named = np.array([needle in name.lower() for name in kernels.names], dtype=np.bool_)
        found = named[kernels.name] if len(kernels) else named[:0]
        if ranges is not None and len(ranges):
            meant = np.array([name in self.ranges_meant for name in ranges.names], dtype=np.bool_)
            found = found | within(kernels, ranges, meant[ranges.name])
        return found

    @cached_property
    def columns(self) -> dict[str, list[Any]]:
        """The columns of the kernels as lists: one row per cell is far quicker to ask than an array. Grid and block are
        tuples, None where a side is not known.
        """
        kernels = self.report.kernels
        names = ("start", "duration", "device", "stream", "name", "mangled", "registers", "shared")
        columns: dict[str, list[Any]] = {name: getattr(kernels, name).tolist() for name in names}
        for name, sides in (("grid", kernels.shape[:, :3]), ("block", kernels.shape[:, 3:])):
            columns[name] = [None if UNKNOWN in shape else tuple(shape) for shape in sides.tolist()]
        return columns

    @property
    def counts_part(self) -> bool:
        """Does not everything count?"""
        return bool(self.search) or self.only is not None

    def traced(self, name: str, mangled: str) -> Kernel | None:
        """Which kernel of the traces this is; the first one that was probed, else the first."""
        if not self.traces:
            return None
        key = mangled or name
        if key not in self._probed:
            same = [each for trace in self.traces for each in trace.kernels if _same(each, name, mangled)]
            self._probed[key] = next((each for each in same if each.status == "probed"), same[0] if same else None)
        return self._probed[key]


def _same(kernel: Kernel, name: str, mangled: str) -> bool:
    """Equal mangled names, or where a file has none, the same function."""
    return kernel.name == mangled if mangled else function_of(kernel.demangled) == function_of(name)


def _took_place_in(each: ProjectedRange, only: Only) -> bool:
    same = only.stream is None or each.stream == only.stream
    return same and only.start <= each.start and each.end <= only.end


def _is_in(row: ProjectedRange, other: ProjectedRange) -> bool:
    """Whether a range is another, or one within it, as the host saw them; else as its stream did."""
    if row.host_start is None or row.host_end is None or other.host_start is None or other.host_end is None:
        return row.stream == other.stream and other.start <= row.start and row.end <= other.end
    return other.host_start <= row.host_start and row.host_end <= other.host_end and row.level >= other.level


def nsys_head(sources: NsysSources, *, timed: bool = True) -> list[tuple[str, str]]:
    """Which files, on what, and what is in them or found in them; ``timed`` where the page has times of the capture."""
    report = sources.report
    head = [("files", ", ".join(short_names(report.files)))]
    for device in report.devices.values():
        sms = "SMs not known" if device.sms is None else units.counted(device.sms, "SM")
        head.append(("device", f"{device.name}, {sms}"))
    parts = _seen(sources)
    if timed and len(report.kernels):
        parts.append(FROM_ZERO)
    head.append(("seen", ", ".join(parts)))
    if sources.only is not None:
        head.append(("only", sources.only.told(_NAME)))
    if sources.search:
        head.append(("search", f"“{sources.search}”, {_ranges_told(sources)}"))
    return head


def _seen(sources: NsysSources) -> list[str]:
    """What is found: kernels, streams, ranges, the time from first to last; of how many, where that is not all."""
    report = sources.report
    kernels, found = report.kernels, np.array(sources.found, dtype=np.bool_)
    streams = len(set(zip(kernels.device[found].tolist(), kernels.stream[found].tolist(), strict=True)))
    parts = [
        found_of(sources, int(found.sum()), len(kernels), "kernel"),
        units.counted(streams, "stream"),
    ]
    if sources.only is None or sources.only.kind == "range":
        parts.append(found_of(sources, len(sources.ranges_found), len(sources.projected), "projected range"))
    if report.ranges is not None and not sources.counts_part:
        host_only = len(report.ranges) - len({(each.host_start, each.host_end) for each in sources.projected})
        parts += [f"{units.count(host_only)} of the host alone left out"] if host_only > 0 else []
    if found.any():
        parts.append(nanoseconds(int(kernels.end[found].max() - kernels.start[found].min())))
    return parts


def found_of(sources: NsysSources, found: int, of: int, noun: str) -> str:
    """``3 kernels``, where not all count ``3 of 40 kernels``."""
    some = sources.counts_part and of
    return f"{units.count(found)} of {units.counted(of, noun)}" if some else units.counted(found, noun)


def _ranges_told(sources: NsysSources) -> str:
    """Which ranges the search means, the first ones by name."""
    names = list(ranges_searched(sources) or ())
    if not names:
        return "in names of kernels; no range has it" if any(sources.found) else "no name of a kernel or range has it"
    more = len(names) - _NAMED
    return f"ranges: {', '.join(names[:_NAMED])}" + (f" and {units.count(more)} more" if more > 0 else "")


def ranges_searched(sources: NsysSources) -> list[str] | None:
    """The names of the ranges that the search means, in the order of their start; None without a search."""
    if not sources.search:
        return None
    return list(dict.fromkeys(each.name for each in sources.projected if each.name in sources.ranges_meant))
