"""Fixtures of the tests of the screen."""

from __future__ import annotations

import asyncio
import re
import time
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from textual._compositor import Compositor
from textual._context import active_app
from textual.css.model import RuleSet
from textual.css.stylesheet import Stylesheet
from textual.message_pump import MessagePump
from textual.pilot import Pilot

from tests.fixed_probes import fixed_probes
from tests.golden import golden
from tests.patience import HANG
from tests.sizes import headings, lost, widest
from tests.ui.synthetic import FakeTarget, TraceWriter, example
from tui_probe.ui import Appearance
from tui_probe.ui.app import ProbeApp
from tui_probe.ui.live.current_selection import MARK_HOLDER
from tui_probe.ui.live.gpus import GpuSampler
from tui_probe.ui.screens.view_screen import ViewScreen
from tui_probe.ui.session import Session

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator, Sized

    from textual.message import Message

    from tui_probe.ui.live.live_screen import LiveScreen


@pytest.fixture(autouse=True, scope="package")
def _fixed_probes() -> Iterator[None]:
    with fixed_probes():
        yield


@pytest.fixture(autouse=True)
def _own_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Copies and exports go to a folder of the test."""
    (tmp_path / "cwd").mkdir()
    monkeypatch.chdir(tmp_path / "cwd")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv("NO_COLOR", raising=False)


@pytest.fixture(autouse=True)
def _nothing_marked() -> None:
    """A mark outlives the application that it was made in, but not the test."""
    MARK_HOLDER.take()


_dispatch_message = MessagePump._dispatch_message


@pytest.fixture(autouse=True)
def _no_guessing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Textual's pilot waits until the process looks idle, a second on a busy machine, and until a message to each of
    the widgets came back, a third of a test's time. The event loop knows when none of them has anything to do."""
    in_work = 0

    async def count_dispatch(pump: MessagePump, message: Message) -> None:
        nonlocal in_work
        in_work += 1
        try:
            await _dispatch_message(pump, message)
        finally:
            in_work -= 1

    async def wait_for_work(*_: object) -> bool:
        ready: Sized = asyncio.get_running_loop()._ready  # type: ignore[attr-defined]
        end = time.monotonic() + HANG
        while True:
            await asyncio.sleep(0)
            if not ready and not in_work:
                return True
            assert time.monotonic() < end, "a message is never handled"
            if not ready:  # a handler waits for a moment
                await asyncio.sleep(0.001)

    async def yield_once(*_: object) -> None:
        await asyncio.sleep(0)

    monkeypatch.setattr(MessagePump, "_dispatch_message", count_dispatch)
    monkeypatch.setattr(Pilot, "_wait_for_screen", wait_for_work)
    for module in ("app", "pilot"):
        monkeypatch.setattr(f"textual.{module}.wait_for_idle", yield_once)


@pytest.fixture(autouse=True, scope="package")
def _parsed_styles() -> Iterator[None]:
    """Rules of style sheets, which are the same in hundreds of applications, are parsed once."""
    parse, parsed = Stylesheet._parse_rules, dict[tuple[Any, ...], list[RuleSet]]()

    def parse_once(sheet: Stylesheet, *given: Any, **more: Any) -> list[RuleSet]:
        key = (given, *more.items(), *sheet._variables.items())
        if key not in parsed:
            parsed[key] = parse(sheet, *given, **more)
        return parsed[key]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Stylesheet, "_parse_rules", parse_once)
        yield


_render_update = Compositor.render_update


@pytest.fixture(autouse=True)
def _one_frame_per_step(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a terminal, ``settle`` draws all that changed: a new screen would be drawn four times, a step twice."""

    def render_for_terminal(compositor: Compositor, full: bool = False, **options: Any) -> Any:
        is_drawn = full or not active_app.get().is_headless
        return _render_update(compositor, full, **options) if is_drawn else None

    monkeypatch.setattr(Compositor, "render_update", render_for_terminal)


@pytest.fixture(autouse=True)
def _no_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    """Frames come with ``refresh`` and ``tick`` only, and all traces and findings with one of them; messages stay, and
    a second interrupt comes in time: however busy the machine is."""
    for module in ("live.live_bars", "screens.paged", "screens.home"):
        monkeypatch.setattr(f"tui_probe.ui.{module}.INTERVAL", 3600.0)
    monkeypatch.setattr("tui_probe.ui.ending.SECOND_INTERRUPT_SECONDS", 3600.0)
    monkeypatch.setattr(ViewScreen.notice, "__defaults__", (3600.0,))
    monkeypatch.setattr("tui_probe.ui.live.live_pages.REST_SECONDS", 0.0)
    monkeypatch.setattr("tui_probe.ui.live.feed.MAX_POLL_SECONDS", 60.0)
    monkeypatch.setattr("tui_probe.ui.live.results.PORTION_SECONDS", 60.0)


@pytest.fixture
def trace(tmp_path: Path) -> TraceWriter:
    """The example trace, with the process still running."""
    return example(tmp_path / "Nov21_101010_4242")


FRAME = re.compile(r"^[┃│]| *[┃│]$", re.MULTILINE)
"""The sides of the panel that a line is in."""
AXIS = re.compile(r"[▲┬+^][─-]{5}")


class Stage:
    """An application on a headless terminal, with what it shows."""

    def __init__(self, app: ProbeApp, pilot: Pilot[Any], target: FakeTarget | None) -> None:
        self.app = app
        self.pilot = pilot
        self.target = target

    @property
    def live(self) -> LiveScreen:
        return self.app.live

    @property
    def text(self) -> str:
        """The visible text of the terminal."""
        strips = self.app.screen._compositor.render_strips()
        return "\n".join(strip.text.rstrip() for strip in strips)

    @property
    def inside(self) -> str:
        """The visible text without the frames of panels."""
        lines = (re.sub(r"^[│┃|]|[│┃|]$", "", line) for line in self.text.split("\n"))
        return "\n".join(re.sub(r"^[╭┏├┣╰┗+][─━=-]?(?= )|[─━=-]*[╮┓┤┫╯┛+]$", "", line).rstrip() for line in lines)

    async def settle(self) -> None:
        """Wait until no background thread works and all messages are handled, or the application ends."""
        for _ in range(100):  # what a message or a result does may lead to others
            while self.is_working():
                await asyncio.sleep(0.001)
            await self.pilot.pause()
            if self.is_quiet():
                break
        else:
            pytest.fail(f"messages lead to messages without an end\n{self.text}")
        if self.app.is_running:
            _render_update(self.app.screen._compositor, screen_stack=self.app._background_screens)

    def is_working(self) -> bool:
        """Return whether a background thread works, or its result waits. No one takes results of an ended program."""
        workers = (self.app.tables, self.app.logs, self.app.analyses)
        return self.app.is_running and not all(worker.is_idle for worker in workers)

    def is_quiet(self) -> bool:
        """Return whether no background thread works, and no one has a message or a callback to handle."""
        if not self.app.is_running:
            return True
        pumps = (self.app, *self.app.screen.walk_children(with_self=True))
        waiting = any(pump._message_queue.qsize() or pump._next_callbacks for pump in pumps)
        return not waiting and not self.app.screen._callbacks and not self.is_working()

    async def refresh(self) -> None:
        """Read what is new, and draw a frame of it."""
        self.app.feed.poll()
        self.live.refresh_frame()
        await self.settle()

    async def press(self, *keys: str) -> None:
        """Press keys, one after another, each when the one before has done its work."""
        for key in keys:
            await self.pilot.press(key)
            await self.settle()

    async def resize(self, columns: int, rows: int) -> None:
        """Give the terminal another size, as often as it takes: Textual may lose one that comes while it is busy."""
        for _ in range(600):
            await self.pilot.resize_terminal(columns, rows)
            await self.settle()
            if self.app.screen._compositor.size == (columns, rows):
                return
            await asyncio.sleep(0.1)
        pytest.fail(f"the size did not change\n{self.text}")

    async def until(self, holds: Callable[[], bool], what: str) -> None:
        """Wait for a condition that a thread brings about."""
        end = time.monotonic() + HANG
        while not holds():
            assert time.monotonic() < end, f"{what}\n{self.text}"
            await asyncio.sleep(0.01)


def golden_screen(name: str, stage: Stage, part: str = "", *, text: str | None = None) -> None:
    """Compare the screen with a part of a golden, by default that of its size, which ``hints.txt`` names too.

    The last line, which names keys, is in ``hints.txt`` for all screens: a new key changes no other file of them.
    ``text`` is what the screen shows, without what differs from run to run.
    """
    size, ascii_only = stage.app.size, stage.app.appearance.ascii_only
    *page, hints = (stage.text if text is None else text).split("\n")
    assert len(page) == size.height - 1
    part = part or f"{size.width}x{size.height}"
    golden(f"{name}.txt", "".join(f"{line}\n" for line in page), part, ascii_only=ascii_only, width=size.width)
    golden("hints.txt", f"{hints}\n", f"{name} {part}", ascii_only=ascii_only, width=size.width)


async def golden_sizes(name: str, stage: Stage) -> None:
    """Compare the screen with its golden; at other sizes it must fit, and show the same cells where there is no chart.

    The lines of keys of all sizes are goldens: what leads on must be named in the smallest, too.
    """
    size, ascii_only = stage.app.size, stage.app.appearance.ascii_only
    golden_screen(name, stage)
    bodies = [body(stage)]
    for columns, rows in ((80, 24), (200, 50)):
        await stage.resize(columns, rows)
        *page, hints = stage.text.split("\n")
        assert len(page) == rows - 1
        assert widest(stage.text) <= columns
        assert stage.text.isascii() or not ascii_only
        golden("hints.txt", f"{hints}\n", f"{name} {columns}x{rows}", ascii_only=ascii_only, width=columns)
        bodies.append(body(stage))
        if (
            columns < size.width
            and not ascii_only
            and not AXIS.search(bodies[-1])
            and (titles := headings(FRAME.sub("", bodies[-1]), " "))
        ):
            golden(f"{name}.txt", titles, f"{columns}x{rows} headings", width=columns)
    text, narrow, wide = bodies
    if not AXIS.search(text):
        assert lost(narrow, text) == []
        assert lost(text, wide) == []
    await stage.resize(size.width, size.height)


def body(stage: Stage) -> str:
    """Return what a screen shows between its tabs and its keys, without the place in a page: they differ by size."""
    return re.sub(r"\d+[–-]\d+ of \d+", "", "\n".join(stage.text.split("\n")[2:-2]))


def no_gpu() -> GpuSampler:
    """A sampler that finds no GPU, on any machine."""
    return GpuSampler(lambda: (None, "no NVIDIA driver on this machine"))


@asynccontextmanager
async def on_stage(
    session: Session, size: tuple[int, int] = (120, 40), appearance: Appearance | None = None
) -> AsyncIterator[Stage]:
    """Run the application without a terminal. Nothing is read but by ``refresh``: the feed's thread does not start."""
    app = ProbeApp(session, appearance, gpu=no_gpu())
    app.feed.start = lambda: None  # type: ignore[method-assign]
    async with app.run_test(size=size) as pilot:
        target = session.target
        stage = Stage(app, pilot, target if isinstance(target, FakeTarget) else None)
        await stage.refresh()
        yield stage


@pytest.fixture
def target(tmp_path: Path, trace: TraceWriter) -> FakeTarget:
    """A target that runs and has made the example trace."""
    return FakeTarget(tmp_path, [trace.directory])


@pytest.fixture
def session(target: FakeTarget) -> Session:
    return Session(target=target)
