"""Declarations of pages: their names, keys, kinds and output formats."""

from __future__ import annotations

from dataclasses import dataclass, replace
from string import ascii_lowercase, ascii_uppercase
from typing import TYPE_CHECKING, Any, Final, Literal

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence

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
MORE_PAGES_KEY: Final = "0"
"""Key of the list of further pages."""
_CLOSE_KEY: Final = "q"
"""Closes the list, so it opens no page."""


@dataclass(frozen=True, slots=True)
class ViewSource:
    """Subject of a view: a launch of a kernel (None: the newest that has results for the view)."""

    trace: Trace
    kernel: KernelFacts
    launch: Launch | None = None

    def for_analyses(self, *analyses: str) -> ViewSource:
        """Return the kernel under the first probe with one of these analyses that has a result, and the nearest launch
        with this probe. Returns itself if the run had one probe, or none of these.
        """
        from tui_probe.probekit.recognised import analysis_name  # reads probe files, which no list of pages needs

        return self._for_probes([probed for probed in self._named_probes() if analysis_name(probed) in analyses])

    def for_probe_names(self, *probes: str) -> ViewSource:
        """Do the same for names of probes, without reading files: a custom probe with a built-in analysis has another
        name.
        """
        return self._for_probes([probed for probed in self._named_probes() if probed.probe in probes])

    def by_probe(self) -> tuple[ViewSource, ...]:
        """Return the kernel under each probe of the run, with the nearest launch that had this probe."""
        return tuple(self._for_probe(probed) for probed in self.kernel.by_probe())

    def of_all_probes(self) -> tuple[ViewSource, ...]:
        """Return ``by_probe`` of the kernel itself, also for a source under one probe."""
        return ViewSource(self.trace, self.kernel.kernel, self.launch).by_probe()

    def _named_probes(self) -> list[ProbedKernel]:
        return [probed for probed in self.kernel.by_probe() if probed.probe]

    def _for_probes(self, probes: list[ProbedKernel]) -> ViewSource:
        if not probes:
            return self
        if self.launch is not None and self.launch.result is not None:
            made_by = {self.trace.results.probe(row) for row in self.trace.launches.results(self.launch.row)}
            probes.sort(key=lambda probed: probed.probe not in made_by)
        return self._for_probe(next((probed for probed in probes if probed.result_rows), probes[0]))

    def _for_probe(self, probed_kernel: ProbedKernel) -> ViewSource:
        return ViewSource(self.trace, probed_kernel, _nearest_launch(self.trace, probed_kernel, self.launch))


def _nearest_launch(trace: Trace, kernel: ProbedKernel, launch: Launch | None) -> Launch | None:
    """Return the launch with the result of the probe, or the nearest that has one, of the same shape if possible.

    A launch of fused probes has a result of each probe: its own ``result`` is that of the first.
    """
    if launch is None or launch.result is None or launch.result in kernel.result_rows:
        return launch
    result_of_launch = {
        row: result for result in kernel.result_rows if (row := trace.results.launch(result)) is not None
    }
    if launch.row in result_of_launch:
        return replace(launch, result=result_of_launch[launch.row])
    if not result_of_launch:
        return launch
    shape = (launch.grid, launch.block, launch.shared)
    nearby_launches: list[Launch] = sorted(
        (trace.launches[row] for row in result_of_launch),
        key=lambda nearest_launch: abs(nearest_launch.row - launch.row),
    )
    near = next((near for near in nearby_launches if (near.grid, near.block, near.shared) == shape), nearby_launches[0])
    return replace(near, result=result_of_launch[near.row])


@dataclass(frozen=True, slots=True)
class ViewKind:
    """A kind of view. ``name`` is its argument of ``tui-probe show``, ``title`` the title of its page, ``description``
    one line.

    ``missing_reason`` returns why there is nothing to show, with advice (“run with -p NAME”), else None; it
    reads little. ``open_view`` makes the view of a kernel under one of ``probes``, and reads what is needed; it raises
    TraceError naming the file.
    """

    name: str
    title: str
    description: str
    missing_reason: Callable[[ViewSource], str | None]
    open_view: Callable[[ViewSource, Progress], View]
    explanation: tuple[str, ...] = ()
    """Explanation of the page, in paragraphs."""
    order: int = 50
    """Position among the pages of probes; pages of the kernel itself come first."""
    short_title: str = ""
    """Title of its tab on narrow terminals; "" for the full title."""
    grows: bool = False
    """True if it is read again while the kernel is still launched."""
    is_drawing: bool = False
    """True for a drawing, which has a movable window, a cursor, and a known hotspot."""
    fed_by: Callable[[], tuple[str, ...]] = tuple
    """Returns the names of the probes whose results it shows, the one to run first; none if every kernel has its data.
    """
    all_probes: bool = False
    """True if it shows results of all probes of the run: the newest of each, if no launch was selected."""
    option: str = ""
    """Option of a run that fills it, if ``-p`` with one of ``probes`` does not."""

    @property
    def probes(self) -> tuple[str, ...]:
        """The probes whose results it shows."""
        return self.fed_by()

    def open(self, source: ViewSource, progress: Progress) -> View:
        """Open the view of a kernel under the probe that fills it."""
        return self.open_view(source.for_analyses(*self.probes), progress)


@dataclass(frozen=True, slots=True)
class TracePage:
    """A page about a whole trace: report, data and screen take its cells from what ``open`` returns.

    ``open`` calls ``progress`` where results are read. ``title`` and ``description`` are those of the page of a kernel
    that has the same name, where there is one.
    """

    name: str
    open: Callable[[Trace, Progress], TableContent[Any]]
    title: str = ""
    description: str = ""
    headed: bool = True
    """True if its text begins with the head of the trace."""
    applies: Callable[[Trace], bool] | None = None
    """Returns whether it applies to a trace; if not, the page of a kernel with its name is shown. None: to all."""


@dataclass(frozen=True, slots=True)
class LazyPage:
    """One page; ``make`` may take a while. ``explanation`` is how to read it, a paragraph each.

    Without a terminal the first page is written, and those ``in_text``.
    """

    name: str
    title: str
    make: Callable[[], View]
    explanation: Sequence[str] = ()
    in_text: bool = False


@dataclass(frozen=True, slots=True)
class PageSet:
    """Pages of files of another profiler; ``title`` names the files."""

    title: str
    pages: Sequence[LazyPage]


@dataclass(frozen=True, slots=True)
class PageKey:
    """A page with its digit or letter. ``short_title`` is its title on narrow terminals; ``of_run``: it is about the
    whole run, not about a kernel. A letter without a title is kept for a page to come.
    """

    name: str
    key: str
    title: str = ""
    description: str = ""
    short_title: str = ""
    of_run: bool = False


PAGES: Final = (
    PageKey("summary", "1", "Summary", "findings, limiter, registers", "Sum"),
    PageKey("source", "2", "Source", "source code with measured values per line", "Src"),
    PageKey("ptx", "3", "PTX", "PTX of the kernel: probed, pruned or original"),
    PageKey("diff", "4", "Diff", "pruned and probed PTX side by side"),
    PageKey("sass", "5", "SASS", "SASS of the kernel: pruned and probed"),
    PageKey("lines", "6", "Lines", "table of the values of each line"),
    PageKey("timeline", "7", "Timeline", "blocks and warps, or streams, over time", "Time"),
    PageKey("launches", "8", "Launches", "shape, parameters and result of each launch", "Launch"),
    PageKey("process", "9", "Log", "process.log: how the kernel was built"),
    PageKey("all_lines", "a", "All lines", "lines of all kernels, sorted by waste and waiting time", of_run=True),
    PageKey("stderr", "e", "stderr", "standard error of the program", of_run=True),
    PageKey("phases", "f", "Phases", "phases of warps over time, and which role waits"),
    PageKey("gpu", "g", "GPU", "load, memory, clocks, temperature and power of the GPUs", of_run=True),
    PageKey("graphs", "h", "Graphs", "CUDA graphs: nodes over time, times of replays", of_run=True),
    PageKey("ranks", "k"),
    PageKey("latency", "l", "Latency", "cost of a probe, times of waits and of blocks"),
    PageKey("ranges", "n", "Ranges", "NVTX ranges and the kernels launched in them", of_run=True),
    PageKey("stdout", "o", "stdout", "standard output of the program", of_run=True),
    PageKey("probe", "p", "Probe", "file of the probe"),
    PageKey("results", "r", "Results", "values that the probe recorded in each launch", of_run=True),
    PageKey("stalls", "s", "Stalls", "wait cycles of each line"),
    PageKey("tree", "t", "Tree", "where the GPU time goes: program, ranges, kernels, lines", of_run=True),
    PageKey("events", "v", "event.log", "log of the hook driver", of_run=True),
    PageKey("explain", "x", "Explain", "walk through the trace"),
)
"""All pages that are not of one probe only; a page of a probe has the first free letter of its title. On a screen
without a summary ``1`` is its first page.
"""
DIGIT_PAGES: Final = tuple(page.name for page in PAGES if page.key.isdigit())
LETTERS: Final[Mapping[str, str]] = {page.name: page.key for page in PAGES if page.key.isalpha()}


def page_keys(pages: Mapping[str, str], *, reserved: bool = True) -> dict[str, str]:
    """Return the keys of pages, given their titles by name in order: ``3``, ``b``; "" if no letter is left.

    ``reserved``: letters of other pages stay free, so that a page has the same letter wherever it is shown.
    """
    keys = {name: str(DIGIT_PAGES.index(name) + 1) for name in pages if name in DIGIT_PAGES}
    if pages and "summary" not in pages:
        keys.setdefault(next(iter(pages)), "1")
    keys |= {name: LETTERS[name] for name in pages if name in LETTERS and name not in keys and reserved}
    used_keys = {*keys.values(), *(LETTERS.values() if reserved else ())}
    return keys | assign_letters({name: title for name, title in pages.items() if name not in keys}, used_keys)


def assign_letters(titles: Mapping[str, str], used_keys: Collection[str] = ()) -> dict[str, str]:
    """Return a letter for each title: the first one of it that is free, else any, capitals last; "" if none is left."""
    free = [letter for letter in ascii_lowercase + ascii_uppercase if letter not in {*used_keys, _CLOSE_KEY}]
    letters = {}
    for name, title in titles.items():
        letters[name] = next((letter for letter in (*title.lower(), *free) if letter in free), "")
        free = [letter for letter in free if letter != letters[name]]
    return letters


def key_text(key: str) -> str:
    """Return a page's key as it is typed: ``3``, ``0 b``."""
    return f"{MORE_PAGES_KEY} {key}" if key.isalpha() else key
