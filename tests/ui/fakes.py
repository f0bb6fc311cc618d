"""Views that only pretend: they say what was asked of them, and open when a test lets them."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

from tests.patience import HANG
from tui_probe.draw.view import COMMANDS, Drawing
from tui_probe.pages.views import FIXED_PAGES, kind_of, kinds
from tui_probe.probekit.page_kinds import ViewKind

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    import pytest

    from tui_probe.draw.spans import Line
    from tui_probe.draw.view import Progress, View
    from tui_probe.probekit.page_kinds import ViewSource

FAKES = ("fake", "fake_2", "fake_3", "fake_4")


class Gate:
    """Gate at which a fake waits while it is closed."""

    def __init__(self) -> None:
        self.open = threading.Event()
        self.open.set()
        self.reached = threading.Event()

    def close(self) -> None:
        self.open.clear()
        self.reached.clear()

    def wait(self) -> None:
        self.reached.set()
        assert self.open.wait(HANG)


class FakeDrawing(Drawing):
    """Knows every command; its preparation waits at a gate."""

    title = "a fake"

    def __init__(self, source: ViewSource, gate: Gate) -> None:
        self.source = source
        self.gate = gate
        self.pressed: list[str] = []
        self.prepared = (0, 0, 0)
        self.clicked = (-1, -1)

    def prepare(self, width: int, height: int) -> Callable[[], None] | None:
        state = (width, height, len(self.pressed))
        if state == self.prepared:
            return None

        def work() -> None:
            self.gate.wait()
            self.prepared = state

        return work

    def draw(self, width: int, height: int, *, ascii_only: bool = False) -> list[Line]:
        del ascii_only
        launch = "newest" if self.source.launch is None else self.source.launch.number
        text = f"fake of {self.source.kernel.index} launch {launch} prepared {self.prepared[2]}"
        return [((text[:width], "hue0"),), *([()] * (height - 1))]

    def commands(self) -> Mapping[str, str]:
        return COMMANDS

    def press(self, command: str) -> str | None:
        self.pressed.append(command)
        return f"pressed {command}"

    def click(self, column: int, row: int) -> None:
        self.clicked = (column, row)

    def status(self) -> list[str]:
        return [f"{len(self.pressed)} commands"]

    def take_over(self, before: View) -> None:
        assert isinstance(before, FakeDrawing)
        self.pressed = list(before.pressed)

    def plot(self, axes: Any) -> None:
        axes.plot([0, 1], [0, 1])

    def record(self) -> Mapping[str, Any]:
        return {"pressed": self.pressed}

    def cells(self) -> Iterator[Sequence[object]]:
        yield ("command",)
        yield from ((command,) for command in self.pressed)


def show_fakes(monkeypatch: pytest.MonkeyPatch, opening: Gate | None = None, preparing: Gate | None = None) -> None:
    """Four more views, which open through a gate and report their progress before and behind it."""
    opening, preparing = opening or Gate(), preparing or Gate()

    def open_fake(source: ViewSource, progress: Progress) -> FakeDrawing:
        progress(0.25)
        opening.wait()
        progress(0.75)
        return FakeDrawing(source, preparing)

    fakes = [ViewKind(name, name.title(), "a fake", lambda _: None, open_fake) for name in FAKES]
    show_pages(monkeypatch, *fakes)


def show_pages(monkeypatch: pytest.MonkeyPatch, *own: ViewKind, others: bool = True) -> None:
    """These pages, behind those of every kernel and, with ``others``, those that probes fill."""
    named = {kind.name: kind for kind in own}
    shown = (*(kind for kind in kinds() if others or kind.name in FIXED_PAGES), *own)
    monkeypatch.setattr("tui_probe.ui.screens.page_opening.kinds", lambda: shown)
    monkeypatch.setattr("tui_probe.ui.screens.kernel.kind_of", lambda name: named.get(name) or kind_of(name))
