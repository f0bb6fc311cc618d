"""Keys pressed before the table or page that they act on is there: held, then pressed in order."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

from textual import events

from tui_probe.ui import keys
from tui_probe.ui.textual_private import was_stopped

if TYPE_CHECKING:
    from collections.abc import Callable

    from tui_probe.ui.screens.view_screen import ViewScreen

TABLE = frozenset(key.id for key in keys.in_scope("kernels", "view", "table"))
"""The ids of the keys that act on a table of kernels."""
PAGE = frozenset((*(key.id for key in keys.in_scope("view", "drawing")), "jump", "worst", "probe"))
"""The ids of the keys that act on a page."""
LEAVING = frozenset(
    (*(key.id for key in keys.in_scope("tabs")), "leave", "back", "next_kernel", "previous_kernel", "next_launch",
     "previous_launch")
)  # fmt: skip
"""The ids of the keys that show something else than the page that is being read."""
_PROMPTS = frozenset(("search", "filter"))
"""The ids of the keys behind which a text is typed."""


class EarlyKeys:
    """Holds early keys for a table or page of a screen, in order. ``reading`` returns True while there is none.

    ``acting`` are the ids of the keys that act on it. Those of ``leaving`` act immediately; the held keys are then
    dropped, since what they were pressed for is not shown.
    """

    def __init__(
        self,
        screen: ViewScreen,
        reading: Callable[[], bool],
        acting: frozenset[str] = TABLE,
        leaving: frozenset[str] = frozenset(),
    ) -> None:
        self.screen = screen
        self.reading = reading
        self.acting = acting
        self.leaving = leaving
        self._held: deque[events.Key] = deque()
        self._pressing = False
        self._pressed: events.Key | None = None
        """The held key that acts now."""

    def hold(self, event: events.Key, *, has_keys: bool) -> bool:
        """Hold a key if it, or one before it, acts on what is read (``has_keys``: keys go there).

        Keys that work everywhere are never held.
        """
        if event is self._pressed or event.key in _keys_of_app() or not (self._held or (has_keys and self.reading())):
            return False
        if self._held and not self._pressing and event.key in _keys_of(self.leaving):
            typed = any(key.key in _keys_of(_PROMPTS) for key in self._held)
            if not typed or event.key == "escape":
                self._held.clear()
                return typed  # Esc ends what is typed, not the reading
        if not self._held and event.key not in _keys_of(self.acting):
            return False
        self._held.append(events.Key(event.key, event.character))
        return True

    def drop(self) -> bool:
        """Forget the held keys, since they have nothing to act on; return whether there were any."""
        held = bool(self._held)
        self._held.clear()
        return held

    def release(self) -> None:
        """Press the held keys, if there is something to act on now."""
        if self._held and not self.reading() and not self._pressing:
            self._pressing = True
            self.screen.call_later(self._press_all)

    async def _press_all(self) -> None:
        """Press each when the one before it has done its work; those that come meanwhile wait for their turn.

        A key may begin to read another page: the keys after it wait for that page.
        """
        while self._held and not self.reading():
            await self._press(self._held[0])
            if self._held:
                self._held.popleft()
        self._pressing = False

    async def _press(self, event: events.Key) -> None:
        screen = self.screen
        if screen.app.screen is not screen:
            screen.app.post_message(event)
            return
        self._pressed = event
        screen.on_key(event)
        if not was_stopped(event):
            await screen.probe_app.press_bound(event.key)


def _keys_of(ids: frozenset[str]) -> set[str]:
    return {key for row in keys.rows() if row.id in ids for key in row.keys}


def _keys_of_app() -> set[str]:
    return {key for row in keys.in_scope("app") for key in row.keys}
