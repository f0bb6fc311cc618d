"""The live screen: kernels, and below or beside them a page about what is selected."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from textual.containers import Container

from tui_probe.probekit.kind import Source
from tui_probe.ui import keys
from tui_probe.ui.beginning import Beginning
from tui_probe.ui.early_keys import EarlyKeys
from tui_probe.ui.feed import Snapshot
from tui_probe.ui.launches import launch_words, newer_result, next_launch, step_applies
from tui_probe.ui.layout import arrangement
from tui_probe.ui.processes import process_choices, process_words
from tui_probe.ui.screens.kernel import KernelScreen
from tui_probe.ui.screens.picker import PickScreen
from tui_probe.ui.screens.tags import TagScreen
from tui_probe.ui.screens.view_screen import ViewScreen
from tui_probe.ui.state_line import elapsed_line, state_line
from tui_probe.ui.views.kernels import KernelTable
from tui_probe.ui.views.log import LogView
from tui_probe.ui.views.pages import READING, GpuPage, KernelPage
from tui_probe.ui.views.ranges import RangesView
from tui_probe.ui.views.results import ResultsView
from tui_probe.ui.widgets.bars import Bar, Rule, Tab, TabBar, fitting
from tui_probe.ui.widgets.pane import Pane

if TYPE_CHECKING:
    from collections.abc import Sequence

    from textual import events
    from textual.app import ComposeResult

    from tui_probe.draw.spans import Line
    from tui_probe.trace.launches import Launch
    from tui_probe.trace.model import Kernel
    from tui_probe.ui.feed import ProcessView
    from tui_probe.ui.views.view import View

TABS = (
    Tab("kernel", "Kernel", "Kernel"),
    Tab("process", "process.log", "Build"),
    Tab("events", "event.log", "Events"),
    Tab("stdout", "stdout", "Out"),
    Tab("stderr", "stderr", "Err"),
    Tab("results", "Results", "Results"),
    Tab("gpu", "GPU", "GPU"),
)
RANGES = Tab("ranges", "Ranges", "Ranges")
INTERVAL = 0.5


class LiveScreen(ViewScreen):
    """Shows the feed's newest snapshot twice a second; keys act at once."""

    BINDINGS = keys.bindings("live", "kernels", "table", "log", "ranges")

    def __init__(self, *, ascii_only: bool = False) -> None:
        super().__init__()
        self.beats = 0
        self.paused = False
        self.zoomed = False
        self.in_table = True
        self.current = TABS[0].id
        self.snapshot = Snapshot()
        self.process_place = 0
        self.skipped_frames = 0
        self.launches_at_hand: dict[int, Launch] = {}
        self.early_keys = EarlyKeys()
        self._pressing = False
        self._beginning: Beginning | None = None
        self.table = KernelTable(self, "kernels", self.show_kernel)
        self.kernel_page = KernelPage(self, "kernel")
        self.process_log = LogView(self, "process", follow=False)
        self.event_log = LogView(self, "events")
        self.outputs = {name: LogView(self, name, styled=False) for name in ("stdout", "stderr")}
        self.results = ResultsView(self, "results")
        self.gpu_page = GpuPage(self, "gpu", ascii_only=ascii_only)
        self.ranges = RangesView(self, RANGES.id)
        views = (
            self.kernel_page,
            self.process_log,
            self.event_log,
            *self.outputs.values(),
            self.results,
            self.gpu_page,
            self.ranges,
        )
        self.pages: dict[str, View] = {view.name: view for view in views}
        self.table.focused = True

    def compose(self) -> ComposeResult:
        """A table and a page, with a line of each kind around them."""
        with Container(id="top"):
            yield Bar("bar", id="title")
            yield Bar("bar", id="place")
        with Container(id="body"):
            yield Pane(self.table, id="table")
            yield Rule(id="rule")
            with Container(id="right"):
                yield TabBar(TABS, id="tabs")
                yield Pane(self.page, id="page")
        yield Bar("bar", id="state")
        yield Bar(id="hint")

    def on_mount(self) -> None:
        """Start the one clock of this screen."""
        self._divide(*self.app.size)
        self.set_interval(INTERVAL, self.beat)

    @property
    def page(self) -> View:
        """The page that is shown."""
        return self.pages[self.current]

    @property
    def view(self) -> View:
        """Where keys go."""
        return self.table if self.in_table else self.page

    @property
    def process(self) -> ProcessView | None:
        """The process that is shown."""
        processes = self.snapshot.processes
        return processes[self.process_place % len(processes)] if processes else None

    @property
    def page_tabs(self) -> Sequence[Tab]:
        """The pages that there are: that of ranges only where the target has any."""
        trace = self.process.trace if self.process else None
        return (*TABS, RANGES) if self.current == RANGES.id or (trace is not None and len(trace.ranges)) else TABS

    # -- the clock

    def beat(self) -> None:
        """The clock: a frame, but only every second time if the link is slow."""
        self.beats += 1
        if self.beats % 2 == 0 or not self.probe_app.low_bandwidth:
            self.tick()

    def tick(self) -> None:
        """A data frame: what changed since the last one. Left out while the terminal lags behind."""
        app = self.probe_app
        if app.feed.failure is not None:
            raise app.feed.failure
        if app.backed_up:
            self.skipped_frames += 1
            return
        if not self.paused:
            self.take(app.feed.latest)
        app.withdraw_question()
        self.show_bars()

    def take(self, snapshot: Snapshot) -> None:
        """Show a snapshot, and let the page in sight read what is new."""
        self._tell_end(snapshot)
        self.snapshot = snapshot
        process = self.process
        self.table.say_empty(process.problem if process and process.problem else _why_empty(snapshot))
        self.table.show(process.kernels if process else (), timed=snapshot.benchmark)
        self.event_log.open(process.event_log if process else None, "no event.log yet")
        for name, path in (("stdout", snapshot.stdout), ("stderr", snapshot.stderr)):
            self.outputs[name].open(path, f"nothing on {name}")
        self._begin()
        self._release_keys()
        page = self.page
        if isinstance(page, LogView):
            page.look()
        elif page is self.results:
            self.results.look(process)
        elif page is self.ranges:
            self.ranges.look(process)
        elif page is self.gpu_page:
            self.gpu_page.show_gpus(self.probe_app.gpu.latest, simulated=snapshot.simulated)

    def _begin(self) -> None:
        """Where the command line says, as soon as that is there."""
        self._beginning = self._beginning or Beginning(self.probe_app.session.at)
        self._beginning.look(self)

    def on_key(self, event: events.Key) -> None:
        """A key for the table waits until there is one."""
        self.probe_app.feed.rest()
        waits = self.early_keys or (self._reading and self.in_table and self.prompt is None)
        if waits and self.early_keys.hold(event):
            event.stop()
            event.prevent_default()
        else:
            super().on_key(event)

    @property
    def _reading(self) -> bool:
        return not self.snapshot.loaded or self.table.waits

    def _release_keys(self) -> None:
        if self.early_keys and not self._reading and not self._pressing:
            self._pressing = True
            self.call_later(self._press_early_keys)

    async def _press_early_keys(self) -> None:
        await self.early_keys.press(self._press)
        self._pressing = False

    async def _press(self, event: events.Key) -> None:
        if self.app.screen is not self:
            self.app.post_message(event)
        elif self.prompt is not None:
            super().on_key(event)
        elif (found := self.active_bindings.get(event.key)) is not None:
            await self.app.run_action(found.binding.action, found.node)

    def _tell_end(self, snapshot: Snapshot) -> None:
        """Say once that what is watched has ended: nobody else does."""
        before = self.snapshot
        if self.probe_app.session.watching and snapshot.loaded and not snapshot.running:
            if before.running:
                self.notice("the run has ended")
            elif not before.loaded:
                self.notice("this run has ended already: nothing more will come")

    def show_kernel(self) -> None:
        """Show the selected kernel on the pages about one kernel."""
        kernel = self.table.kernel
        self.kernel_page.show_kernel(kernel)
        self.probe_app.feed.wanted = self.table.unread_in_sight()
        self._begin()
        self._release_keys()
        if kernel is not None and not kernel.read:
            self.process_log.open(None, READING)
        elif kernel is None or kernel.folder is None:
            why = "no kernel is selected" if kernel is None else "this kernel never reached the probe engine"
            self.process_log.open(None, why)
        else:
            self.process_log.open(kernel.folder / "process.log", "no process.log yet")

    # -- the lines around the panes

    def show_bars(self) -> None:
        """Title, tabs, state and hints."""
        snapshot = self.probe_app.feed.latest
        place = self.query_one("#place", Bar)
        self.query_one("#title", Bar).show(self._title())
        place.show((), ((fitting(self.table.status(), place.size.width - 1), "dim"),))
        self.query_one(TabBar).show(self.current, self.page.status(), focused=not self.in_table, tabs=self.page_tabs)
        low = self.probe_app.low_bandwidth
        states = state_line(snapshot, self.process, paused=self.paused, low_bandwidth=low)
        self.query_one("#state", Bar).show((*elapsed_line(snapshot, time.time()), *states))
        self.show_hint()

    def _title(self) -> Line:
        process, processes = self.process, self.snapshot.processes
        spans = [(" tui-probe  ", "title")]
        if self.probe_app.session.watching:
            spans.append(("watching  ", "accent"))
        if len(processes) > 1 and process is not None:
            place = self.process_place % len(processes) + 1
            spans.append((f"process {place} of {len(processes)}: {process_words(process)}  ", "accent"))
        if process is not None and process.probe:
            spans.append((f"{process.probe}  ", "note"))
        return (*spans, (self.snapshot.command, "dim"))

    def hints(self) -> list[keys.Key]:
        """The keys of the pane that has them, then those of the screen."""
        rows = keys.in_scope("app", "live", "kernels", "view", self.view.kind)
        if self.view is self.ranges:
            rows += [row for row in keys.in_scope("table") if row.id == "open"]
        order = {"app": 0, self.view.kind: 1, "table": 1}
        rows.sort(key=lambda row: order.get(row.scope, 2))
        return [row for row in rows if row.id != "interrupt" or self.probe_app.target_runs]

    # -- layout

    def on_resize(self, event: events.Resize) -> None:
        """Divide the terminal anew."""
        self._divide(*event.size)

    def _divide(self, width: int, height: int) -> None:
        division = arrangement(width, height)
        if division is None:
            return
        table, alone = self.query_one("#table"), self.zoomed
        self.query_one("#body").set_class(division.beside and not alone, "beside")
        table.styles.width = division.table_cells if division.beside and not alone else "1fr"
        table.styles.height = "1fr" if division.beside or alone else division.table_cells
        table.set_class(alone and not self.in_table, "hidden")
        self.query_one("#right").set_class(alone and self.in_table, "hidden")
        self.show_bars()

    def focus_table(self, in_table: bool) -> None:
        """Let keys go to the table, or to the page."""
        self.in_table = self.table.focused = in_table
        if self.zoomed:
            self._divide(*self.size)
        self.redraw(self.table)

    # -- keys

    def action_page(self, page: str) -> None:
        """Show a page and go there."""
        self.current = page
        self.query_one("#page", Pane).host(self.page)
        self.take(self.snapshot)
        self.focus_table(in_table=False)

    def action_open(self) -> None:
        """To the screen of the selected kernel, or of that in a row of ranges."""
        if self.view is self.ranges:
            index = self.ranges.kernel_index()
            if index is None:
                self.notice("this line is about no kernel")
                return
            self.table.select(index)
        if self.table.kernel is None:
            self.notice("no kernel is selected")
        else:
            self.app.push_screen(KernelScreen(self))

    def action_next_pane(self) -> None:
        """Table or page."""
        self.focus_table(not self.in_table)

    def action_back(self) -> None:
        """One level back: search and filter, full size, the table."""
        if self.view.clear_search():
            return
        if self.zoomed:
            self.action_zoom()
        elif not self.in_table:
            self.focus_table(in_table=True)
        else:
            self.notice("Ctrl-Q quits")

    def action_zoom(self) -> None:
        """The pane with the keys in full size, and back."""
        self.zoomed = not self.zoomed
        self._divide(*self.size)

    def action_pause(self) -> None:
        """Freeze what is shown, and go on."""
        self.paused = not self.paused
        self.tick()

    def action_step_kernel(self, step: int) -> None:
        """Previous or next kernel; page and pane stay."""
        self.table.step(step)

    def action_step_launch(self, step: int) -> None:
        """Previous or next launch of the selected kernel, for its screen."""
        source = self.source()
        found = next_launch(source, step) if source is not None else None
        if source is None:
            self.notice("no kernel is selected")
        elif found is None:
            self.notice("no later launch has a result" if step > 0 else "no earlier launch has a result")
        else:
            self.take_launch(source, found)
            self.notice(f"#{source.kernel.index}: {self.launch_words(source.kernel)}; Enter shows it")

    def take_launch(self, source: Source, launch: Launch) -> None:
        """Have this launch at hand; the newest one stays the newest, whatever comes."""
        if newer_result(Source(source.trace, source.kernel, launch)):
            self.launches_at_hand[source.kernel.index] = launch
        else:
            self.launches_at_hand.pop(source.kernel.index, None)

    def applies(self, row: keys.Key) -> bool:
        """There may be no other kernel, launch or process; and what has ended cannot be paused."""
        if row.id in ("process", "processes"):
            return len(self.snapshot.processes) > 1
        if row.id == "together":
            return self.view is self.ranges
        if row.id == "pause":
            return self.paused or self.snapshot.running
        return step_applies(row, self.source(), self.table) and super().applies(row)

    def action_compare(self) -> None:
        """Mark the kernel at hand, or compare it with the one that was marked."""
        source = self.source()
        if source is None:
            self.notice("no kernel is selected")
        else:
            self.probe_app.compare(source)

    def source(self) -> Source | None:
        """The selected kernel and its launch at hand."""
        process, row = self.process, self.table.kernel
        trace = process.trace if process else None
        kernel = trace.kernels.get(row.index) if trace is not None and row is not None else None
        if trace is None or kernel is None:
            return None
        return Source(trace, kernel, self.launches_at_hand.get(kernel.index))

    def launch_words(self, kernel: Kernel) -> str:
        """Which launch is at hand, and of how many."""
        return launch_words(Source(kernel.trace, kernel, self.launches_at_hand.get(kernel.index)))

    def action_next_process(self) -> None:
        """The next process of the target."""
        if len(self.snapshot.processes) < 2:
            self.notice("there is one process with a trace")
            return
        self.show_process(self.process_place + 1)

    def show_process(self, place: int) -> None:
        """Show the process of this place; there is one after the last."""
        self.process_place = place
        self.table.selected = None
        self.launches_at_hand.clear()
        self.take(self.snapshot)
        self.show_bars()

    def action_processes(self) -> None:
        """Choose a process from a list."""
        processes = self.snapshot.processes
        if len(processes) < 2:
            self.notice("there is one process with a trace" if processes else "no process has a trace yet")
            return
        place = self.process_place % len(processes)
        self.app.push_screen(PickScreen("Processes", process_choices(processes), place), self._take_process)

    def _take_process(self, place: int | None) -> None:
        if place is not None:
            self.show_process(place)

    def action_sort(self, step: int) -> None:
        """Sort the table by the next or previous column."""
        self.table.sort(step)

    def action_reverse(self) -> None:
        """Reverse the table."""
        self.table.reverse()

    def action_next_status(self) -> None:
        """Only kernels of one status."""
        self.table.next_status()

    def action_together(self) -> None:
        """Ranges of one name together, or each by itself."""
        if self.view is self.ranges:
            self.ranges.toggle(self.process)
        else:
            self.notice("ranges can be taken together: page 8")

    def action_follow(self) -> None:
        """Follow the end of a log, or stay."""
        if isinstance(self.view, LogView):
            self.view.toggle_follow()
        else:
            self.notice("a log can be followed: pages 2 to 5")

    def action_tags(self) -> None:
        """Choose the tags of a log."""
        log = self.view
        if not isinstance(log, LogView):
            self.notice("a log has tags: page 3")
            return

        def take(chosen: frozenset[str] | None) -> None:
            if chosen is not None:
                log.set_tags(chosen)

        def choose(counts: dict[str, int]) -> None:
            self.app.push_screen(TagScreen(counts, log.wanted.tags), take)

        log.count_tags(choose)


def _why_empty(snapshot: Snapshot) -> str:
    if not snapshot.loaded:
        return "reading the trace"
    if snapshot.running:
        return "waiting for the first kernel"
    return "no kernel was launched: pages 4 and 5 have what it wrote (what asks or draws on a terminal: run --no-ui)"
