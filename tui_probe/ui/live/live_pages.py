"""Pages of the live screen: the kernel, the GPUs, logs, results, and tables of the process."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from tui_probe.pages.kernel_detail import detail_lines
from tui_probe.pages.views import keys_of_pages, kind_of
from tui_probe.probekit.page_keys import LETTERS
from tui_probe.ui.live.gpus import GpuView, device_lines, ended_lines, gpu_lines
from tui_probe.ui.live.kernel_pages import KernelPages
from tui_probe.ui.live.results import ResultsView
from tui_probe.ui.screens.further_pages import kernel_tab
from tui_probe.ui.views.log import LogView
from tui_probe.ui.views.table_views import AllLinesView, GraphsView, GrowingView, RangesView
from tui_probe.ui.views.tree_view import TreeView
from tui_probe.ui.views.view import TextView
from tui_probe.ui.widgets.tabs import Tab, keys_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tui_probe.draw.spans import Line
    from tui_probe.trace.event_types import Device
    from tui_probe.ui.live.current_selection import CurrentSelection
    from tui_probe.ui.live.feed import ProcessView, Snapshot
    from tui_probe.ui.screens.page_opening import PageDesk
    from tui_probe.ui.views.view import Desk, PaneView
    from tui_probe.verdicts.findings import ResultFindings
    from tui_probe.verdicts.kernel_snapshot import KernelSnapshot

READING_TEXT = "reading the folder of this kernel"
DIGITS = (
    Tab("kernel", "Summary", "Sum", "1"),
    Tab("source", "Source", "Src", "2"),
    Tab("ptx", "PTX", "PTX", "3"),
    Tab("diff", "Diff", "Diff", "4"),
    Tab("sass", "SASS", "SASS", "5"),
    Tab("lines", "Lines", "Lines", "6"),
    Tab("timeline", "Timeline", "Time", "7"),
    Tab("launches", "Launches", "Launch", "8"),
    Tab("process", "Log", "Log", "9"),
)
"""Pages of the selected kernel."""
_RUN_PAGES = (
    ("all_lines", "All lines", "lines of all kernels, those first that waste or wait most"),
    ("stderr", "stderr", "standard error of the program"),
    ("gpu", "GPU", "load, memory, clocks, temperature and power of the GPUs"),
    ("graphs", "Graphs", "CUDA graphs: nodes over time, replays"),
    ("ranges", "Ranges", "NVTX ranges and the kernels launched in them"),
    ("stdout", "stdout", "standard output of the program"),
    ("results", "Results", "values that the probe recorded, a line per finished launch"),
    ("tree", "Tree", "where the GPU time goes: program, ranges, kernels, lines"),
    ("events", "event.log", "log of the hook driver"),
)
RUN = tuple(Tab(name, title, title, LETTERS[name], about=about) for name, title, about in _RUN_PAGES)
"""Pages of the whole run."""
PAGE_KEYS = keys_of((*DIGITS, *RUN))


def _finding_lines(each: ResultFindings, cells: int) -> list[Line]:
    """The findings of a probe; imported with the first of them, since it brings the analyses."""
    from tui_probe.pages.findings_page import findings_lines

    return findings_lines(each, cells)


class KernelPage(TextView):
    """The selected kernel: why it was probed or not, what to do, what was found, what the probe costs it."""

    def __init__(self, desk: Desk, name: str, findings_of: Callable[[int], Sequence[ResultFindings]]) -> None:
        super().__init__(desk, name, "no kernel is selected")
        self.findings_of = findings_of
        """Function that returns what each probe found in the kernel of an index, from the results read so far."""
        self.kernel: KernelSnapshot | None = None
        self._tops: dict[int, int] = {}
        """First visible line of each kernel that was shown, by its index."""

    def show_kernel(self, kernel: KernelSnapshot | None) -> None:
        """Show a kernel, at the place where it was left."""
        before, self.kernel = self.kernel, kernel
        self._make_lines()
        if kernel is not None and (before is None or before.index != kernel.index):
            if before is not None:
                self._tops[before.index] = self.top
            self.top = self._tops.get(kernel.index, 0)
        self.changed()

    def resize(self, width: int, height: int) -> None:
        """Wrap for another width."""
        super().resize(width, height)
        self._make_lines()

    def _make_lines(self) -> None:
        cells = max(20, self.width)
        if self.kernel is None:
            self.lines = []
        else:
            results = self.findings_of(self.kernel.index)
            findings = [line for result in results for line in _finding_lines(result, cells)]
            self.lines = (
                detail_lines(self.kernel, cells, found=findings)
                if self.kernel.read
                else [((f" {READING_TEXT}", "dim"),)]
            )


class GpuPage(TextView):
    """The GPUs of a run, and while it runs their load in the last minutes."""

    def __init__(self, desk: Desk, name: str, *, ascii_only: bool) -> None:
        super().__init__(desk, name)
        self.ascii_only = ascii_only
        self.gpus = GpuView()
        self.devices: Sequence[Device] = ()
        self.running = self.simulated = False

    def show_gpus(self, gpus: GpuView, devices: Sequence[Device], *, running: bool, simulated: bool) -> None:
        """Show the devices that the trace names, and the newest samples."""
        self.gpus, self.devices, self.running, self.simulated = gpus, devices, running, simulated
        self._make_lines()
        self.changed()

    def resize(self, width: int, height: int) -> None:
        """Draw charts for another width."""
        super().resize(width, height)
        self._make_lines()

    def _make_lines(self) -> None:
        cells = max(20, self.width)
        self.lines = device_lines(self.devices, cells, simulated=self.simulated)
        if not self.simulated:
            self.lines += (
                gpu_lines(self.gpus, cells, ascii_only=self.ascii_only) if self.running else ended_lines(cells)
            )


class LivePages:
    """One of them is visible: ``current``. Those of a kernel that are not here are opened by ``of_kernel``."""

    def __init__(
        self,
        desk: PageDesk,
        selection: CurrentSelection,
        findings_of: Callable[[int], Sequence[ResultFindings]],
        *,
        ascii_only: bool,
    ) -> None:
        self.current = DIGITS[0].id
        self.kernel_page = KernelPage(desk, "kernel", findings_of)
        self.process_log = LogView(desk, "process", follow=False)
        self.event_log = LogView(desk, "events")
        self.outputs = {name: LogView(desk, name, styled=False) for name in ("stdout", "stderr")}
        self.results = ResultsView(desk, "results")
        self.gpu_page = GpuPage(desk, "gpu", ascii_only=ascii_only)
        self.ranges = RangesView(desk, "ranges")
        self.graphs = GraphsView(desk, "graphs")
        self.lines = AllLinesView(desk, "all_lines")
        self.tree = TreeView(desk, "tree")
        views = (self.kernel_page, self.process_log, self.event_log, *self.outputs.values(), self.results,
                 self.gpu_page, self.ranges, self.graphs, self.lines, self.tree)  # fmt: skip
        self.views: dict[str, PaneView] = {view.name: view for view in views}
        self.of_kernel = KernelPages(desk, selection)

    @property
    def shown(self) -> PaneView:
        """The current page."""
        return self.views.get(self.current, self.of_kernel.view)

    @property
    def is_of_kernel(self) -> bool:
        """True if the current page is opened anew for each kernel."""
        return self.current not in self.views

    def tabs(self, process: ProcessView | None) -> Sequence[Tab]:
        """Return the pages of the kernel and of the run; those of ranges, graphs and lines may be empty."""
        trace = process.trace if process else None
        has = {"all_lines": self.lines.has_lines}
        has |= {"ranges": bool(trace and len(trace.ranges)), "graphs": bool(trace and len(trace.graphs))}
        run = [replace(tab, empty=not has.get(tab.id, True)) for tab in RUN]
        known = {tab.id for tab in (*DIGITS, *run)}
        return (*DIGITS, *run, *(kernel_tab(kind_of(name), keys_of_pages()[name]) for name in {self.current} - known))

    def take(self, snapshot: Snapshot, process: ProcessView | None, gpus: GpuView) -> None:
        """Show a snapshot, and let the current page read what is new."""
        self.event_log.open(process.event_log if process else None, "no event.log yet")
        for name, path in (("stdout", snapshot.stdout), ("stderr", snapshot.stderr)):
            self.outputs[name].open(path, f"nothing on {name}")
        self.lines.look_for_lines(process)
        if self.is_of_kernel:
            self.of_kernel.look(self.current)
            return
        page = self.shown
        if isinstance(page, LogView):
            page.look()
        elif isinstance(page, ResultsView):
            page.look(process, running=snapshot.running)
        elif isinstance(page, GrowingView):
            page.look(process)
        elif isinstance(page, GpuPage):
            devices = process.devices if process else ()
            page.show_gpus(gpus, devices, running=snapshot.running, simulated=snapshot.simulated)

    def show_kernel(self, kernel: KernelSnapshot | None) -> None:
        """Show the selected kernel on the pages about one kernel."""
        self.kernel_page.show_kernel(kernel)
        if kernel is not None and not kernel.read:
            self.process_log.open(None, READING_TEXT)
        elif kernel is None or kernel.folder is None:
            why = "no kernel is selected" if kernel is None else "this kernel never reached the probe engine"
            self.process_log.open(None, why)
        else:
            self.process_log.open(kernel.folder / "process.log", "no process.log yet")
