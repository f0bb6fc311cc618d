"""A desk for views in tests: jobs run when the test says so."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable

    from tui_probe.ui.views.view import PaneView


class Bench:
    """A worker whose jobs run at the same time, or when ``run`` is called if it is ``held``."""

    def __init__(self) -> None:
        self.held = False
        self.waiting: dict[Hashable, tuple[Callable[[], Any], Callable[[Any], None]]] = {}

    def submit(self, key: Hashable, job: Callable[[], Any], done: Callable[[Any], None]) -> None:
        self.waiting[key] = (job, done)
        if not self.held:
            self.run()

    def run(self) -> None:
        while self.waiting:
            job, done = self.waiting.pop(next(iter(self.waiting)))
            done(job())


class TestDesk:
    """Surroundings of a view: queues, frames, messages."""

    __test__ = False

    def __init__(self) -> None:
        self.tables = Bench()
        self.logs = Bench()
        self.analyses = Bench()
        self.notices: list[str] = []
        self.redrawn: list[PaneView] = []

    def redraw(self, view: PaneView) -> None:
        self.redrawn.append(view)

    def notice(self, text: str) -> None:
        self.notices.append(text)


def shown(view: PaneView) -> list[str]:
    """The lines of a view's window as text."""
    return ["".join(text for text, _ in line).rstrip() for line in view.draw(view.width, view.height)]


def said(view: PaneView) -> str:
    """Return the status of a view as text."""
    return " · ".join(view.status())
