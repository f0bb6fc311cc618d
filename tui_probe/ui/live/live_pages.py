"""Pages of the live screen: the kernel, the GPUs, logs, results, and tables of the process."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Final, Protocol

from tui_probe.draw.printable import printable
from tui_probe.draw.spans import wrap
from tui_probe.pages.views import FIXED_PAGES, keys_of_pages, kind_of, page_key_texts
from tui_probe.probekit.page_kinds import PAGES
from tui_probe.ui.live.current_selection import with_newest_launch
from tui_probe.ui.live.gpus import GpuView, device_lines, ended_lines, gpu_lines
from tui_probe.ui.live.results import ResultsView, computing_line
from tui_probe.ui.live.state_line import end_span
from tui_probe.ui.screens.further_pages import kernel_tab
from tui_probe.ui.screens.page_opening import MessageView, PageHost, PageOpener, page_spec, underlying_view
from tui_probe.ui.views.log import LogView
from tui_probe.ui.views.table_views import AllLinesView, GraphsView, GrowingView, RangesView, TreeView
from tui_probe.ui.views.view import TextView
from tui_probe.ui.widgets.pane import Tab, keys_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from textual.timer import Timer

    from tui_probe.draw.spans import Line
    from tui_probe.probekit.page_kinds import ViewSource
    from tui_probe.trace.event_types import Device
    from tui_probe.ui.live.current_selection import CurrentSelection
    from tui_probe.ui.live.snapshots import ProcessView, Snapshot
    from tui_probe.ui.views.view import PaneView, ViewHost
    from tui_probe.verdicts.findings import ResultFindings
    from tui_probe.verdicts.kernel_snapshot import KernelSnapshot

REST_SECONDS = 0.1
"""Seconds that a kernel is selected before the pages show it; holding a key does not draw those on the way."""
READING_TEXT = "reading the kernel's directory"
NO_KERNEL: Final = "no kernel is selected"
_SUMMARY = "summary"
KERNEL_TABS = tuple(
    Tab("kernel" if page.name == _SUMMARY else page.name, page.title, page.short_title or page.title, page.key)
    for page in PAGES
    if page.key.isdigit()
)
"""Pages of the selected kernel; the summary grows with the run."""
RUN_TABS = tuple(
    Tab(page.name, page.title, page.title, page.key, description=page.description) for page in PAGES if page.of_run
)
"""Pages of the whole run."""
PAGE_KEYS = keys_of((*KERNEL_TABS, *RUN_TABS))
_Subject = tuple[str, object, int, int | None]
"""Name of the page, trace, kernel, row of the launch."""


def _finding_lines(
    kernel: KernelSnapshot, results: Sequence[ResultFindings] | None, limits: Sequence[str], cells: int
) -> tuple[list[Line], ...]:
    """Findings and limiter of a kernel; imported with the first of them, since it brings the analyses."""
    if results is None and kernel.results:
        return [computing_line()], []
    if not results:
        return [], []
    from tui_probe.pages.findings_page import kernel_finding_lines, limiter_lines

    return kernel_finding_lines(results, cells, page_key_texts()), list(limiter_lines(limits, cells))


class KernelPage(TextView):
    """The selected kernel: why it was probed or not, what to do, what was found, what the probe costs it."""

    def __init__(
        self,
        view_host: ViewHost,
        name: str,
        findings_of: Callable[[int], Sequence[ResultFindings] | None],
        limits_of: Callable[[int], Sequence[str]],
    ) -> None:
        super().__init__(view_host, name, "reading the trace")
        self.findings_of, self.limits_of = findings_of, limits_of
        """Functions that return what each probe found in the kernel of an index (None: no result was read yet), and its
        limiter in words.
        """
        self.kernel: KernelSnapshot | None = None
        self._failure = ""
        self._tops: dict[int, int] = {}
        """First visible line of each kernel that was shown, by its index."""

    def show_kernel(self, kernel: KernelSnapshot | None) -> None:
        """Show a kernel, at the place where it was left."""
        previous_kernel, self.kernel = self.kernel, kernel
        self._make_lines()
        if kernel is not None and (previous_kernel is None or previous_kernel.index != kernel.index):
            if previous_kernel is not None:
                self._tops[previous_kernel.index] = self.top
            self.top = self._tops.get(kernel.index, 0)
        self.request_redraw()

    def show_failure(self, snapshot: Snapshot) -> None:
        """Say first why the program failed, if it did."""
        failure = ""
        if snapshot.failure:
            failure = f"{end_span(snapshot.status)[0]}: {snapshot.failure}; press 0, then e, to see stderr"
        if failure != self._failure:
            self._failure = failure
            self._make_lines()
            self.request_redraw()

    def resize(self, width: int, height: int) -> None:
        """Wrap for another width."""
        super().resize(width, height)
        self._make_lines()

    def _make_lines(self) -> None:
        cells = max(20, self.width)
        self.lines = [] if self.kernel is None else self._kernel_lines(self.kernel, cells)
        if self._failure:
            failure_lines = [((f" {part}", "bad"),) for part in wrap(printable(self._failure), cells - 2)]
            self.lines = [*failure_lines, (), *self.lines]

    def _kernel_lines(self, kernel: KernelSnapshot, cells: int) -> list[Line]:
        if not kernel.read:
            return [((f" {READING_TEXT}", "dim"),)]
        from tui_probe.pages.kernel_detail import detail_lines  # reads results, which the first frame does not have

        findings, limit = _finding_lines(kernel, self.findings_of(kernel.index), self.limits_of(kernel.index), cells)
        return detail_lines(kernel, cells, findings=findings, limit=limit)


class GpuPage(TextView):
    """The GPUs of a run, and while it runs their load in the last minutes."""

    def __init__(self, view_host: ViewHost, name: str, *, ascii_only: bool) -> None:
        super().__init__(view_host, name)
        self.ascii_only = ascii_only
        self.gpus = GpuView()
        self.devices: Sequence[Device] = ()
        self.is_running = self.simulated = False

    def show_gpus(self, gpus: GpuView, devices: Sequence[Device], *, is_running: bool, is_simulated: bool) -> None:
        """Show the devices that the trace names, and the newest samples."""
        self.gpus, self.devices, self.is_running, self.simulated = gpus, devices, is_running, is_simulated
        self._make_lines()
        self.request_redraw()

    def resize(self, width: int, height: int) -> None:
        """Draw charts for another width."""
        super().resize(width, height)
        self._make_lines()

    def _make_lines(self) -> None:
        cells = max(20, self.width)
        self.lines = device_lines(self.devices, cells, simulated=self.simulated)
        if not self.simulated:
            self.lines += (
                gpu_lines(self.gpus, cells, ascii_only=self.ascii_only) if self.is_running else ended_lines(cells)
            )


class KernelPages:
    """Opens a page of the kernel that is selected; ``view`` is the last one that was open."""

    def __init__(self, view_host: PageHost, selection: CurrentSelection) -> None:
        self.view_host, self.selection = view_host, selection
        self.opener = PageOpener(view_host)
        self.view: PaneView = MessageView(view_host, "nothing", "reading…")
        self._source: ViewSource | None = None
        self._subject: _Subject | None = None
        self._resting_subject: _Subject | None = None

    def update(self, name: str) -> None:
        """Open the page of the selected kernel, if another one was selected and has been for a frame."""
        source = self.selection.source()
        subject = None if source is None else _subject(name, source)
        if subject == self._resting_subject and subject != self._subject and source is not None:
            self.show(name)
        self._resting_subject = subject
        self.opener.update(self.view)

    @property
    def is_reading(self) -> bool:
        """True while a page is being read."""
        return self.opener.opening is not None

    def stop_reading(self, name: str) -> bool:
        """Stop reading the page of this name; return whether it was being read."""
        was_reading = self.is_reading
        self.opener.cancel()
        if was_reading:
            self.view_host.arrive(
                MessageView(self.view_host, name, "stopped reading the page; to open a page, press its key")
            )
        return was_reading

    def show(self, name: str) -> None:
        """Open the page of the selected kernel now."""
        source = self.selection.source()
        if source is None:
            self.view_host.arrive(MessageView(self.view_host, name, NO_KERNEL))
            return
        self.save_states()
        if self._source is None or _subject("", self._source) != _subject("", source):
            self.opener.forget(self.selection.page_states(source))
        self._source, self._subject = source, _subject(name, source)
        if name in self.opener.views:
            self.view_host.arrive(self.opener.views[name])
        else:
            kind = kind_of(name)
            shown = source if name in FIXED_PAGES or kind.grows else with_newest_launch(source)
            self.opener.open(page_spec(kind, shown), underlying_view(self.view))

    def take(self, view: PaneView) -> None:
        """Take a page that is open now."""
        self.view = view

    def save_states(self) -> None:
        """Save the states of the kernel's pages."""
        if self._source is not None:
            self.selection.save_page_states(self._source, self.opener.states())


def _subject(name: str, source: ViewSource) -> _Subject:
    launch = None if source.launch is None else source.launch.row
    return name, source.trace, source.kernel.index, launch


class LiveHost(PageHost, Protocol):
    """The screen that shows pages, and has a clock."""

    @property
    def is_active(self) -> bool:
        """True if it is the screen in front."""

    def set_timer(self, delay: float, callback: Callable[[], None]) -> Timer:
        """Call after a while."""


class LivePages:
    """Pages of the live screen by name, of which ``current`` is visible.

    ``views`` are the pages that exist as long as the screen; ``of_kernel`` opens the others for the selected kernel.
    """

    def __init__(
        self,
        view_host: LiveHost,
        selection: CurrentSelection,
        findings_of: Callable[[int], Sequence[ResultFindings] | None],
        limits_of: Callable[[int], Sequence[str]],
        *,
        ascii_only: bool,
    ) -> None:
        self.current = KERNEL_TABS[0].id
        self._view_host = view_host
        self._rest_timer: Timer | None = None
        """Timer that shows ``_next_kernel`` when it ends; None if the pages show the selected kernel."""
        self._next_kernel: KernelSnapshot | None = None
        self.kernel_page = KernelPage(view_host, "kernel", findings_of, limits_of)
        self.process_log = LogView(view_host, "process", follow=False)
        self.event_log = LogView(view_host, "events")
        self.outputs = {name: LogView(view_host, name, styled=False) for name in ("stdout", "stderr")}
        self.results = ResultsView(view_host, "results")
        self.gpu_page = GpuPage(view_host, "gpu", ascii_only=ascii_only)
        self.ranges = RangesView(view_host, "ranges")
        self.graphs = GraphsView(view_host, "graphs")
        self.lines = AllLinesView(view_host, "all_lines")
        self.tree = TreeView(view_host, "tree")
        views = (self.kernel_page, self.process_log, self.event_log, *self.outputs.values(), self.results,
                 self.gpu_page, self.ranges, self.graphs, self.lines, self.tree)  # fmt: skip
        self.views: dict[str, PaneView] = {view.name: view for view in views}
        self.kernel_pages = KernelPages(view_host, selection)

    @property
    def current_view(self) -> PaneView:
        """The current page."""
        return self.views.get(self.current, self.kernel_pages.view)

    @property
    def is_reading(self) -> bool:
        """True while the current page is being read."""
        return self.shows_kernel_page and self.kernel_pages.is_reading

    def stop_reading(self) -> bool:
        """Stop reading the current page; return whether it was being read."""
        return self.is_reading and self.kernel_pages.stop_reading(self.current)

    @property
    def shows_kernel_page(self) -> bool:
        """True if the current page is opened anew for each kernel."""
        return self.current not in self.views

    def tabs(self, process: ProcessView | None) -> Sequence[Tab]:
        """Return the pages of the kernel and of the run; those of ranges, graphs and lines may be empty."""
        trace = process.trace if process else None
        has_content = {"all_lines": self.lines.has_lines}
        has_content |= {"ranges": bool(trace and len(trace.ranges)), "graphs": bool(trace and len(trace.graphs))}
        run_tabs = [replace(tab, is_empty=not has_content.get(tab.id, True)) for tab in RUN_TABS]
        known_names = {tab.id for tab in (*KERNEL_TABS, *run_tabs)}
        return (
            *KERNEL_TABS,
            *run_tabs,
            *(kernel_tab(kind_of(name), keys_of_pages()[name]) for name in {self.current} - known_names),
        )

    def take(self, snapshot: Snapshot, process: ProcessView | None, gpus: GpuView) -> None:
        """Show a snapshot, and let the current page read what is new."""
        self.event_log.open(process.event_log if process else None, "no event.log yet")
        for name, path in (("stdout", snapshot.stdout), ("stderr", snapshot.stderr)):
            self.outputs[name].open(path, f"no output on {name}")
        self.lines.look_for_lines(process)
        if snapshot.is_loaded and self.kernel_page.empty_text != NO_KERNEL:
            self.kernel_page.empty_text = NO_KERNEL
            if process is None or not process.kernels:  # else the page of the first one follows
                self.kernel_page.request_redraw()
        self.kernel_page.show_failure(snapshot)
        if self.shows_kernel_page:
            self.kernel_pages.update(self.current)
            return
        page = self.current_view
        if isinstance(page, LogView):
            page.update()
        elif isinstance(page, ResultsView):
            page.update(process, is_running=snapshot.is_running)
        elif isinstance(page, GrowingView):
            page.update(process)
        elif isinstance(page, GpuPage):
            devices = process.devices if process else ()
            page.show_gpus(gpus, devices, is_running=snapshot.is_running, is_simulated=snapshot.simulated)

    def step_to_kernel(self, kernel: KernelSnapshot | None) -> None:
        """Show the selected kernel; another one once the selection rests, so that a step sends only rows.

        Behind another screen nothing is sent, and Textual would send all of the screen in front after a timer.
        """
        previous_kernel = self.kernel_page.kernel
        self._stop_resting()
        is_same = previous_kernel is None or kernel is None or previous_kernel.index == kernel.index
        if not REST_SECONDS or is_same or not self._view_host.is_active:
            self.show_kernel(kernel)
        else:
            self._rest_timer = self._view_host.set_timer(REST_SECONDS, partial(self.show_kernel, kernel))
            self._next_kernel = kernel

    def show_pending_kernel(self) -> None:
        """Another screen comes in front: show the kernel that the selection rests on now."""
        if self._stop_resting():
            self.show_kernel(self._next_kernel)

    def _stop_resting(self) -> bool:
        """Stop the timer. Return whether it ran."""
        timer, self._rest_timer = self._rest_timer, None
        if timer is not None:
            timer.stop()
        return timer is not None

    def show_kernel(self, kernel: KernelSnapshot | None) -> None:
        """Show the selected kernel on the pages about one kernel."""
        self._rest_timer = None
        self.kernel_page.show_kernel(kernel)
        if kernel is not None and not kernel.read:
            self.process_log.open(None, READING_TEXT)
        elif kernel is None or kernel.folder is None:
            reason = NO_KERNEL if kernel is None else "this kernel was not sent to the probe engine"
            self.process_log.open(None, reason)
        else:
            self.process_log.open(kernel.folder / "process.log", "no process.log yet")
