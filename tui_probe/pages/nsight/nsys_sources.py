"""An imported profile of Nsight Systems, and what is asked of it."""

from __future__ import annotations

from dataclasses import dataclass, field
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

    from tui_probe.importers.nsys_model import NsysReport
    from tui_probe.trace.model import Kernel, Trace

FROM_ZERO: Final = "times from the start of the capture"
"""What the pages say of their one time zero, which is that of the file."""
_NAMED: Final = 6
"""Ranges that a search means which are named in text; in JSON all are."""


@dataclass
class NsysSources:
    """An imported profile, what is searched for in it, and traces of the same program."""

    report: NsysReport
    search: str = ""
    """Part of a kernel's or range's name."""
    traces: Sequence[Trace] = ()
    progress: Callable[[float], object] = lambda _: None
    """Told how far the ranges are projected, when that is first asked for."""
    _probed: dict[str, Kernel | None] = field(default_factory=dict, repr=False)

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
        if not self.search:
            return self.projected
        named = [each for each in self.projected if each.name in self.ranges_meant]
        return [each for each in self.projected if any(_is_in(each, other) for other in named)]

    @cached_property
    def found(self) -> list[bool]:
        """For each kernel whether the search means it: by its name, or since it ran within a range of that name."""
        kernels, ranges, needle = self.report.kernels, self.report.ranges, self.search.lower()
        if not needle:
            return [True] * len(kernels)
        named = np.array([needle in name.lower() for name in kernels.names], dtype=np.bool_)
        found = named[kernels.name] if len(kernels) else named
        if ranges is not None and len(ranges):
            meant = np.array([name in self.ranges_meant for name in ranges.names], dtype=np.bool_)
            found = found | within(kernels, ranges, meant[ranges.name])
        return [bool(each) for each in found.tolist()]

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
        found_of(sources, len(sources.ranges_found), len(sources.projected), "projected range"),
    ]
    if report.ranges is not None and not sources.search:
        host_only = len(report.ranges) - len({(each.host_start, each.host_end) for each in sources.projected})
        parts += [f"{units.count(host_only)} of the host alone left out"] if host_only > 0 else []
    if found.any():
        parts.append(nanoseconds(int(kernels.end[found].max() - kernels.start[found].min())))
    return parts


def found_of(sources: NsysSources, found: int, of: int, noun: str) -> str:
    """``3 kernels``, under a search ``3 of 40 kernels``."""
    return f"{units.count(found)} of {units.counted(of, noun)}" if sources.search and of else units.counted(found, noun)


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
