"""The screen of one kernel: pages about it and about one of its launches, in step with the table of the live screen."""

from __future__ import annotations

import time
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from tui_probe.draw import units
from tui_probe.draw.shorten import short_name, shorten
from tui_probe.draw.spans import width
from tui_probe.draw.view import Spot
from tui_probe.pages.views import FIXED_PAGES, kind_of
from tui_probe.trace.kernel_files import Offset
from tui_probe.ui import keys
from tui_probe.ui.live.current_selection import (
    has_newer_result,
    has_several,
    launch_text,
    step_applies,
    with_newest_launch,
)
from tui_probe.ui.live.kernel_table import names_of
from tui_probe.ui.live.state_line import elapsed_line
from tui_probe.ui.screens.further_pages import digit_tabs, kernel_tab
from tui_probe.ui.screens.page_opening import MessageView, PageSpec, page_spec, pages_of
from tui_probe.ui.screens.paged import PagedScreen
from tui_probe.ui.views.document_view import DocumentView

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tui_probe.draw.spans import Line
    from tui_probe.probekit.page_kinds import ViewSource
    from tui_probe.ui.live.current_selection import CurrentSelection
    from tui_probe.ui.views.view import PaneView
    from tui_probe.verdicts.kernel_snapshot import KernelSnapshot


PROBE = "probe"
"""The page of the probe's own file."""


class KernelScreen(PagedScreen):
    """Shows the kernel and launch of ``current_selection``, and steps to others in the order of the table."""

    BINDINGS = keys.bindings("kernels")
    SCOPES = ("kernels",)
    CAN_ASK = True

    def __init__(
        self, current_selection: CurrentSelection, page: str = FIXED_PAGES[0], line: int | None = None
    ) -> None:
        super().__init__(digit_tabs(), page, tabs_known=False)
        self._start_spot = Spot.of_line(line)
        self.current_selection = current_selection
        self._selected_source: ViewSource | None = None
        """Source of the selected kernel; its launch is None unless the user chose one. None without a kernel."""
        self._launch_source: ViewSource | None = None
        """Source that pages of one launch show: ``_selected``, or with the launch that was newest at that time."""
        self._snapshot: KernelSnapshot | None = None
        """Row of the kernel in the live table when the page was last read, to notice a change."""

    # -- what is shown

    def begin(self) -> None:
        """Show the current selection, at the line that the screen was opened for."""
        self.show_kernel()
        self.spot = self._start_spot

    def show_kernel(self) -> None:
        """Show the page of the current selection, at the position of the previous kernel or launch."""
        self._save_states()
        self.jump_history.clear()
        self.tabs_known = False
        previous_row, self._snapshot = self._snapshot, self.current_selection.table.kernel
        self._selected_source = self.current_selection.source()
        self.opener.forget(
            {} if self._selected_source is None else self.current_selection.page_states(self._selected_source)
        )
        self.spot = self._spot_in_launch() if _is_same_kernel(previous_row, self._snapshot) else Spot()
        self._launch_source = None if self._selected_source is None else with_newest_launch(self._selected_source)
        if self._selected_source is not None:
            source = self._selected_source
            self.tables.submit((self, "pages"), partial(pages_of, source), partial(self._take_pages, source))
        self.show_page()

    def _save_states(self) -> None:
        """Save the states of the kernel's pages, for when the user returns to it."""
        if self._selected_source is not None:
            self.current_selection.save_page_states(self._selected_source, self.opener.states())

    def _spot_in_launch(self) -> Spot:
        """Return the spot without its time and address, which mean nothing in another launch of the kernel."""
        return replace(self._view.spot().completed_from(self.spot), time=None, address=None)

    @property
    def line(self) -> int | None:
        """The line of ``pruned.ptx`` at the cursor; None for none."""
        spot = self._view.spot().completed_from(self.spot)
        return next((line for line in spot.ptx if not isinstance(line, Offset)), None)

    def _take_pages(self, source: ViewSource, pages: list[Any]) -> None:
        if source is self._selected_source:
            self.take_tabs([kernel_tab(kind, key, source, is_empty=not has_data) for kind, key, has_data in pages])

    def page(self, name: str) -> PageSpec | None:
        """Return the page of all launches if none was chosen and the page allows it, else of the shown launch."""
        kind = kind_of(name)
        source = self._selected_source if name in FIXED_PAGES or kind.grows or kind.all_probes else self._launch_source
        return None if source is None else page_spec(kind, source)

    @property
    def shown_source(self) -> ViewSource | None:
        """Source of the shown launch; where the run had several probes, under one that the page can show."""
        source, kind = self._launch_source, kind_of(self.current)
        return source if source is None or kind.all_probes else source.for_probe_names(*kind.probes)

    @property
    def _shows_newest_results(self) -> bool:
        """True if the page has the newest result of each of several probes, from different launches."""
        source = self._selected_source
        several_probes = source is not None and source.launch is None and len(source.kernel.by_probe()) > 1
        return several_probes and kind_of(self.current).all_probes

    def update(self) -> None:
        """Show another kernel if the table lost this one; reload a growing page while the kernel is launched."""
        row = self.current_selection.table.kernel
        if row is not None and self._snapshot is not None and row.index != self._snapshot.index:
            self.show_kernel()
        elif row != self._snapshot and self.opener.is_idle and not self.current_selection.is_paused:
            self._read_again(row)

    def _read_again(self, row: KernelSnapshot | None) -> None:
        kind, source = kind_of(self.current), self.current_selection.source()
        if not kind.grows or source is None:
            return
        self._snapshot = row
        if isinstance(self._view, DocumentView):
            self.opener.read_again(page_spec(kind, source), self._view)

    def full_names(self) -> Sequence[str]:
        """Return the names at the cursor in full, and those of the kernel."""
        return (
            *super().full_names(),
            *([] if self._selected_source is None else names_of(self._selected_source.kernel)),
        )

    # -- the lines around the page

    def title_line(self, cells: int) -> tuple[Line, Line]:
        """The kernel; which of its launches is shown, and its status."""
        source = self.shown_source
        if source is None:
            return ((" no kernel", "title"),), ()
        kernel = source.kernel
        newer = f", {keys.key_of('next_launch')} newer" if self._has_newer() else ""
        status = (f"✘ {kernel.status}", "failed") if kernel.failures else (kernel.status, kernel.status)
        room = cells - len(status[0]) - len(newer) - 10
        launch = self._launch_words(source)
        if width(kernel.demangled) + width(launch) > room:
            launch = self._launch_words(source, brief=True)
        if width(short_name(kernel.demangled)) + width(launch) > room:
            launch = launch.partition(" (")[0]  # the place among the launches of the kernel
        status_line: Line = ((launch, "dim"), (newer, "accent"), ("  ", ""), status)
        name = shorten(kernel.demangled, max(10, room - width(launch)))
        return ((f" #{kernel.index} ", "dim"), (name, "title")), status_line

    def _launch_words(self, source: ViewSource, *, brief: bool = False) -> str:
        """Name the launch; a page with launches of several probes names them itself and gets their number."""
        launches = source.kernel.launches
        if self._shows_newest_results and launches > 1:
            return f"newest results of {units.counted(launches, 'launch')}"
        return launch_text(source, brief=brief)

    def run_line(self, *, brief: bool = False) -> Line:
        """Return the state of the run, or only whether it is simulated."""
        snapshot = self.current_selection.snapshot
        elapsed = () if brief else elapsed_line(snapshot, time.time())
        return (*elapsed, *(((" [simulated]", "simulated"),) if snapshot.simulated else ()))

    def jump_text(self, page: str) -> str:
        """The title of the page."""
        return kind_of(page).title

    def is_hinted(self, key: keys.Key) -> bool:
        """Name the launch keys only where there are several launches, and the key ``again`` always."""
        if key.id == "next_launch":
            return has_several(self._selected_source)
        if key.id == "probe":
            return self._view.spot().probed_line is not None
        return key.id == "again" or super().is_hinted(key)

    def arrive(self, view: PaneView) -> None:
        """Add to a page without data the key that runs the program with the option that fills it."""
        if isinstance(view, MessageView) and self._rerun_option:
            view.text += f"; press {keys.key_of('again')} to run the program with {self._rerun_option}"
        super().arrive(view)

    @property
    def _rerun_option(self) -> str:
        """The option of a run that fills the current page; "" where no run can, or the page is open."""
        return next((tab.option for tab in self.tabs if tab.id == self.current), "")

    # -- keys

    def action_again(self) -> None:
        """Run the program again with the option marked on the page, else with the option that fills the page."""
        self._ask(self._view.marked_option() or self._rerun_option)

    def jump_label(self) -> str:
        """Label of Enter: it selects a launch in the list of launches."""
        return "select" if self._view.launch_at_cursor() is not None else super().jump_label()

    def action_jump(self) -> None:
        """Select the launch at the cursor, or open the details of the line."""
        row = self._view.launch_at_cursor()
        if row is None or self._selected_source is None:
            super().action_jump()
            return
        launch = self._selected_source.trace.launches[row]
        self.current_selection.pin_launch(replace(self._selected_source, launch=launch))
        self.show_kernel()
        value = "all pages show this launch" if launch.result is not None else "this launch has no result"
        self.notice(f"launch {launch.number} is selected; {value}")

    def action_worst(self) -> None:
        """Go to the hotspot: of all probes, or of the probe of this page."""
        self.hotspot_jump.go(self._selected_source if self._shows_newest_results else self.shown_source)

    def action_probe(self) -> None:
        """Show the probe's source for what is at the cursor; going back returns here."""
        if self.current != PROBE:
            self.jump_to(PROBE, self._view.spot() or None)

    def action_ask(self, probe: str) -> None:
        """Run the program again, with this probe; the user chooses one if it is empty."""
        self._ask(f"-p {probe}" if probe else "")

    def _ask(self, option: str) -> None:
        if self._launch_source is not None:
            self.probe_app.run_again(
                self._launch_source.trace.directory, self._launch_source.kernel.kernel, option, self.current
            )

    def leave(self) -> None:
        """Return to the screen before."""
        self._save_states()
        self.app.pop_screen()

    def action_step_kernel(self, step: int) -> None:
        """Show the previous or next kernel on the same page, at the same position."""
        previous_index = self.current_selection.table.selected_index
        self.current_selection.table.step(step)
        if self.current_selection.table.selected_index == previous_index:
            self.notice("this is the last kernel" if step > 0 else "this is the first kernel")
        else:
            self.show_kernel()

    def action_step_launch(self, step: int) -> None:
        """Show the previous or next launch on the same page, at the same position."""
        source = self.shown_source
        if source is None:
            return
        problem = "" if step > 0 and self._has_newer() else self.current_selection.step_launch(source, step)
        if problem:
            self.notice(problem)
        else:
            self.show_kernel()

    def _has_newer(self) -> bool:
        """Return whether the newest launch is selected and one newer than the shown has a result."""
        source = self.shown_source
        newest_selected = self._selected_source is not None and self._selected_source.launch is None
        return newest_selected and source is not None and has_newer_result(source)

    def applies(self, row: keys.Key) -> bool:
        """Return whether a key has an effect: a step needs another kernel or launch, the hotspot a result."""
        if row.id == "worst":
            kernel = None if self._launch_source is None else self._launch_source.kernel
            return kernel is not None and kernel.status == "probed" and bool(kernel.result_rows)
        if row.id == "next_launch" and self._has_newer():
            return super().applies(row)
        return step_applies(row, self.shown_source, self.current_selection.table) and super().applies(row)

    def action_compare(self) -> None:
        """Mark the selected kernel, or compare it with the marked one."""
        if self._selected_source is None:
            self.notice("no kernel is selected")
        else:
            self.probe_app.compare(self._selected_source)


def _is_same_kernel(previous_row: KernelSnapshot | None, row: KernelSnapshot | None) -> bool:
    return previous_row is not None and row is not None and previous_row.index == row.index
