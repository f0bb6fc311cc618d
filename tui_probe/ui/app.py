"""The application: palette, background threads, the keys that work everywhere, and how it ends."""

from __future__ import annotations

import asyncio
import os
import sys
import tempfile
import time
import traceback
from dataclasses import replace
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, Any

from textual import events

from tui_probe.draw.palette import PALETTES
from tui_probe.draw.printable import printable_text
from tui_probe.draw.shorten import shorten
from tui_probe.errors import ProbeError
from tui_probe.pages.views import import_steps
from tui_probe.trace.user_state import save_last_view
from tui_probe.ui import keys
from tui_probe.ui.application import Appearance
from tui_probe.ui.background import Background, event_loop_delivery
from tui_probe.ui.driver import FrugalDriver
from tui_probe.ui.ending import RunEnding
from tui_probe.ui.export import LARGEST_CLIPBOARD
from tui_probe.ui.layout import STYLE, textual_theme
from tui_probe.ui.live.current_selection import MARK_HOLDER, mark_of
from tui_probe.ui.live.feed import Feed
from tui_probe.ui.live.gpus import GpuSampler
from tui_probe.ui.live.live_screen import LiveScreen
from tui_probe.ui.screens.help import HelpScreen
from tui_probe.ui.screens.lists import PickerScreen
from tui_probe.ui.screens.view_screen import ViewScreen
from tui_probe.ui.session import CommandToPaste, ComparisonRequest, OpenTrace, SameKernel
from tui_probe.ui.textual_private import OpenApp, was_stopped
from tui_probe.ui.widgets.lines import LinesWidget

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tui_probe.probekit.page_kinds import ViewSource
    from tui_probe.trace.model import Kernel, Trace
    from tui_probe.ui.application import Application
    from tui_probe.ui.live.current_selection import Mark
    from tui_probe.ui.rerun import RerunOffer
    from tui_probe.ui.session import LiveTarget, RerunRequest, Session

OPENING_SECONDS = 5.0
"""Seconds after which keys no longer wait for a screen that does not come."""
PREPARE_DELAY = 0.3
"""Seconds from the first snapshot until pages are imported: the kernel table comes first."""
EARLY_ENTER = "ctrl+j"
"""Enter, pressed before the terminal hands over keys as they are: until then it makes them ends of lines."""
_GLOBAL_KEYS = ("ctrl+c", "ctrl+q")
"""Keys that act on a terminal that is too small, too."""
PALETTE_CYCLE = ("dark", "light", "distinct", "ansi")

_RERUN_MODULE = "tui_probe.ui.rerun"
"""Asks all probes for their questions."""
_COMPARISON_MODULE = "tui_probe.ui.screens.compare"
"""Brings all analyses: imported when there is something to compare."""
_EVALUATION_MODULE = "tui_probe.ui.screens.ready_pages"
"""Module of the evaluation screen, also imported on first use."""


class ProbeApp(OpenApp):
    """Shows one session. All files are read by its background threads."""

    TITLE = "tui-probe"
    ENABLE_COMMAND_PALETTE = False
    BINDINGS = keys.bindings("app")
    CSS = STYLE

    def __init__(self, session: Session, appearance: Appearance | None = None, gpu: GpuSampler | None = None) -> None:
        self.appearance = appearance or Appearance()
        self.palette = PALETTES[self.appearance.palette]
        super().__init__(driver_class=FrugalDriver, ansi_color=True)
        self.key_problems = keys.remap(self.appearance.keys)
        self.set_keymap(keys.keymap())
        self.animation_level = "none"
        for palette in PALETTES.values():
            self.register_theme(textual_theme(palette))
        self.theme = self.palette.name
        self.ascii_only = self.appearance.ascii_only
        self.session = session
        self.feed = Feed(session)
        self.gpu = gpu or GpuSampler()
        self.crash: BaseException | None = None
        self._ended_by = 0
        self._loop_to_end: asyncio.AbstractEventLoop | None = None
        self.ending = RunEnding(self)

    @property
    def target(self) -> LiveTarget | None:
        """The target, None where a trace is explored."""
        return self.session.target

    @property
    def target_runs(self) -> bool:
        """True if there is a target that ran when it was last polled."""
        return self.target is not None and (self.feed.latest.is_running or not self.feed.latest.is_loaded)

    def on_mount(self) -> None:
        """Start the threads and show the live screen."""
        deliver = event_loop_delivery(self.call_later)
        self.tables = Background("tables", deliver)
        self.logs = Background("logs", deliver)
        self.analyses = Background("analyses", deliver)
        if self.target is not None or self.session.traces:
            self.feed.on_loaded = partial(deliver, self._show_first_snapshot)
            self.call_after_refresh(self._start_reading)
        self._loop_to_end = asyncio.get_running_loop()
        if self._ended_by:
            self.end_by_signal(self._ended_by)
        self.live = LiveScreen(ascii_only=self.ascii_only)
        if self.session.imported is not None and self.session.traces:
            self.push_screen(self.live)  # pages lead to kernels of it
        self.push_screen(self._first_screen())

    def _start_reading(self) -> None:
        """Start the threads that read, which import much: the first frame is not to wait for them."""
        self.feed.start()
        self.gpu.start()

    def _show_first_snapshot(self) -> None:
        """Draw now that there is something to show, instead of with the next frame. Then prepare for pages."""
        if self.live.is_mounted:
            self.live.refresh_frame()
        self.set_timer(PREPARE_DELAY, lambda: self.analyses.prepare(import_steps()))

    def _first_screen(self) -> ViewScreen:
        if self.session.home is not None:
            from tui_probe.ui.screens.home import HomeScreen

            return HomeScreen(self.session.home)
        if self.session.imported is not None:
            from tui_probe.ui.screens.ready_pages import ImportedScreen

            return ImportedScreen(self.session.imported)
        return self.live

    def on_unmount(self) -> None:
        """Let the threads end."""
        self.feed.stop()
        self.gpu.stop()
        for background in (self.tables, self.logs, self.analyses):
            background.close()

    def exit(self, *arguments: Any, **options: Any) -> None:
        """Remember where the user is, and end."""
        if (
            self.live.is_mounted
            and (process := self.live.process) is not None
            and self.live.table.selected_index is not None
        ):
            save_last_view(process.directory, self.live.place)
        super().exit(*arguments, **options)

    def end_by_signal(self, number: int, _: object = None) -> None:
        """End with 128 + ``number``. A signal handler: it may be called before the start and after the end, too."""
        is_first, self._ended_by = not self._ended_by, self._ended_by or number
        if is_first and isinstance(self.terminal, FrugalDriver):
            self.terminal.end_without_reader(number)
        if self._loop_to_end is not None and not self._loop_to_end.is_closed():
            self._loop_to_end.call_soon_threadsafe(partial(self.exit, return_code=128 + self._ended_by))

    @property
    def is_backed_up(self) -> bool:
        """True if the terminal lags behind; False without one."""
        return isinstance(self.terminal, FrugalDriver) and self.terminal.is_backed_up

    @property
    def low_bandwidth(self) -> bool:
        """True if less is sent: as the user asked, else while the link is slow."""
        if self.appearance.low_bandwidth is not None:
            return self.appearance.low_bandwidth
        return isinstance(self.terminal, FrugalDriver) and self.terminal.link.is_slow

    def to_clipboard(self, text: str) -> None:
        """Hand a text to the terminal's clipboard (OSC 52), unless it is longer than terminals take.

        Without control characters: pasted into a shell, they could end the paste and run what follows.
        """
        text = printable_text(text)
        if len(text.encode()) <= LARGEST_CLIPBOARD:
            self.copy_to_clipboard(text)

    # -- keys

    async def on_event(self, event: events.Event) -> None:
        """Keys act one after another, each on what the one before has left: over a slow line several come at the same
        time.

        Textual hands a key to the screen, and looks for its binding when it comes back: behind the keys after it.
        """
        if isinstance(event, events.Key | events.Paste) and not event.is_forwarded:
            await self._handle_input(event)
        else:
            await super().on_event(event)

    async def _handle_input(self, event: events.Key | events.Paste) -> None:
        if isinstance(event, events.Key) and event.key == EARLY_ENTER:
            event = events.Key("enter", "\r")
        screen, deadline = self.screen, time.monotonic() + OPENING_SECONDS
        while not screen.is_mounted:  # the key before has opened it
            if time.monotonic() > deadline:
                return
            await asyncio.sleep(0.001)
        if isinstance(screen, ViewScreen) and screen.is_too_small and getattr(event, "key", "") not in _GLOBAL_KEYS:
            return  # the effect of a key is not visible
        if isinstance(event, events.Paste):
            if isinstance(screen, ViewScreen):
                screen.on_paste(event)
        elif not await self.press_bound(event.key, priority=True):
            handle_key: Callable[[events.Key], None] | None = getattr(screen, "on_key", None)
            if handle_key is not None:
                handle_key(event)
            if not was_stopped(event):
                await self.press_bound(event.key)

    def action_interrupt(self) -> None:
        """SIGINT to the target; a second time within two seconds asks for more."""
        self.ending.interrupt()

    def withdraw_question(self) -> None:
        """Withdraw the question what to do with a target, since it has ended."""
        self.ending.withdraw()

    async def action_quit(self) -> None:
        """Quit; ask first while the target runs."""
        self.ending.leave()

    @property
    def message_screen(self) -> ViewScreen:
        """The screen that says what is to be said: the one in front, or the live one below a list or the like."""
        return self.screen if isinstance(self.screen, ViewScreen) else self.live

    def action_help(self) -> None:
        """Show how to read what is visible, and all keys; or go back."""
        if isinstance(self.screen, HelpScreen):
            self.pop_screen()
        elif isinstance(self.screen, ViewScreen):
            self.push_screen(HelpScreen(self.screen.topic, self.screen.scopes))

    def compare(self, source: ViewSource) -> None:
        """Remember a kernel or launch, or show it against the one that was remembered, of this trace or another."""
        previous_mark, mark = MARK_HOLDER.take(), mark_of(source)
        if previous_mark is None or previous_mark == mark:
            MARK_HOLDER.keep(mark)
            self.analyses.submit("comparison", partial(import_module, _COMPARISON_MODULE), lambda _: None)
            self.message_screen.notice(f"marked {source_label(source)}; press C on another kernel or launch to compare")
        elif (trace := self._open_trace(previous_mark.directory)) is not None:
            self._show_comparison(source, previous_mark.source_in(trace))
        else:
            self.message_screen.notice(f"reading the marked kernel in {previous_mark.directory.name}")
            self.tables.submit("marked", partial(_read_mark, previous_mark), partial(self._show_comparison, source))

    def compare_runs(self, baseline: Path, candidate: Path) -> None:
        """Show a run against one before it."""
        self.push_screen(import_module(_COMPARISON_MODULE).CompareRunsScreen(baseline, candidate))

    def _open_trace(self, directory: Path) -> Trace | None:
        processes = (process for process in self.feed.latest.processes if process.directory.absolute() == directory)
        return next((process.trace for process in processes), None)

    def _show_comparison(self, source: ViewSource, baseline: ViewSource | str) -> None:
        """``baseline`` says why it cannot be read, if that is so."""
        if isinstance(baseline, str):
            self.message_screen.notice(f"cannot read the marked kernel: {baseline}")
        else:
            self.push_screen(import_module(_COMPARISON_MODULE).CompareScreen(baseline, source))

    def action_palette(self) -> None:
        """Open the command palette."""
        from tui_probe.ui.commands import commands_of  # asks all probes for their questions

        if isinstance(self.screen, ViewScreen):
            self.push_screen(PickerScreen("Commands", commands_of(self, self.screen)), self._run_command)

    def _run_command(self, command: Callable[[], object] | None) -> None:
        if command is not None:
            self.call_later(command)

    def choose_evaluation(self) -> None:
        """Choose an evaluation of the traces that are open; of none those that come with tui-probe are meant."""
        menu = PickerScreen("Evaluations")
        self.push_screen(menu, self._evaluate)
        self.tables.submit("evaluations", lambda: import_module(_EVALUATION_MODULE).evaluation_choices(), menu.take)

    def _evaluate(self, name: str | None) -> None:
        if name is not None:
            processes = self.live.current_selection.snapshot.processes if self.live.is_mounted else ()
            traces = [process.directory for process in processes]
            self.push_screen(import_module(_EVALUATION_MODULE).EvaluationScreen(name, traces))

    def run_again(self, trace: Path, kernel: Kernel | None, option: str = "", page: str = "") -> None:
        """Choose what to ask of the program of a trace, ``option`` first; then the screen ends, and it runs.

        ``page`` is the kernel's page that is opened then, if the run is for it.
        """
        if self.feed.latest.is_running or (self.session.home is None and not self.feed.latest.is_loaded):
            self.message_screen.notice("the program is still running; press R after it ends")
        else:
            menu = PickerScreen("Run again", has_numbers=True)
            shown_trace = self._open_trace(trace.absolute())
            begin = (
                None if kernel is None else SameKernel.from_kernel(kernel, shown_trace.kernels if shown_trace else ())
            )
            begin = begin and replace(begin, page=page)
            self.push_screen(menu, partial(self._end_with_request, begin))
            job = partial(_rerun_offer, trace, kernel, option)
            self.tables.submit("again", job, partial(self._take_offer, menu))

    def _take_offer(self, menu: PickerScreen, offer: RerunOffer) -> None:
        if not offer.problem:
            menu.take([replace(choice, value=partial(offer.request_of, choice.value)) for choice in offer.choices])
        elif not menu.was_closed:
            menu.dismiss(None)
            self.message_screen.notice(offer.problem)
            if offer.command:
                self.message_screen.show_names([offer.command])

    def _end_with_request(
        self,
        begin: SameKernel | None,
        choose: Callable[[], RerunRequest | OpenTrace | ComparisonRequest | CommandToPaste | str] | None,
    ) -> None:
        request = None if choose is None else choose()
        if isinstance(request, str):
            self.message_screen.notice(request)
        elif isinstance(request, ComparisonRequest):
            self.compare_runs(request.baseline, request.candidate)
        elif isinstance(request, CommandToPaste):
            self.message_screen.show_names([request.command])
        elif isinstance(request, OpenTrace):
            self.session.next_request = request
            self.exit()
        elif request is not None:
            page = import_module(_RERUN_MODULE).page_after_run(begin.page, request.options) if begin else ""
            self.session.next_request = replace(request, begin=begin and replace(begin, page=page))
            self.exit()

    def action_theme(self) -> None:
        """The next palette."""
        index = PALETTE_CYCLE.index(self.palette.name) if self.palette.name in PALETTE_CYCLE else -1
        self.use_palette(PALETTE_CYCLE[(index + 1) % len(PALETTE_CYCLE)])

    def use_palette(self, name: str) -> None:
        """Draw all in other colours."""
        self.palette = PALETTES[name]
        self.theme = name
        self._redraw_all()

    def use_ascii(self, ascii_only: bool) -> None:
        """Draw with ASCII characters only, or with all."""
        self.ascii_only = ascii_only
        self._redraw_all()

    def use_bandwidth(self, is_low: bool | None) -> None:
        """Send less, or not; None: as the link allows."""
        self.appearance = replace(self.appearance, low_bandwidth=is_low)
        self.message_screen.notice(
            {True: "low bandwidth", False: "full bandwidth", None: "automatic bandwidth"}[is_low]
        )

    def _redraw_all(self) -> None:
        for screen in self.screen_stack:
            for widget in screen.query(LinesWidget):
                widget.forget()

    def action_redraw(self) -> None:
        """Send every cell again."""
        if isinstance(self.terminal, FrugalDriver):
            self.terminal.forget()
        self.screen.refresh()

    # -- crashes

    def crashed(self, error: Exception) -> None:
        """Leave the terminal as it was; ``ui.run`` then writes the traceback to a file and says where."""
        self.crash = self.crash or error


if TYPE_CHECKING:

    def _as_screens_see_it(app: ProbeApp) -> Application:
        """Let mypy check that the application has all that screens use."""
        return app


def _rerun_offer(trace: Path, kernel: Kernel | None, option: str) -> RerunOffer:
    offer: RerunOffer = import_module(_RERUN_MODULE).offer(trace, kernel, option)
    return offer


def _read_mark(mark: Mark) -> ViewSource | str:
    try:
        return mark.read_source()
    except (ProbeError, OSError) as error:
        return str(error)


def source_label(source: ViewSource) -> str:
    """A kernel or launch in a few words."""
    launch = "" if source.launch is None else f" launch {source.launch.number}"
    return f"#{source.kernel.index} {shorten(source.kernel.demangled, 24)}{launch}"


def report_crash(error: BaseException) -> None:
    """Write the traceback to a file and tell its path on stderr."""
    report = "".join(traceback.format_exception(error))
    handle, path = tempfile.mkstemp(prefix=f"tui-probe-crash-{os.getpid()}-", suffix=".txt")
    with os.fdopen(handle, "w", encoding="utf-8") as file:
        file.write(report)
    summary = report.strip().rsplit("\n", 1)[-1]
    sys.stderr.write(f"tui-probe: the screen failed ({summary}); details are in {path}\n")
