"""The way that jumps from page to page took, to be gone back."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from tui_probe.trace.offset import where_in_full

if TYPE_CHECKING:
    from tui_probe.ui.views.view import View


@dataclass
class Trail:
    """Pages that were left by a jump, with what was seen of each, the last one at the end."""

    steps: list[tuple[str, object]] = field(default_factory=list)
    _to: int | None = None
    _back: tuple[str, object] | None = None

    def leave(self, view: View, line: int | None) -> None:
        """Remember a page; the one that is shown next is to show this line of ``pruned.ptx``, if one is given."""
        self.steps.append((view.name, view.seen()))
        self._to, self._back = line, None

    def back(self) -> str | None:
        """The page that was left last; None if there is none."""
        if not self.steps:
            return None
        self._to, self._back = None, self.steps.pop()
        return self._back[0]

    def arrive(self, view: View) -> None:
        """A page is shown now: at the line that was jumped to, or as it was left."""
        line, back = self._to, self._back
        self._to = self._back = None
        if back is not None and back[0] == view.name:
            view.see(back[1])
        elif line is not None and not view.land(line):
            view.desk.notice(f"nothing is known here of {where_in_full(line)}")

    def clear(self) -> None:
        """Going elsewhere than by jumps ends the way."""
        self.steps.clear()
        self._to = self._back = None
