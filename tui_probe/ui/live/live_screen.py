"""Live screen: actions of its keys."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tui_probe.pages.views import FIXED_PAGES
from tui_probe.trace.user_state import LastView
from tui_probe.ui import keys
from tui_probe.ui.live.current_selection import step_applies
from tui_probe.ui.live.live_frame import LiveFrame
from tui_probe.ui.live.state_line import KernelFilterWarning
from tui_probe.ui.screens.kernel import KernelScreen
from tui_probe.ui.screens.lists import choose_tags
from tui_probe.ui.views.log import LogView
from tui_probe.ui.views.table_views import GrowingView
from tui_probe.ui.widgets.lines import Pane

if TYPE_CHECKING:
    from pathlib import Path

    from textual import events


class LiveScreen(LiveFrame):
    """The kernels of what runs or ran, below all other screens; keys act at once, whatever is being read."""

    ASKS = True
    BINDINGS = keys.bindings("live", "kernels", "table", "log", "ranges")

    def hints(self) -> list[keys.Key]:
        """The keys of the pane that has them, then those of the screen."""
        rows = keys.in_scope("app", "live", "kernels", "view", self.view.kind)
        if isinstance(self.view, GrowingView):
            rows += [row for row in keys.in_scope("table") if row.id == "open"]
        order = {"app": 0, self.view.kind: 1, "table": 1}
        rows.sort(key=lambda row: 2 if row.id == "next_found" else order.get(row.scope, 3))
        return [row for row in rows if self._named(row)]

    def _named(self, row: keys.Key) -> bool:
        """Return whether a key acts now; others are not named."""
        if row.id == "next_found":
            return any(kernel.stands_out for kernel in self.table.shown)
        return row.id != "interrupt" or self.probe_app.target_runs

    # -- keys of the screen

    _found: int | None = None
    """The kernel to which ``!`` went last."""

    def on_key(self, event: events.Key) -> None:
        """A key for the table waits until there is one."""
        self.probe_app.feed.rest()
        self.table.hold()
        if self.early_keys.hold(event, on_table=self.in_table and self.prompt is None):
            event.stop()
            event.prevent_default()
        else:
            self.take_key(event)

    def applies(self, row: keys.Key) -> bool:
        """There may be no other kernel, launch or process; and what has ended cannot be paused."""
        if row.id in ("process", "processes"):
            return self.switch.applies
        if row.id == "together":
            return self.view is self.pages.ranges
        if row.id == "record":
            return self.current_selection.snapshot.recording is not None
        if row.id == "pause":
            return self.current_selection.paused or self.current_selection.snapshot.running
        return step_applies(row, self.current_selection.source(), self.table) and super().applies(row)

    def action_page(self, page: str) -> None:
        """Show a page and go there."""
        self.pages.current = page
        self.query_one("#page", Pane).host(self.pages.shown)
        self.take(self.current_selection.snapshot)
        self.focus_table(in_table=False)

    def action_next_pane(self) -> None:
        """Table or page."""
        self.focus_table(not self.in_table)

    def action_zoom(self) -> None:
        """The pane with the keys in full size, and back."""
        self.zoomed = not self.zoomed
        self._divide(*self.size)

    def action_back(self) -> None:
        """One level back: search and filter, full size, the table, home."""
        if self.view.clear_search():
            return
        if self.zoomed:
            self.action_zoom()
        elif not self.in_table:
            self.focus_table(in_table=True)
        elif self.probe_app.session.from_home:
            self.call_later(self.app.run_action, "quit")  # which leads home, and asks first while the target runs
        else:
            self.notice("Ctrl-Q quits")

    def action_pause(self) -> None:
        """Freeze what is shown, and go on."""
        self.current_selection.paused = not self.current_selection.paused
        self.tick()

    def action_record(self) -> None:
        """Switch recording on or off, in all processes of the run; of one that has ended: run it again."""
        snapshot = self.current_selection.snapshot
        if snapshot.loaded and not snapshot.running and snapshot.processes:
            self.action_ask("")
            return
        on = self.probe_app.feed.switch.turn()
        if on is None:
            self.notice("this run has no switch: it has launched nothing yet")
        else:
            self.notice("launches are recorded" if on else "launches pass unrecorded; R records again")

    def action_ask(self, probe: str) -> None:
        """Run the program again, with a probe or with one to choose."""
        source, process, option = self.current_selection.source(), self.process, f"-p {probe}" if probe else ""
        if source is not None:
            self.probe_app.run_again(source.trace.directory, source.kernel, option)
        elif process is not None:
            self.probe_app.run_again(process.directory, None, option)

    # -- keys about kernels, launches and processes

    def action_open(self) -> None:
        """To the screen of the selected kernel, or of that in a row of ranges or graphs; of a range to its kernels."""
        if self.view is self.pages.ranges and self.pages.ranges.enter():
            return
        if isinstance(self.view, GrowingView):
            index = self.view.kernel_index()
            if index is None:
                self.notice("this line is not about a kernel")
                return
            self.table.select(index)
            self.show_screen_of_kernel(*self.view.destination())
            return
        if not self.in_table and self.view is not self.pages.kernel_page:
            self.notice("Enter leads nowhere here: Tab goes to the table, where it opens a kernel")
            return
        if self.table.kernel is None:
            self.notice("no kernel is selected")
        else:
            self.show_screen_of_kernel()

    def show_screen_of_kernel(self, page: str = "", line: int | None = None) -> None:
        """Go to the screen of the selected kernel, to its first page or to this one, and to a line of the PTX."""
        self.app.push_screen(KernelScreen(self.current_selection, page or FIXED_PAGES[0], line))

    @property
    def place(self) -> LastView:
        """Return the user's place: kernel, page, line and sorting."""
        above = next((screen for screen in self.app.screen_stack if isinstance(screen, KernelScreen)), None)
        column, reverse = self.table.sorting
        page, line = (above.current, above.line) if above else ("", None)
        return LastView(self.table.selected, self.current, page, column, reverse, line)

    def open_kernel(self, directory: Path, index: int) -> str:
        """To the screen of a kernel of the trace in ``directory``. Returns why that cannot be done yet."""
        processes = self.current_selection.snapshot.processes
        place = next((place for place, each in enumerate(processes) if each.directory == directory), None)
        if place is None or all(row.index != index for row in processes[place].kernels):
            return f"{directory.name} is still being read: try again in a moment"
        self.switch.show(place)
        self.table.select(index)
        # The table takes its rows in the background: what is asked for later comes after it.
        self.tables.submit((self, "open"), lambda: None, lambda _: self.show_screen_of_kernel())
        return ""

    def action_step_kernel(self, step: int) -> None:
        """Previous or next kernel; page and pane stay."""
        self.table.step(step)

    def action_next_found(self) -> None:
        """The first kernel of which something stands out; where that is selected the next, in the end the first."""
        flagged = [row for row in self.table.shown if row.stands_out]
        if not flagged:
            self.notice(self._why_none_found())
            return
        place = next((place for place, row in enumerate(flagged) if row.index == self._found), -1)
        place = (place + 1) % len(flagged) if self._found == self.table.selected else 0
        self._found = flagged[place].index
        self.table.select(self._found)
        self.notice(f"{place + 1} of {len(flagged)} that stand out: {flagged[place].finding}")

    def _why_none_found(self) -> str:
        if any(row.status == "probed" for row in self.table.rows):
            return "nothing stands out in the kernels shown, as far as their results were read"
        return f"nothing measured: {KernelFilterWarning.why_unmeasured(self.current_selection.snapshot)}"

    def action_step_launch(self, step: int) -> None:
        """Previous or next launch of the selected kernel, for its screen."""
        source = self.current_selection.source()
        problem = self.current_selection.step_launch(source, step) if source is not None else "no kernel is selected"
        self.notice(problem or f"{self.current_selection.launch_words()}; Enter shows it")

    def action_compare(self) -> None:
        """Mark the kernel at hand, or compare it with the one that was marked."""
        source = self.current_selection.source()
        if source is None:
            self.notice("no kernel is selected")
        else:
            self.probe_app.compare(source)

    def action_next_process(self) -> None:
        """The next process of the target."""
        self.switch.next()

    def action_processes(self) -> None:
        """Choose a process from a list."""
        self.switch.choose()

    # -- keys of one pane

    def action_sort(self, step: int) -> None:
        """Sort the table by the next or previous column."""
        if self._has_table():
            self.table.sort(step)

    def action_reverse(self) -> None:
        """Reverse the table."""
        if self._has_table():
            self.table.reverse()

    def action_next_status(self) -> None:
        """Only kernels of one status."""
        if self._has_table():
            self.table.next_status()

    def _has_table(self) -> bool:
        """Do keys go to the table? If not, it is said how they come there."""
        if not self.in_table:
            self.notice("this key is for the table: Tab goes there")
        return self.in_table

    def action_together(self) -> None:
        """Ranges of one name together, or each by itself."""
        if self.view is self.pages.ranges:
            self.pages.ranges.toggle(self.process)
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
        if isinstance(self.view, LogView):
            choose_tags(self.app, self.view)
        else:
            self.notice("a log has tags: page 3")
