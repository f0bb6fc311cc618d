"""The application on an emulated terminal in the same process: what it sends is what the terminal shows."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import pyte
from textual.drivers.headless_driver import HeadlessDriver
from textual.drivers.linux_driver import LinuxDriver

from tests.ui.conftest import Stage, on_stage
from tests.ui.terminal import UNKNOWN_TO_PYTE, Screen
from tui_probe.ui.driver import FrugalDriver

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    import pytest

    from tui_probe.ui import Appearance
    from tui_probe.ui.session import Session


class Emulated:
    """A terminal of ``size`` (columns, rows), fed with what the driver leaves of the frames."""

    def __init__(self, size: tuple[int, int]) -> None:
        self.screen = Screen(*size)
        self.stream = pyte.ByteStream(self.screen)
        self.received = 0
        """Bytes."""

    def feed(self, data: str) -> None:
        sent = data.encode()
        self.received += len(sent)
        self.stream.feed(UNKNOWN_TO_PYTE.sub(b"", sent))

    @property
    def text(self) -> str:
        """The visible text; wide characters appear once and leave no second cell."""
        return self.screen.text


@asynccontextmanager
async def on_emulated(
    session: Session, size: tuple[int, int], appearance: Appearance, patch: pytest.MonkeyPatch
) -> AsyncIterator[tuple[Stage, Emulated]]:
    """The application with its own driver's economy, but no terminal of the machine."""
    terminal = Emulated(size)

    class Driver(HeadlessDriver):
        """Frames go through ``FrugalDriver.write`` to the emulator."""

        is_headless = False

        def __init__(self, *arguments: Any, **options: Any) -> None:
            super().__init__(*arguments, **options)
            self.frugal = FrugalDriver.__new__(FrugalDriver)
            self.frugal.forget()

        def write(self, data: str) -> None:
            self.frugal.write(data)

    patch.setattr(LinuxDriver, "write", lambda _, data: terminal.feed(data))
    patch.setattr("textual.drivers.headless_driver.HeadlessDriver", Driver)
    async with on_stage(session, size, appearance) as stage:
        yield stage, terminal
