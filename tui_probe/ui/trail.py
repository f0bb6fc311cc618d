"""The way that jumps from page to page took, to be gone back."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from tui_probe.trace.offset import where_in_full

if TYPE_CHECKING:
    from tui_probe.draw.spot import Spot
    from tui_probe.ui.views.view import View


@dataclass
class Trail:
    """Pages that were left by a jump, with what was seen of each and what alone was shown, the last one at the end."""

    steps: list[tuple[str, object]] = field(default_factory=list)
    onlys: list[object] = field(default_factory=list)
    _to: Spot | None = None
    _back: tuple[str, object] | None = None

    def leave(self, view: View, spot: Spot | None, only: object = None) -> None:
        """Remember a page; the one that is shown next is to show this place, if one is given."""
        self.steps.append((view.name, view.seen()))
        self.onlys.append(only)
        self._to, self._back = spot, None

    def back(self) -> tuple[str, object] | None:
        """The page that was left last, and what alone was shown then; None if there is none."""
        if not self.steps:
            return None
        self._to, self._back = None, self.steps.pop()
        return self._back[0], self.onlys.pop()

    def arrive(self, view: View, at: Spot) -> None:
        """A page is shown now: at the spot that was jumped to, as it was left, or else where one is (``at``)."""
        to, back = self._to, self._back
        self._to = self._back = None
        if back is not None and back[0] == view.name:
            view.see(back[1])
            return
        wanted = at if to is None else to
        if wanted and not view.land(wanted, exactly=to is not None):
            unknown = f"nothing is known here of {where_in_full(to.ptx[0])}" if to is not None and to.ptx else ""
            if words := view.lacks(wanted) or unknown:
                view.desk.notice(words)

    def clear(self) -> None:
        """Going elsewhere than by jumps ends the way."""
        self.steps.clear()
        self.onlys.clear()
        self._to = self._back = None
