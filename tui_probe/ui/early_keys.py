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

TABLE_KEY_IDS = frozenset(key.id for key in keys.in_scope("kernels", "view", "table"))
"""The ids of the keys that act on a table of kernels."""
PAGE_KEY_IDS = frozenset((*(key.id for key in keys.in_scope("view", "drawing")), "jump", "worst", "probe"))
"""The ids of the keys that act on a page."""
LEAVING_KEY_IDS = frozenset(
    (*(key.id for key in keys.in_scope("tabs")), "leave", "back", "next_kernel", "previous_kernel", "next_launch",
     "previous_launch")
)  # fmt: skip
"""The ids of the keys that show something else than the page that is being read."""
_PROMPTS = frozenset(("search", "filter"))
"""The ids of the keys behind which a text is typed."""


class EarlyKeys:
    """Holds early keys for a table or page of a screen, in order. ``is_reading`` returns True while there is none.

    ``acting_ids`` are the ids of the keys that act on it. Those of ``leaving_ids`` act immediately; the held keys are
    then dropped, since what they were pressed for is not shown.
    """

    def __init__(
        self,
        screen: ViewScreen,
        is_reading: Callable[[], bool],
        acting_ids: frozenset[str] = TABLE_KEY_IDS,
        leaving_ids: frozenset[str] = frozenset(),
    ) -> None:
        self.screen = screen
        self.is_reading = is_reading
        self.acting_ids = acting_ids
        self.leaving_ids = leaving_ids
        self._keys: deque[events.Key] = deque()
        self._is_pressing = False
        self._pressed_key: events.Key | None = None
        """The held key that acts now."""

    def hold(self, event: events.Key, *, has_keys: bool) -> bool:
        """Hold a key if it, or one before it, acts on what is read (``has_keys``: keys go there).

        Keys that work everywhere are never held.
        """
        if (
            event is self._pressed_key
            or event.key in _keys_of_app()
            or not (self._keys or (has_keys and self.is_reading()))
        ):
            return False
        if self._keys and not self._is_pressing and event.key in _keys_of(self.leaving_ids):
            has_prompt = any(key.key in _keys_of(_PROMPTS) for key in self._keys)
            if not has_prompt or event.key == "escape":
                self._keys.clear()
                return has_prompt  # Esc ends what is typed, not the reading
        if not self._keys and event.key not in _keys_of(self.acting_ids):
            return False
        self._keys.append(events.Key(event.key, event.character))
        return True

    def drop(self) -> bool:
        """Forget the held keys, since they have nothing to act on; return whether there were any."""
        had_keys = bool(self._keys)
        self._keys.clear()
        return had_keys

    def release(self) -> None:
        """Press the held keys, if there is something to act on now."""
        if self._keys and not self.is_reading() and not self._is_pressing:
            self._is_pressing = True
            self.screen.call_later(self._press_all)

    async def _press_all(self) -> None:
        """Press each when the one before it has done its work; those that come meanwhile wait for their turn.

        A key may begin to read another page: the keys after it wait for that page.
        """
        while self._keys and not self.is_reading():
            await self._press(self._keys[0])
            if self._keys:
                self._keys.popleft()
        self._is_pressing = False

    async def _press(self, event: events.Key) -> None:
        screen = self.screen
        if screen.app.screen is not screen:
            screen.app.post_message(event)
            return
        self._pressed_key = event
        screen.on_key(event)
        if not was_stopped(event):
            await screen.probe_app.press_bound(event.key)


def _keys_of(ids: frozenset[str]) -> set[str]:
    return {key for row in keys.rows() if row.id in ids for key in row.keys}


def _keys_of_app() -> set[str]:
    return {key for row in keys.in_scope("app") for key in row.keys}
