"""Live screen: the kernel table and a page, with the lines around them, and the actions of their keys."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from textual.containers import Container

from tui_probe.pages.views import FIXED_PAGES
from tui_probe.trace.user_state import LastView
from tui_probe.ui import keys
from tui_probe.ui.early_keys import LEAVING_KEY_IDS, PAGE_KEY_IDS, EarlyKeys
from tui_probe.ui.live.current_selection import CurrentSelection, ProcessSwitch, step_applies
from tui_probe.ui.live.initial_place import InitialPlace
from tui_probe.ui.live.kernel_table import KernelTable, names_of
from tui_probe.ui.live.live_bars import LiveBars, LiveFrames, LivePanes
from tui_probe.ui.live.live_pages import KERNEL_TABS, PAGE_KEYS, LivePages
from tui_probe.ui.live.preview import Preview
from tui_probe.ui.live.results import KernelFindings
from tui_probe.ui.live.state_line import KernelFilterWarning
from tui_probe.ui.screens.further_pages import LetterScreen, live_further_pages
from tui_probe.ui.screens.kernel import PROBE, KernelScreen
from tui_probe.ui.screens.lists import PickerItem, choose_tags
from tui_probe.ui.screens.page_opening import MessageView
from tui_probe.ui.screens.view_screen import ViewScreen
from tui_probe.ui.views.log import LogView
from tui_probe.ui.views.table_views import GrowingView, RangesView, TreeView
from tui_probe.ui.widgets.pane import Bar, FrameEdge, Pane, TabBar, keys_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from textual import events
    from textual.app import ComposeResult

    from tui_probe.trace.model import Trace
    from tui_probe.ui.live.snapshots import ProcessView
    from tui_probe.ui.views.view import PaneView
    from tui_probe.ui.widgets.pane import Tab

_LOGS = ("process", "events", "stdout", "stderr")
"""Pages that are logs."""


class LiveScreen(ViewScreen):
    """The kernels of what runs or ran, below all other screens; keys act immediately, no matter what is being read.

    Shows the feed's newest snapshot twice a second, in a table and a page, with a line of each kind around them.
    """

    CAN_ASK = True
    BINDINGS = keys.bindings("tabs", "live", "kernels", "table", "log", "ranges")

    def __init__(self, *, ascii_only: bool = False) -> None:
        super().__init__()
        self.table = KernelTable(self, "kernels", self.show_kernel)
        self.table.focused = True
        self.current_selection = selection = CurrentSelection(self.table)
        self.findings = findings = KernelFindings(
            self, lambda process, findings: self.probe_app.feed.add_findings(process, findings)
        )
        self.pages = LivePages(self, selection, findings.results_of, findings.limits_of, ascii_only=ascii_only)
        self.preview = Preview(self, "preview", findings.results_of, findings.limits_of, ascii_only=ascii_only)
        self.switch = ProcessSwitch(self, selection, lambda: self.frames.show_again())
        self.panes = LivePanes(self.table, self.pages, self.preview, selection, self.switch)
        self.bars = LiveBars(self, self.panes)
        self.early_keys = EarlyKeys(self, lambda: not selection.snapshot.is_loaded or self.table.is_waiting)
        self.early_page_keys = EarlyKeys(self, lambda: self.pages.is_reading, PAGE_KEY_IDS, LEAVING_KEY_IDS)
        startup = InitialPlace(self), self.early_keys
        self.frames = LiveFrames(self, self.panes, self.bars, findings, startup)

    def compose(self) -> ComposeResult:
        """Lay out a table and a page, with lines around them."""
        yield Bar("bar", id="title")
        with Container(id="body"):
            with Container(id="left"):
                yield FrameEdge(id="place")
                yield Pane(self.table, heavy=True, id="table")
                yield FrameEdge("bottom", id="table_end")
                yield FrameEdge(id="preview_title")
                yield Pane(self.preview, id="preview")
                yield FrameEdge("bottom", id="preview_end")
            with Container(id="right"):
                yield TabBar(KERNEL_TABS, id="tabs")
                yield Pane(self.pages.current_view, heavy=True, id="page")
                yield FrameEdge("bottom", id="state")
        yield Bar(id="hint")

    def on_mount(self) -> None:
        """Start the one clock of this screen."""
        self.bars.divide(*self.app.size)
        self.frames.start()

    @property
    def current(self) -> str:
        """The name of the page that is shown."""
        return self.pages.current

    @property
    def view(self) -> PaneView:
        """The pane that has the keys."""
        return self.panes.view

    @property
    def in_table(self) -> bool:
        """True if keys go to the table."""
        return self.panes.in_table

    @property
    def zoomed(self) -> bool:
        """True if the pane with the keys is in full size."""
        return self.panes.zoomed

    @property
    def process(self) -> ProcessView | None:
        """The process that is shown."""
        return self.panes.process

    def full_names(self) -> Sequence[str]:
        """Return the full names at the cursor of the page, else those of the selected kernel."""
        kernel = self.table.kernel
        return super().full_names() or ([] if kernel is None else names_of(kernel))

    @property
    def preview_pane(self) -> Pane:
        """Return the pane with the preview of the selected kernel."""
        return self.query_one("#preview", Pane)

    @property
    def page_tabs(self) -> Sequence[Tab]:
        """The pages that there are."""
        return self.panes.tabs

    def refresh_frame(self) -> None:
        """Draw what changed since the last frame."""
        self.frames.refresh()

    def show_kernel(self) -> None:
        """Show the selected kernel on the pages about one kernel."""
        self.probe_app.feed.wanted = self.table.unread_in_sight()
        self.frames.begin()
        self.pages.step_to_kernel(self.table.kernel)

    # -- the lines around the panes

    def show_bars(self) -> None:
        """Draw title, tabs, state and hints."""
        self.bars.show()
        self.show_hint()

    # -- layout

    def on_resize(self, event: events.Resize) -> None:
        """Divide the terminal anew."""
        self.bars.divide(*event.size)
        self.show_hint()

    def focus_table(self, *, in_table: bool) -> None:
        """Let keys go to the table, or to the page."""
        self.panes.in_table = self.table.focused = in_table
        for view in (*self.pages.views.values(), self.pages.kernel_pages.view):
            view.focused = not in_table and view is self.pages.current_view
        if self.zoomed:
            self.bars.divide(*self.size)
        self.redraw(self.table)
        self.redraw(self.pages.current_view)

    # -- keys of the screen

    def hints(self) -> list[keys.Key]:
        """The keys of the pane that has them, then those of the screen."""
        return self.bars.hints()

    def on_screen_suspend(self) -> None:
        """Show what waits for the selection to rest: Textual would send all of the screen in front after a timer."""
        self.pages.show_pending_kernel()

    def on_key(self, event: events.Key) -> None:
        """Handle a key; hold one for the table until there is a table."""
        self.probe_app.feed.rest()
        self.table.hold()
        has_keys, in_table = self.prompt is None, self.in_table
        if self.early_keys.hold(event, has_keys=has_keys and in_table) or self.early_page_keys.hold(
            event, has_keys=has_keys and not in_table
        ):
            event.stop()
            event.prevent_default()
        else:
            self.take_key(event)

    def applies(self, row: keys.Key) -> bool:
        """Return whether a key acts now: its kernel, launch or process exists, and the run can be paused."""
        if row.id in ("previous_process", "next_process", "processes"):
            return self.switch.applies
        if row.id == "together":
            return self.view is self.pages.ranges
        if row.id == "record":
            return self.current_selection.snapshot.recording is not None
        if row.id == "pause":
            return self.current_selection.is_paused or self.current_selection.snapshot.is_running
        return step_applies(row, self.current_selection.source(), self.table) and super().applies(row)

    def action_next_page(self, step: int) -> None:
        """Show the next or previous page of those that have content."""
        names = [tab.id for tab in self.page_tabs if not tab.is_empty or tab.id == self.current]
        self.action_page(names[(names.index(self.current) + step) % len(names)])

    def action_probe(self) -> None:
        """Show the source of the probe."""
        self.action_page(PROBE)

    def action_page(self, page: str) -> None:
        """Show a page; the pane with the keys keeps them."""
        self.pages.current = page
        if self.pages.shows_kernel_page:
            self.pages.kernel_pages.show(page)
        else:
            self._host(self.pages.current_view)
        self.frames.show(self.current_selection.snapshot)

    def _host(self, view: PaneView) -> None:
        view.focused = not self.in_table
        self.query_one("#page", Pane).host(view)

    def action_digit(self, digit: int) -> None:
        """Show the page of a digit."""
        self.action_page(KERNEL_TABS[digit - 1].id)

    def action_more_pages(self) -> None:
        """List the pages of the run, and further ones of the selected kernel."""
        run_tabs, menu = [tab for tab in self.page_tabs if tab.id in PAGE_KEYS], LetterScreen("Pages")
        self.app.push_screen(menu, self._take_page)
        job = partial(live_further_pages, run_tabs, self.current_selection.source())
        self.tables.submit((self, "pages"), job, menu.take)

    def _take_page(self, page: str | None) -> None:
        if page is not None:
            self.action_page(page)

    # -- the pages of a kernel

    @property
    def ascii_only(self) -> bool:
        """True if only ASCII characters are drawn."""
        return self.probe_app.ascii_only

    @property
    def window(self) -> tuple[int, int]:
        """Columns and rows for a page."""
        return self.query_one("#page", Pane).inner

    def page_keys(self) -> Mapping[str, str]:
        """Return the keys of pages, by name."""
        return keys_of(self.page_tabs)

    def arrive(self, view: PaneView) -> None:
        """Show a page of a kernel that is open now."""
        self.host(view)
        self.early_page_keys.release()

    def host(self, view: PaneView) -> None:
        """Show a page of a kernel, or the progress of reading it."""
        self.pages.kernel_pages.take(view)
        if self.pages.shows_kernel_page and self.is_mounted:
            self._host(view)
            self.show_bars()

    def action_next_pane(self) -> None:
        """Give the keys to the other pane, table or page."""
        self.focus_table(in_table=not self.in_table)

    def action_zoom(self) -> None:
        """Show the pane with the keys in full size, or both panes again."""
        self.panes.zoomed = not self.zoomed
        self.bars.divide(*self.size)
        self.show_hint()

    def action_back(self) -> None:
        """Go one level back: stop reading, end search and filter, leave full size, go to the table, then home."""
        if self.pages.stop_reading() or self.view.clear_search():
            return
        if self.zoomed:
            self.action_zoom()
        elif not self.in_table:
            self.focus_table(in_table=True)
        elif self.probe_app.session.from_home:
            self.call_later(self.app.run_action, "quit")  # which leads home, and asks first while the target runs
        else:
            self.notice("this is the first screen: Ctrl-Q quits")

    def action_pause(self) -> None:
        """Freeze the display, or continue."""
        if not self.current_selection.is_paused and not self.current_selection.snapshot.is_running:
            self.notice("the run has ended, so the display does not change")
            return
        self.current_selection.is_paused = not self.current_selection.is_paused
        self.refresh_frame()

    def action_record(self) -> None:
        """Switch recording on or off, in all processes of the run."""
        snapshot = self.current_selection.snapshot
        if snapshot.is_loaded and not snapshot.is_running:
            self.notice("the run has ended: press R to run the program again")
            return
        is_on = self.probe_app.feed.switch.toggle()
        if is_on is None:
            self.notice("recording can be turned on or off after the first launch")
        else:
            self.notice("recording is on" if is_on else f"recording is off; press {keys.key_of('record')} to resume")

    def action_stuck(self) -> None:
        """Show the warps of the last launch that does not end; offer a run that finds them if this one cannot."""
        from tui_probe.verdicts.unended_launches import stuck_answer  # brings the probes

        trace = self.process.trace if self.process else None
        if trace is None:
            self.notice("no kernel was launched yet")
            return
        answer = stuck_answer(trace, is_running=self.current_selection.snapshot.is_running)
        if answer.kernel is not None:
            self.table.select(answer.kernel)
        if answer.page:
            self.show_screen_of_kernel(answer.page)
        elif answer.rerun_option:
            self.probe_app.run_again(trace.directory, None, answer.rerun_option)
        else:
            self.notice(answer.message)

    def action_again(self) -> None:
        """Run the program again."""
        self.action_ask("")

    def action_ask(self, probe: str) -> None:
        """Run the program again, with a probe or with one to choose."""
        source, process, option = self.current_selection.source(), self.process, f"-p {probe}" if probe else ""
        if source is not None:
            self.probe_app.run_again(source.trace.directory, source.kernel.kernel, option)
        elif process is not None:
            self.probe_app.run_again(process.directory, None, option)

    # -- keys about kernels, launches and processes

    def action_open(self) -> None:
        """Open the screen of the kernel that is selected or in the row at the cursor; for a range show its kernels."""
        if isinstance(self.view, RangesView | TreeView) and self.view.enter():
            return
        if isinstance(self.view, GrowingView):
            index = self.view.kernel_index()
            if index is None:
                self.notice("this line names no kernel")
                return
            self.table.select(index)
            self.show_screen_of_kernel(*self.view.destination())
            return
        if not self.in_table and self.view is not self.pages.kernel_page and not self.pages.shows_kernel_page:
            self.notice("press Tab to go to the table, then Enter to open a kernel")
        elif self.table.kernel is None:
            self.notice("no kernel is selected")
        else:
            self.pages.kernel_pages.save_states()
            self.show_screen_of_kernel(self.current if self.pages.shows_kernel_page else "")

    def commands(self) -> Sequence[PickerItem]:
        """Return the entry of the palette that lists all that was not measured."""
        process = self.process
        if process is None or process.trace is None:
            return ()
        text = "unknown missing no result unprobed skipped"
        show = partial(self._show_unmeasured, process.trace)
        return (PickerItem("what was not measured, and why", "list", value=show, search_words=text),)

    def _show_unmeasured(self, trace: Trace) -> None:
        from tui_probe.pages.run_report import unmeasured_lines  # brings the analyses

        self.tables.submit((self, "unmeasured"), partial(unmeasured_lines, trace, self.app.size.width), self.show_names)

    def show_screen_of_kernel(self, page: str = "", line: int | None = None) -> None:
        """Go to the screen of the selected kernel, to its first page or to this one, and to a line of the PTX."""
        self.app.push_screen(KernelScreen(self.current_selection, page or FIXED_PAGES[0], line))

    @property
    def place(self) -> LastView:
        """Return the user's place: kernel, page, line and sorting; in place of an empty page the first one."""
        kernel_screen = next((screen for screen in self.app.screen_stack if isinstance(screen, KernelScreen)), None)
        column, reverse = self.table.sorting
        page, line = (
            (FIXED_PAGES[0] if kernel_screen.is_empty else kernel_screen.current, kernel_screen.line)
            if kernel_screen
            else ("", None)
        )
        current = KERNEL_TABS[0].id if isinstance(self.pages.current_view, MessageView) else self.current
        return LastView(self.table.selected_index, current, page, column, reverse, line)

    def open_kernel(self, directory: Path, index: int) -> str:
        """Open the screen of a kernel of the trace in ``directory``. Return why that cannot be done yet, else ""."""
        processes = self.current_selection.snapshot.processes
        place = next((place for place, process in enumerate(processes) if process.directory == directory), None)
        if place is None or all(row.index != index for row in processes[place].kernels):
            return f"{directory.name} is still being read: try again in a moment"
        self.switch.show(place)
        self.table.select(index)
        # The table takes its rows in the background: what is asked for later comes after it.
        self.tables.submit((self, "open"), lambda: None, lambda _: self.show_screen_of_kernel())
        return ""

    def action_step_kernel(self, step: int) -> None:
        """Select the previous or next kernel; page and pane stay."""
        self.table.step(step)

    def action_step_launch(self, step: int) -> None:
        """Select the previous or next launch of the selected kernel, for its screen."""
        source = self.current_selection.source()
        problem = self.current_selection.step_launch(source, step) if source is not None else "no kernel is selected"
        self.notice(problem or f"{self.current_selection.selection_text()}; press Enter to see it")

    def action_compare(self) -> None:
        """Mark the kernel at hand, or compare it with the one that was marked."""
        source = self.current_selection.source()
        if source is None:
            self.notice("no kernel is selected")
        else:
            self.probe_app.compare(source)

    def action_step_process(self, step: int) -> None:
        """Show the next or previous process of the program."""
        self.switch.step(step)

    def action_processes(self) -> None:
        """Choose a process from a list."""
        self.switch.choose()

    # -- keys of one pane

    def action_reverse(self) -> None:
        """Reverse the order of the table."""
        if self._has_table():
            self.table.reverse()

    def action_next_status(self) -> None:
        """Show only kernels of the next status, or all again."""
        if self._has_table():
            self.table.next_status()

    def _has_table(self) -> bool:
        """Return whether keys go to the table; otherwise tell the user how to get there."""
        if not self.in_table:
            self.notice("the key works in the table; press Tab to go there")
        return self.in_table

    def action_together(self) -> None:
        """Merge ranges of one name, or list all."""
        if self.view is self.pages.ranges:
            self.pages.ranges.toggle(self.process)
        else:
            self.notice(
                f"the key {keys.key_of('together')} works on the page Ranges; press {PAGE_KEYS['ranges']} to open it"
            )

    def action_follow(self) -> None:
        """Follow the end of a log, or stop."""
        if isinstance(self.view, LogView):
            self.view.toggle_follow()
        else:
            self.notice(
                f"the key {keys.key_of('follow')} works in a log; press {', '.join(PAGE_KEYS[name] for name in _LOGS)}"
            )

    def action_tags(self) -> None:
        """Choose the tags of a log."""
        if isinstance(self.view, LogView):
            choose_tags(self.app, self.view)
        else:
            self.notice(
                f"the key {keys.key_of('tags')} works on the page event.log; press {PAGE_KEYS['events']} to open it"
            )

    def action_next_found(self) -> None:
        """Select the next flagged kernel."""
        self.notice(self.table.next_flagged() or self._no_flagged_reason())

    def _no_flagged_reason(self) -> str:
        if self.table.is_waiting or not self.current_selection.snapshot.is_loaded:
            return "still reading the trace"
        probed_rows = [row for row in self.table.kernels.all_rows if row.status == "probed"]
        if any(row.results and not self.findings.has_read(row.index) for row in probed_rows):
            return "still reading the results"
        if probed_rows:
            return "no kernel in the table is flagged"
        return f"nothing measured: {KernelFilterWarning.unmeasured_reason(self.current_selection.snapshot)}"
