"""Keys that are pressed before the table they act on is there: held, then pressed in order."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

from textual import events

from tui_probe.ui import keys

if TYPE_CHECKING:
    from collections.abc import Callable

    from tui_probe.ui.screens.view_screen import ViewScreen

TABLE = frozenset(key.id for key in keys.in_scope("kernels", "view", "table"))
"""The ids of the keys that act on a table of kernels."""


class EarlyKeys:
    """Holds early keys for the table of a screen, in order. ``reading`` returns True while there is no table.

    ``acting`` are the ids of the keys that act on it.
    """

    def __init__(self, screen: ViewScreen, reading: Callable[[], bool], acting: frozenset[str] = TABLE) -> None:
        self.screen = screen
        self.reading = reading
        self.acting = acting
        self._held: deque[events.Key] = deque()
        self._pressing = False

    def hold(self, event: events.Key, *, on_table: bool) -> bool:
        """Hold a key if it, or one before it, acts on the table (``on_table``: it would if there were one).

        Those that work everywhere are never held.
        """
        waits = self._held or (on_table and self.reading())
        if not waits or event.key in _app_keys() or not (self._held or event.key in self._acting_keys()):
            return False
        self._held.append(events.Key(event.key, event.character))
        return True

    def _acting_keys(self) -> set[str]:
        return {key for row in keys.rows() if row.id in self.acting for key in row.keys}

    def drop(self) -> bool:
        """Forget the held keys, since they have nothing to act on; return whether there were any."""
        held = bool(self._held)
        self._held.clear()
        return held

    def release(self) -> None:
        """Press the held keys, if there is a table now."""
        if self._held and not self.reading() and not self._pressing:
            self._pressing = True
            self.screen.call_later(self._press_all)

    async def _press_all(self) -> None:
        """Press each when the one before it has done its work; those that come meanwhile wait for their turn."""
        while self._held:
            await self._press(self._held[0])
            self._held.popleft()
        self._pressing = False

    async def _press(self, event: events.Key) -> None:
        screen = self.screen
        if screen.app.screen is not screen:
            screen.app.post_message(event)
        elif screen.prompt is not None:
            screen.take_key(event)
        elif (active := screen.active_bindings.get(event.key)) is not None:
            await screen.app.run_action(active.binding.action, active.node)


def _app_keys() -> set[str]:
    return {key for row in keys.in_scope("app") for key in row.keys}
