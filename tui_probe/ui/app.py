"""The application: palette, background threads, the keys that work everywhere, and how it ends."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import tempfile
import time
import traceback
from functools import partial
from typing import TYPE_CHECKING

from textual.app import App

from tui_probe.ui import Appearance, keys
from tui_probe.ui.background import Background, event_loop_delivery
from tui_probe.ui.feed import Feed, Session
from tui_probe.ui.log_view import count_tags
from tui_probe.ui.nvml import GpuSampler
from tui_probe.ui.save import LARGEST_CLIPBOARD
from tui_probe.ui.screens.confirm import Answer, ConfirmScreen
from tui_probe.ui.screens.help import HelpScreen
from tui_probe.ui.screens.live import LiveScreen
from tui_probe.ui.screens.tags import TagScreen
from tui_probe.ui.theme import PALETTES
from tui_probe.ui.widgets.lines import Lines

if TYPE_CHECKING:
    from collections.abc import Callable

    from tui_probe.ui.feed import Target
    from tui_probe.ui.widgets.log_pane import LogPane

SECOND_INTERRUPT = 2.0
CYCLE = ("dark", "light", "ansi")

LEAVE = (
    Answer("l", "leave it running, quit the screen", "leave"),
    Answer("i", "interrupt it (SIGINT) and quit", "interrupt"),
    Answer("c", "cancel", ""),
)
STOP = (
    Answer("t", "terminate it (SIGTERM)", "terminate"),
    Answer("K", "kill it (SIGKILL): it cannot write its last results", "kill"),
    Answer("c", "cancel", ""),
)


class ProbeApp(App[None]):
    """Shows one session. All files are read by its background threads."""

    TITLE = "tui-probe"
    ENABLE_COMMAND_PALETTE = False
    BINDINGS = keys.bindings("app")
    CSS = """
    Screen { background: $background; color: $foreground; scrollbar-size: 0 0; overflow: hidden; }
    """

    def __init__(self, session: Session, appearance: Appearance | None = None, gpu: GpuSampler | None = None) -> None:
        self.appearance = appearance or Appearance()
        self.palette = PALETTES[self.appearance.palette]
        super().__init__(ansi_color=True if self.palette.native else None)
        self.animation_level = "none"
        for palette in PALETTES.values():
            self.register_theme(palette.theme())
        self.theme = self.palette.name
        self.ascii_only = self.appearance.ascii_only
        self.session = session
        self.feed = Feed(session)
        self.gpu = gpu or GpuSampler()
        self.crash: BaseException | None = None
        self._interrupted = float("-inf")

    @property
    def target(self) -> Target | None:
        """The target, None where a trace is explored."""
        return self.session.target

    @property
    def target_runs(self) -> bool:
        """Is there a target, and does it run?"""
        return self.target is not None and self.target.poll() is None

    def on_mount(self) -> None:
        """Start the threads and show the live screen."""
        deliver = event_loop_delivery(self.call_later)
        self.quick = Background("files", deliver)
        self.search = Background("search", deliver)
        self.slow = Background("analysis", deliver)
        self.feed.start()
        self.gpu.start()
        if not self.is_headless:
            loop = asyncio.get_running_loop()
            for number in (signal.SIGTERM, signal.SIGHUP):
                loop.add_signal_handler(number, self._end_by_signal, number)
        self.live = LiveScreen()
        self.push_screen(self.live)

    def on_unmount(self) -> None:
        """Let the threads end."""
        self.feed.stop()
        self.gpu.stop()
        for background in (self.quick, self.search, self.slow):
            background.close()

    def _end_by_signal(self, number: int) -> None:
        self.exit(return_code=128 + number)

    def backed_up(self) -> bool:
        """Does the terminal take output more slowly than we write it?

        Textual queues what it writes for a thread and drops nothing: a frame that is drawn now would be seen late. The
        queue is private to Textual's driver; without one (headless) output is never late.
        """
        writer = getattr(self._driver, "_writer_thread", None)
        queue = getattr(writer, "_queue", None)
        return queue is not None and queue.qsize() > 0

    # -- what the screens and widgets ask for

    def notice(self, text: str) -> None:
        """Say something in the bar of keys, until the next notice or some seconds."""
        self.live.notice(text)

    def page_changed(self) -> None:
        """What the page says about itself may have changed."""
        if self.is_mounted_live:
            self.live.show_bars()

    @property
    def is_mounted_live(self) -> bool:
        """Is the live screen there?"""
        return hasattr(self, "live") and self.live.is_mounted

    def show_page(self, page: str, *, focus: bool = False) -> None:
        """Show a page of the live screen."""
        self.live.show_page(page, focus=focus)

    def to_clipboard(self, text: str) -> None:
        """Hand a text to the terminal's clipboard (OSC 52), unless it is longer than terminals take."""
        if len(text.encode()) <= LARGEST_CLIPBOARD:
            self.copy_to_clipboard(text)

    def choose_tags(self, log: LogPane) -> None:
        """Let the user choose which tags a log shows; they are counted in the background."""
        if log.index is not None:
            self.search.submit((log, "tags"), partial(count_tags, log.index), partial(self._ask_tags, log))

    def _ask_tags(self, log: LogPane, counts: dict[str, int]) -> None:
        def take(chosen: frozenset[str] | None) -> None:
            if chosen is not None:
                log.set_tags(chosen)

        self.push_screen(TagScreen(counts, log.tags), take)

    # -- keys

    def action_interrupt(self) -> None:
        """SIGINT to the target; a second time within two seconds asks for more."""
        target = self.target
        if target is None or target.poll() is not None:
            self.notice("nothing runs here; Ctrl-Q quits")
            return
        now = time.monotonic()
        if now - self._interrupted <= SECOND_INTERRUPT:
            self._ask("The target was interrupted and still runs.", STOP, self._stop)
            return
        self._interrupted = now
        target.interrupt()
        self.notice("interrupted the target (SIGINT); Ctrl-C again within 2 s to terminate it")

    def _ask(self, question: str, answers: tuple[Answer, ...], then: Callable[[str | None], None]) -> None:
        if not isinstance(self.screen, ConfirmScreen):
            self.push_screen(ConfirmScreen(question, answers), then)

    def _stop(self, answer: str | None) -> None:
        target = self.target
        if target is None or target.poll() is not None:
            return
        if answer == "terminate":
            target.terminate()
            self.notice("asked the target to terminate (SIGTERM)")
        elif answer == "kill":
            target.kill()
            self.notice("killed the target (SIGKILL)")

    async def action_quit(self) -> None:
        """Quit; ask first while the target runs."""
        if self.target_runs:
            self._ask("The target still runs.", LEAVE, self._leave)
        else:
            self.exit()

    def _leave(self, answer: str | None) -> None:
        if answer == "interrupt" and self.target is not None:
            self.target.interrupt()
        if answer:
            self.exit()

    def action_help(self) -> None:
        """All keys."""
        if not isinstance(self.screen, HelpScreen):
            self.push_screen(HelpScreen())

    def action_theme(self) -> None:
        """The next palette."""
        place = CYCLE.index(self.palette.name) if self.palette.name in CYCLE else -1
        self.palette = PALETTES[CYCLE[(place + 1) % len(CYCLE)]]
        self.ansi_color = self.palette.native
        self.theme = self.palette.name
        for screen in self.screen_stack:
            for widget in screen.query(Lines):
                widget.forget()

    # -- crashes

    def _handle_exception(self, error: Exception) -> None:
        """Leave the terminal as it was; ``ui.run`` then writes the traceback to a file and says where."""
        self.crash = self.crash or error
        self._return_code = 1
        if self._exception is None:
            self._exception = error
            self._exception_event.set()
        self._close_messages_no_wait()


def report_crash(error: BaseException) -> None:
    """Write the traceback to a file and tell its path on stderr."""
    words = "".join(traceback.format_exception(error))
    handle, path = tempfile.mkstemp(prefix=f"tui-probe-crash-{os.getpid()}-", suffix=".txt")
    with os.fdopen(handle, "w", encoding="utf-8") as file:
        file.write(words)
    last = words.strip().rsplit("\n", 1)[-1]
    sys.stderr.write(f"tui-probe: the screen failed ({last}); the report is in {path}\n")
