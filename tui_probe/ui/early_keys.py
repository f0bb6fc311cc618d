"""Keys that are pressed before there is a table to press them on."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

from textual import events

from tui_probe.ui import keys

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

SCOPES = ("kernels", "view", "table")
"""Where the keys that act on a table are."""


class EarlyKeys:
    """Holds them for the table, in their order."""

    def __init__(self) -> None:
        self._held: deque[events.Key] = deque()

    def __bool__(self) -> bool:
        return bool(self._held)

    def hold(self, event: events.Key) -> bool:
        """Hold a key if it, or one before it, acts on the table; those that work everywhere are never held."""
        if event.key in _keys_of("app") or not (self._held or event.key in _keys_of(*SCOPES)):
            return False
        self._held.append(events.Key(event.key, event.character))
        return True

    async def press(self, press: Callable[[events.Key], Awaitable[object]]) -> None:
        """Press each when the one before it has done its work; those that come meanwhile wait for their turn."""
        while self._held:
            await press(self._held[0])
            self._held.popleft()


def _keys_of(*scopes: str) -> set[str]:
    return {key for row in keys.in_scope(*scopes) for key in row.keys}
