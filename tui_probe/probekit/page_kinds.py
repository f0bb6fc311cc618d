"""Declarations of pages: their names, kinds and output formats."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final, Literal

from tui_probe.probekit.recognised import analysis_name

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tui_probe.draw.table_content import TableContent
    from tui_probe.draw.view import Progress, View
    from tui_probe.trace.launches import Launch
    from tui_probe.trace.model import KernelFacts, ProbedKernel, Trace

FIXED_PAGES: Final = ("summary", "ptx", "diff", "sass", "process", "launches")
"""Pages that every kernel has."""
SHARED_PAGES: Final = ("lines", "timeline", "latency", "results", "source", "probe", "explain")
"""Pages of a kernel that several probes fill."""
DRAWN_PAGES: Final = ("timeline",)
"""Shared pages that are drawings."""
TRACE_PAGES: Final = ("kernels", "summary", "launches", "results", "ranges", "graphs", "events", "tree")
"""Pages of a whole trace."""
RESERVED_PAGES: Final = frozenset((*FIXED_PAGES, *SHARED_PAGES, *TRACE_PAGES))
Format = Literal["table", "json", "csv", "md"]
FORMATS: Final[tuple[Format, ...]] = ("table", "json", "csv", "md")


@dataclass(frozen=True, slots=True)
class ViewSource:
    """Subject of a view: a launch of a kernel (None: the newest that has results for the view)."""

    trace: Trace
    kernel: KernelFacts
    launch: Launch | None = None

    def under(self, *analyses: str) -> ViewSource:
        """The kernel under the first probe with one of these analyses that left a result, and the launch, or the
        nearest that had this probe. Itself where the run had one probe, or none of these.
        """
        return self._under([probed for probed in self._named_probes() if analysis_name(probed) in analyses])

    def under_named(self, *probes: str) -> ViewSource:
        """``under`` without reading files: a probe of the user that names another's analysis is not found."""
        return self._under([probed for probed in self._named_probes() if probed.probe in probes])

    def by_probe(self) -> tuple[ViewSource, ...]:
        """The kernel under each probe of the run, with the launch, or the nearest that had this probe."""
        return tuple(self._with(probed) for probed in self.kernel.by_probe())

    def _named_probes(self) -> list[ProbedKernel]:
        return [probed for probed in self.kernel.by_probe() if probed.probe]

    def _under(self, probes: list[ProbedKernel]) -> ViewSource:
        if not probes:
            return self
        if self.launch is not None and self.launch.result is not None:
            made_by = {self.trace.results.probe(row) for row in self.trace.launches.results(self.launch.row)}
            probes.sort(key=lambda probed: probed.probe not in made_by)
        return self._with(next((probed for probed in probes if probed.result_rows), probes[0]))

    def _with(self, probed: ProbedKernel) -> ViewSource:
        return ViewSource(self.trace, probed, _nearest_launch(self.trace, probed, self.launch))


def _nearest_launch(trace: Trace, kernel: ProbedKernel, launch: Launch | None) -> Launch | None:
    """The launch with the result of the probe, or the nearest that has one, of the same shape if there is one.

    A launch of fused probes has a result of each: its own ``result`` is that of the first.
    """
    if launch is None or launch.result is None or launch.result in kernel.result_rows:
        return launch
    own = {row: result for result in kernel.result_rows if (row := trace.results.launch(result)) is not None}
    if launch.row in own:
        return replace(launch, result=own[launch.row])
    if not own:
        return launch
    shape = (launch.grid, launch.block, launch.shared)
    nearest: list[Launch] = sorted((trace.launches[row] for row in own), key=lambda near: abs(near.row - launch.row))
    near = next((near for near in nearest if (near.grid, near.block, near.shared) == shape), nearest[0])
    return replace(near, result=own[near.row])


@dataclass(frozen=True, slots=True)
class ViewKind:
    """A kind of view. ``name`` is the word for ``tui-probe show``, ``title`` that of its page, ``about`` one line.

    ``missing`` tells why there is nothing to show and what to do (“run with -p NAME”), None if there is; it reads
    little. ``opened`` makes the view of a kernel under one of ``probes``, and reads what is needed; it raises
    TraceError naming the file.
    """

    name: str
    title: str
    about: str
    missing: Callable[[ViewSource], str | None]
    opened: Callable[[ViewSource, Progress], View]
    explanation: tuple[str, ...] = ()
    """Explanation of the page, in paragraphs."""
    order: int = 50
    """Position among the pages of probes; pages of the kernel itself come first."""
    short: str = ""
    """The title of its tab where there is little room; "" for the whole one."""
    grows: bool = False
    """True if it is read again while the kernel is still launched."""
    drawn: bool = False
    """True if it is a drawing: a window that moves, a cursor, and a known hotspot."""
    fed_by: Callable[[], tuple[str, ...]] = tuple
    """The names of the probes whose results it shows, the one to run first; none if every kernel has what it shows."""

    @property
    def probes(self) -> tuple[str, ...]:
        """The probes whose results it shows."""
        return self.fed_by()

    def open(self, source: ViewSource, progress: Progress) -> View:
        """Open the view of a kernel under the probe that fills it."""
        return self.opened(source.under(*self.probes), progress)


@dataclass(frozen=True, slots=True)
class TracePage:
    """A page about a whole trace: report, data and screen take its cells from what ``open`` returns.

    ``open`` calls ``progress`` where results are read. ``title`` and ``about`` are those of the page of a kernel that
    has the same name, where there is one.
    """

    name: str
    open: Callable[[Trace, Progress], TableContent[Any]]
    title: str = ""
    about: str = ""
    headed: bool = True
    """True if its text begins with the head of the trace."""


@dataclass(frozen=True, slots=True)
class LazyPage:
    """One page; ``make`` may take a while. ``about`` is how to read it, a paragraph each.

    Without a terminal the first page is written, and those ``in_text``.
    """

    name: str
    title: str
    make: Callable[[], View]
    about: Sequence[str] = ()
    in_text: bool = False


@dataclass(frozen=True, slots=True)
class PageSet:
    """Files that were read. ``title`` says which."""

    title: str
    pages: Sequence[LazyPage]
