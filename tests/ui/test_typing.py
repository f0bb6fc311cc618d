"""Keys that arrive immediately, as over a slow line, act one after another."""

from __future__ import annotations

from contextlib import asynccontextmanager
from threading import Event
from typing import TYPE_CHECKING

from textual import events

from tests.patience import HANG
from tests.ui.conftest import Stage, no_gpu, on_stage
from tests.ui.test_home import TRACES, at_home, home_of
from tui_probe.ui.app import ProbeApp
from tui_probe.ui.live.feed import Session
from tui_probe.ui.live.live_screen import LiveScreen
from tui_probe.ui.requests import HomeSources, OpenTrace
from tui_probe.ui.screens.kernel import KernelScreen

if TYPE_CHECKING:
    from collections.abc import AsyncIterator


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
        assert stage.live.table.searched == "soft"
        assert stage.live.table.selected == 5


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


async def test_filter_acts_while_it_is_typed_and_escape_restores_the_one_before(session: Session) -> None:
    async with on_stage(session) as stage:
        table = stage.live.table
        await stage.press("ampersand", *"tri")
        assert [row.index for row in table.shown] == [2], "before Enter"
        await stage.press("backspace", "backspace", "backspace")
        assert len(table.shown) == len(table.kernels.all)
        await stage.press(*"row", "enter", "ampersand", "ctrl+u", *"zero")
        assert [row.index for row in table.shown] == [0]
        await stage.press("escape")
        assert table.filter_text == "row"
