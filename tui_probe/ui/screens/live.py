"""The live screen: kernels, and below or beside them a page about what is selected."""

from __future__ import annotations

import time
from functools import partial
from typing import TYPE_CHECKING, cast

from textual import events, on
from textual.containers import Container
from textual.screen import Screen

from tui_probe.render.kernel_detail import detail_lines
from tui_probe.ui import keys
from tui_probe.ui.feed import Snapshot
from tui_probe.ui.gpu_page import gpu_lines
from tui_probe.ui.layout import arrangement, needed
from tui_probe.ui.results_page import ResultsPage
from tui_probe.ui.save import copy_out, export
from tui_probe.ui.state_line import state_line
from tui_probe.ui.widgets.bars import Bar, Rule, Tab, TabBar, key_line
from tui_probe.ui.widgets.kernel_table import KernelTable
from tui_probe.ui.widgets.log_pane import LogPane
from tui_probe.ui.widgets.prompt import Prompt
from tui_probe.ui.widgets.text_page import TextPage

if TYPE_CHECKING:
    from collections.abc import Callable

    from textual.app import ComposeResult

    from tui_probe.render.spans import Line
    from tui_probe.ui.app import ProbeApp
    from tui_probe.ui.feed import ProcessView

    Pane = KernelTable | TextPage | LogPane

TABS = (
    Tab("kernel", "Kernel", "Kernel"),
    Tab("process", "process.log", "Build"),
    Tab("events", "event.log", "Events"),
    Tab("stdout", "stdout", "Out"),
    Tab("stderr", "stderr", "Err"),
    Tab("analysis", "Results", "Results"),
    Tab("gpu", "GPU", "GPU"),
)
INTERVAL, LOW_BANDWIDTH_INTERVAL = 0.5, 1.0
NOTICE_SECONDS = 6.0


class LiveScreen(Screen[None]):
    """Shows the feed's newest snapshot twice a second; keys act at once."""

    BINDINGS = keys.bindings("live")
    AUTO_FOCUS = "#table"
    CSS = """
    #body { layout: vertical; height: 1fr; }
    #body.beside { layout: horizontal; }
    #rule { display: none; }
    #body.beside #rule { display: block; }
    #right { layout: vertical; width: 1fr; height: 1fr; }
    #right > .page { display: none; }
    #right > .page.shown { display: block; }
    #small { display: none; }
    .small #small { display: block; }
    .small #body, .small #title, .small #state, .small #hint { display: none; }
    .hidden { display: none; }
    """

    def __init__(self) -> None:
        super().__init__()
        self.paused = False
        self.zoomed = False
        self.current = TABS[0].id
        self.snapshot = Snapshot()
        self.process_place = 0
        self.skipped_frames = 0
        self._notice = ""
        self._notice_until = 0.0
        self._in_table = True

    def compose(self) -> ComposeResult:
        """All pages are there; one is shown."""
        yield Bar("bar", id="title")
        with Container(id="body"):
            yield KernelTable(id="table")
            yield Rule(id="rule")
            with Container(id="right"):
                yield TabBar(TABS, id="tabs")
                yield TextPage("no kernel is selected", id="kernel", classes="page")
                yield LogPane(follow=False, id="process", classes="page")
                yield LogPane(id="events", classes="page")
                yield LogPane(styled=False, id="stdout", classes="page")
                yield LogPane(styled=False, id="stderr", classes="page")
                yield ResultsPage(id="analysis", classes="page")
                yield TextPage(id="gpu", classes="page")
        yield TextPage(id="small")
        yield Bar("bar", id="state")
        yield Bar(id="hint")
        yield Prompt(id="prompt")

    def on_mount(self) -> None:
        """Start the one clock of this screen."""
        self.table = self.query_one(KernelTable)
        self.show_page(self.current)
        low = self.probe_app.appearance.low_bandwidth
        self.set_interval(LOW_BANDWIDTH_INTERVAL if low else INTERVAL, self.tick)

    @property
    def probe_app(self) -> ProbeApp:
        """The application."""
        return cast("ProbeApp", self.app)

    @property
    def page(self) -> TextPage | LogPane:
        """The page that is shown."""
        return cast("TextPage | LogPane", self.query_one(f"#{self.current}"))

    @property
    def pane(self) -> Pane:
        """Where keys go."""
        return self.table if self._in_table else self.page

    @property
    def process(self) -> ProcessView | None:
        """The process that is shown: the one chosen, at first the first that launched a kernel."""
        processes = self.snapshot.processes
        if not processes:
            return None
        return processes[self.process_place % len(processes)]

    # -- the clock

    def tick(self) -> None:
        """A data frame: what changed since the last one. Left out while the terminal lags behind."""
        app = self.probe_app
        if app.feed.failure is not None:
            raise app.feed.failure
        if app.backed_up():
            self.skipped_frames += 1
            return
        with app.batch_update():
            if not self.paused:
                self.take(app.feed.latest)
            self.show_bars()

    def take(self, snapshot: Snapshot) -> None:
        """Show a snapshot."""
        self.snapshot = snapshot
        process = self.process
        self.table.empty = self._why_empty()
        self.table.show(process.kernels if process else ())
        self.query_one("#events", LogPane).open(process.event_log if process else None, "no event.log yet")
        for name, path in (("stdout", snapshot.stdout), ("stderr", snapshot.stderr)):
            self.query_one(f"#{name}", LogPane).open(path, f"nothing on {name}")
        self.look()

    def look(self) -> None:
        """Let the page in sight read what is new."""
        page = self.page
        if isinstance(page, LogPane):
            page.look()
        elif isinstance(page, ResultsPage):
            page.look(self.process)
        elif page.id == "gpu":
            app = self.probe_app
            lines = gpu_lines(
                app.gpu.latest, page.size.width, simulated=self.snapshot.simulated, ascii_only=app.ascii_only
            )
            page.show(lines)

    def _why_empty(self) -> str:
        snapshot = self.snapshot
        if not snapshot.loaded:
            return "reading the trace"
        if snapshot.running:
            return "waiting for the first kernel"
        return "no kernel was launched: page 5 has what the target wrote to stderr"

    @on(KernelTable.Selected)
    def show_kernel(self) -> None:
        """The pages of the selected kernel."""
        kernel, page = self.table.kernel, self.query_one("#kernel", TextPage)
        cells = max(20, self.page.size.width)
        simulated = self.snapshot.simulated
        page.show([] if kernel is None else detail_lines(kernel, cells, simulated=simulated))
        log = self.query_one("#process", LogPane)
        if kernel is None or kernel.folder is None:
            log.open(None, "no kernel is selected" if kernel is None else "this kernel never reached the probe engine")
        else:
            log.open(kernel.folder / "process.log", "no process.log yet")
        self.show_bars()

    # -- the bars

    def show_bars(self) -> None:
        """Title, tabs, state and keys."""
        snapshot, process = self.snapshot, self.process
        command = (process.probe + "  " if process and process.probe else "", "note"), (snapshot.command, "dim")
        several: Line = ()
        if len(snapshot.processes) > 1:
            place = self.process_place % len(snapshot.processes) + 1
            several = ((f"  process {place} of {len(snapshot.processes)}", "accent"),)
        self.query_one("#title", Bar).show(
            (("tui-probe  ", "title"), *command, *several), (("  ", ""), *self.table.status())
        )
        self.query_one(TabBar).show(self.current, self.page.status(), focused=not self._in_table)
        now = snapshot if not self.paused else self.probe_app.feed.latest
        self.query_one("#state", Bar).show(state_line(now, process, time.time(), paused=self.paused))
        self._show_hint()

    def _show_hint(self) -> None:
        bar = self.query_one("#hint", Bar)
        if self._notice and time.monotonic() < self._notice_until:
            bar.show(((self._notice, "warn"),))
            return
        scopes = ("table",) if self._in_table else ("log",) if isinstance(self.page, LogPane) else ()
        rows = [*keys.in_scope("app"), *keys.in_scope(*scopes), *keys.in_scope("live")]
        wanted = [row for row in rows if row.id != "interrupt" or self.probe_app.target_runs]
        bar.show(key_line(wanted, self.size.width - 2))

    def notice(self, text: str) -> None:
        """Say something in the bar of keys for some seconds."""
        self._notice, self._notice_until = text, time.monotonic() + NOTICE_SECONDS
        self._show_hint()

    # -- layout

    def on_resize(self, event: events.Resize) -> None:
        """Divide the terminal anew."""
        width, height = event.size
        division = arrangement(width, height)
        self.set_class(division is None, "small")
        if division is None:
            self.query_one("#small", TextPage).show([((needed(width, height), "warn"),)])
            return
        self.query_one("#body").set_class(division.beside, "beside")
        table = self.query_one(KernelTable)
        table.styles.width = division.table_cells if division.beside and not self.zoomed else "1fr"
        table.styles.height = "1fr" if division.beside or self.zoomed else division.table_cells
        self.call_after_refresh(self._after_layout)

    def _after_layout(self) -> None:
        if self.is_mounted and hasattr(self, "table"):
            self.show_kernel()
            self.look()

    def _apply_zoom(self) -> None:
        self.table.set_class(self.zoomed and not self._in_table, "hidden")
        self.query_one("#right").set_class(self.zoomed and self._in_table, "hidden")
        self.query_one("#rule").set_class(self.zoomed, "hidden")
        self.on_resize(events.Resize(self.size, self.size))

    def show_page(self, page: str, *, focus: bool = False) -> None:
        """Show a page, and let keys go to it if ``focus``."""
        self.current = page
        for other in self.query(".page"):
            other.set_class(other.id == page, "shown")
        if focus or (self.zoomed and self._in_table):
            self._focus(in_table=False)
        elif not self._in_table:
            self.page.focus()
        self.call_after_refresh(self._after_layout)

    def _focus(self, *, in_table: bool) -> None:
        changed, self._in_table = self._in_table != in_table, in_table
        if self.zoomed and changed:
            self._apply_zoom()
        self.pane.focus()
        self.show_bars()

    @on(events.DescendantFocus)
    def note_focus(self, event: events.DescendantFocus) -> None:
        """Keep which pane has the keys, also while a prompt takes them."""
        if event.widget is self.table or event.widget is self.page:
            self._in_table = event.widget is self.table
            self.show_bars()

    # -- keys

    def action_page(self, page: str) -> None:
        """Show a page and go there."""
        self.show_page(page, focus=True)

    def action_next_pane(self) -> None:
        """Table or page."""
        self._focus(in_table=not self._in_table)

    def action_back(self) -> None:
        """One level back: search and filter, full size, the table."""
        if self.pane.clear_search():
            self.show_bars()
        elif self.zoomed:
            self.action_zoom()
        elif not self._in_table:
            self._focus(in_table=True)
        else:
            self.notice("Ctrl-Q quits")

    def action_zoom(self) -> None:
        """The pane with the keys in full size, and back."""
        self.zoomed = not self.zoomed
        self._apply_zoom()

    def action_pause(self) -> None:
        """Freeze what is shown, and go on."""
        self.paused = not self.paused
        self.tick()

    def action_step_kernel(self, step: int) -> None:
        """Previous or next kernel; page and pane stay."""
        self.table.step(step)

    def action_next_process(self) -> None:
        """The next process of the target."""
        if len(self.snapshot.processes) < 2:
            self.notice("there is only one process with a trace")
            return
        self.process_place += 1
        self.table.selected = None
        self.take(self.snapshot)
        self.show_bars()

    def action_search(self) -> None:
        """Ask what to search for."""
        self._ask("search", self.pane.search)

    def action_filter(self) -> None:
        """Ask what lines or rows must contain."""
        pane = self.pane
        text = pane.order.text if isinstance(pane, KernelTable) else pane.filtered
        self._ask("show only what contains (empty: all)", pane.set_filter, text)

    def _ask(self, label: str, take: Callable[[str], None], text: str = "") -> None:
        pane, hint = self.pane, self.query_one("#hint")
        hint.add_class("hidden")

        def close() -> None:
            hint.remove_class("hidden")
            pane.focus()
            self.show_bars()

        self.query_one(Prompt).ask(label, take, close, text)

    def action_next_match(self, step: int) -> None:
        """Next or previous match in the pane with the keys."""
        self.pane.action_next_match(step)

    def action_copy(self) -> None:
        """To the clipboard and to a file."""
        text = self.pane.copied()
        app = self.probe_app
        app.quick.submit("copy", partial(copy_out, text), partial(self._copied, text))

    def _copied(self, text: str, words: str) -> None:
        self.probe_app.to_clipboard(text)
        self.notice(words)

    def action_export(self) -> None:
        """To a text file in the current directory."""
        pane = self.pane
        self.probe_app.slow.submit("export", partial(export, pane.id or "page", pane.exported()), self.notice)
