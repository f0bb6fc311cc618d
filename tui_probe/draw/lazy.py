"""Lines made when they are looked at: a document of 20 000 lines costs what is visible of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tui_probe.draw.spans import Line


class LazyLines(Sequence["Line"]):
    """``count`` lines, each made by ``make`` from its number when it is asked for; ``head`` stands above them."""

    def __init__(self, count: int, make: Callable[[int], Line], head: Sequence[Line] = ()) -> None:
        self._count = count
        self._make = make
        self._head = head

    def __len__(self) -> int:
        return len(self._head) + self._count

    def __getitem__(self, place: Any) -> Any:
        if isinstance(place, slice):
            return [self[i] for i in range(*place.indices(len(self)))]
        place = place + len(self) if place < 0 else place
        if not 0 <= place < len(self):
            raise IndexError(place)
        return self._head[place] if place < len(self._head) else self._make(place - len(self._head))
