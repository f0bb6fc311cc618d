"""Keys that arrive at once, as over a slow line, act one after another."""

from __future__ import annotations

from typing import TYPE_CHECKING

from textual import events

from tests.ui.conftest import Stage, on_stage
from tests.ui.test_home import at_home, home_of
from tui_probe.ui.screens.kernel import KernelScreen
from tui_probe.ui.screens.live import LiveScreen

if TYPE_CHECKING:
    from tui_probe.ui.feed import Session


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
        await at_once(stage, "j", "enter", "2", "/reg", "enter")
        assert isinstance(stage.app.screen, KernelScreen)
        assert stage.app.screen.current == "ptx"
        assert stage.live.current == "kernel"
        await at_once(stage, "escape", "escape", "3")
        assert stage.live.current == "events"


async def test_a_form_is_filled_in_the_order_of_typing() -> None:
    home = home_of()
    async with at_home(home) as stage:
        await at_once(stage, "tab", "<python >", "train.py", "down", "down", "mat", "down", "cop")
        form = home.form
        assert (form.command, form.kernels, form.excluded) == ("python train.py", "mat", "cop")
