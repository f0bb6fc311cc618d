"""Keys that arrive immediately, as over a slow line, act one after another."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from threading import Event
from typing import TYPE_CHECKING

from textual import events

from tests.patience import HANG
from tests.recorded import H200
from tests.ui.conftest import Stage, no_gpu, on_stage
from tests.ui.fakes import Gate
from tests.ui.test_home import TRACES, at_home, home_of
from tui_probe.ui.app import ProbeApp
from tui_probe.ui.live.live_screen import LiveScreen
from tui_probe.ui.screens.kernel import KernelScreen
from tui_probe.ui.session import HomeSources, OpenTrace, Session
from tui_probe.ui.views.document_view import DocumentView

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

RECORDED = Session(traces=(H200 / "demo",))


async def at_once(stage: Stage, *what: str) -> None:
    """All of it before the screen can act: names of keys, and texts to type or, in <>, to paste."""
    for words in what:
        if words.startswith("<"):
            stage.app.post_message(events.Paste(words[1:-1]))
        elif words in ("enter", "down", "escape", "tab"):
            stage.app.post_message(events.Key(words, None))
        else:
            for character in words:
                stage.app.post_message(events.Key("slash" if character == "/" else character, character))
    await stage.settle()


async def test_a_search_is_typed_and_not_acted_on(session: Session) -> None:
    async with on_stage(session) as stage:
        await at_once(stage, "/soft", "enter", "j")
        assert isinstance(stage.app.screen, LiveScreen)
        assert stage.live.table.search_text == "soft"
        assert stage.live.table.selected_index == 5


async def test_keys_go_to_the_screen_that_the_key_before_opened(session: Session) -> None:
    async with on_stage(session) as stage:
        await at_once(stage, "j", "enter", "3", "/reg", "enter")
        assert isinstance(stage.app.screen, KernelScreen)
        assert stage.app.screen.current == "ptx"
        assert stage.live.current == "kernel"
        await at_once(stage, "escape", "escape", "0", "v", "tab")
        assert stage.live.current == "events"


@asynccontextmanager
async def while_looking(home: HomeSources) -> AsyncIterator[tuple[Stage, Event]]:
    """Home before its traces are found: that is when the event is set."""
    found, recent = Event(), home.recent
    home.recent = lambda: recent() if found.wait(HANG) else ()
    app = ProbeApp(Session(home=home), None, gpu=no_gpu())
    async with app.run_test(size=(100, 30)) as pilot:
        stage = Stage(app, pilot, None)
        await stage.until(lambda: "looking for traces" in stage.text, "home is not shown")
        try:
            yield stage, found
        finally:
            found.set()


async def test_keys_wait_until_home_has_found_the_traces() -> None:
    home = home_of()
    async with while_looking(home) as (stage, found):
        await stage.pilot.press("down")
        assert "↓ works after the list of traces has loaded" in stage.text
        await stage.pilot.press("enter")
        assert "Enter works after the list of traces has loaded" in stage.text
        found.set()
        await stage.until(lambda: home.choice is not None, "Enter was lost")
        assert home.choice == OpenTrace(TRACES[1].directory)


async def test_text_behind_a_key_that_waited_goes_to_the_form() -> None:
    home = home_of()
    async with while_looking(home) as (stage, found):
        await stage.pilot.press("ampersand", "x", "escape", "tab", *"python")
        assert home.form.command == "", "Tab waits for the filter"
        found.set()
        await stage.until(lambda: home.form.command == "python", "text was lost")
        assert home.choice is None


async def test_without_traces_keys_that_waited_are_not_typed_into_the_form() -> None:
    home = home_of(())
    async with while_looking(home) as (stage, found):
        await stage.pilot.press("enter", "j")
        found.set()
        await stage.until(lambda: "no traces yet; keys typed while loading" in stage.text, "nothing is said")
        await stage.settle()
        assert (home.form.command, home.choice) == ("", None)


async def test_a_form_is_filled_in_the_order_of_typing() -> None:
    home = home_of()
    async with at_home(home) as stage:
        await at_once(stage, "tab", "<python >", "train.py", "down", "down", "mat", "down", "cop")
        form = home.form
        assert (form.command, form.kernels, form.excluded) == ("python train.py", "mat", "cop")


@asynccontextmanager
async def while_reading(stage: Stage, *keys: str) -> AsyncIterator[None]:
    """A page that these keys open waits until the block ends; then all work is done."""
    gate = Gate()
    gate.close()
    stage.app.analyses.submit("gate", gate.wait, lambda _: None)
    try:
        await now(stage, *keys)
        yield
    finally:
        gate.open.set()
    await stage.settle()


async def now(stage: Stage, *keys: str) -> None:
    """Press keys, and handle what they lead to without waiting for threads."""
    for key in keys:
        await stage.pilot.press(key)
        for _ in range(5):
            await stage.pilot.pause()
            await asyncio.sleep(0)


def row_of(stage: Stage) -> int:
    view = stage.app.screen.view  # type: ignore[attr-defined]
    assert isinstance(view, DocumentView)
    return view.window.place.cursor


async def test_keys_wait_for_the_page_that_is_read() -> None:
    async with on_stage(RECORDED) as stage:
        await stage.press("enter", "8")
        before = row_of(stage)
        async with while_reading(stage, "3"):
            await now(stage, "j", "j", "slash", *"reg", "enter")
            assert row_of(stage) == before, "the page that is still visible does not take them"
        assert stage.app.screen.view.name == "ptx"  # type: ignore[attr-defined]
        assert stage.app.screen.view.search_text == "reg"  # type: ignore[attr-defined]
        assert row_of(stage) > 1
        await stage.press("8")
        assert row_of(stage) == before


async def test_key_of_another_page_drops_the_keys_that_wait() -> None:
    async with on_stage(RECORDED) as stage:
        await stage.press("enter", "8")
        before = row_of(stage)
        async with while_reading(stage, "3"):
            await now(stage, "j", "8")
            assert row_of(stage) == before
        assert row_of(stage) == before
        await stage.press("3")
        assert row_of(stage) == 0


async def test_escape_ends_a_search_that_waits_then_the_reading(session: Session) -> None:
    async with on_stage(session) as stage:
        await stage.press("enter", "8")
        async with while_reading(stage, "3"):
            await now(stage, "slash", "q", "escape")
            assert stage.app.screen.opener.opening is not None  # type: ignore[attr-defined]
            await now(stage, "escape")
            assert "stopped" in stage.text
        assert stage.app.screen.view.search_text == ""  # type: ignore[attr-defined]


async def test_keys_after_enter_wait_for_the_page_that_it_reads_again(session: Session) -> None:
    async with on_stage(session) as stage:
        await stage.press("enter")
        async with while_reading(stage, "8"):
            await now(stage, "enter", "G")
        source, view = stage.live.current_selection.source(), stage.app.screen.view  # type: ignore[attr-defined]
        assert source is not None
        assert source.launch is not None, stage.text
        assert row_of(stage) == view.count - 1 > 0


async def test_page_of_the_live_screen_takes_keys_when_it_is_read(session: Session) -> None:
    async with on_stage(session) as stage:
        await stage.press("3", "tab")
        async with while_reading(stage, "8"):
            await now(stage, "G")
            stage.live.refresh_frame()
            stage.live.refresh_frame()
            await now(stage)
            stage.live.refresh_frame()
            assert "reading Launches" in stage.text
        view = stage.live.view
        assert isinstance(view, DocumentView)
        assert (view.name, view.window.place.cursor) == ("launches", view.count - 1)
        assert view.count > 1


async def test_reading_a_page_of_the_live_screen_can_be_stopped(session: Session) -> None:
    async with on_stage(session) as stage:
        async with while_reading(stage, "8"):
            await now(stage, "escape")
            assert "stopped reading the page; to open a page, press its key" in stage.text
        assert "stopped" in stage.text
        await stage.press("8")
        assert stage.live.pages.current_view.name == "launches"


async def test_filter_acts_while_it_is_typed_and_escape_restores_the_one_before(session: Session) -> None:
    async with on_stage(session) as stage:
        table = stage.live.table
        await stage.press("ampersand", *"tri")
        assert [row.index for row in table.shown_rows] == [2], "before Enter"
        await stage.press("backspace", "backspace", "backspace")
        assert len(table.shown_rows) == len(table.kernels.all_rows)
        await stage.press(*"row", "enter", "ampersand", "ctrl+u", *"zero")
        assert [row.index for row in table.shown_rows] == [0]
        await stage.press("escape")
        assert table.filter_text == "row"
