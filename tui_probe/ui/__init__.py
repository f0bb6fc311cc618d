"""The terminal interface. Importing this package imports no Textual; ``run`` does, once there is a terminal."""

from __future__ import annotations

import gc
import os
import signal
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from tui_probe.errors import LaunchError
from tui_probe.ui.application import Appearance

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tui_probe.ui.session import Session

__all__ = ["Appearance", "check_terminal", "ending_signals", "run"]


_RARE_COLLECTIONS: Final = (20_000, 10, 100)
"""Thresholds of garbage collection, by default 700 new objects: a screen makes thousands, and one look through all
objects takes 50 to 100 ms.
"""


def check_terminal(alternative: str) -> None:
    """LaunchError if there is no terminal to draw on; ``alternative`` is the command that needs none."""
    obstacles = [
        name
        for name, stream in (("stdin", sys.__stdin__), ("stdout", sys.__stdout__), ("stderr", sys.__stderr__))
        if stream is None or stream.closed or not stream.isatty()
    ]
    if not obstacles and os.environ.get("TERM", "") in ("", "dumb"):
        obstacles = ["TERM"]
    if obstacles:
        obstacle = (
            f"TERM is {os.environ.get('TERM')!r}" if obstacles == ["TERM"] else f"{obstacles[0]} is not a terminal"
        )
        raise LaunchError(f"the live screen needs a terminal, but {obstacle}; without a terminal use: {alternative}")


@contextmanager
def ending_signals(handler: Callable[[int, object], None]) -> Iterator[None]:
    """SIGTERM and SIGHUP go to the handler, again and again (a shell that loses its terminal passes it on to its jobs).

    Not by the event loop, which would let them end the process immediately when it has closed.
    """
    previous_handlers = {number: signal.signal(number, handler) for number in (signal.SIGTERM, signal.SIGHUP)}
    try:
        yield
    finally:
        for number, previous_handler in previous_handlers.items():
            signal.signal(number, previous_handler)


def run(session: Session, appearance: Appearance | None = None, *, alternative: str = "tui-probe report TRACE") -> int:
    """Show the session until the user quits. Returns 0, 1 after a crash, or 128 + the signal that ended it.

    A target that still runs keeps running. Raises LaunchError, before anything is drawn, where there is no terminal.
    """
    check_terminal(alternative)
    from tui_probe.ui.app import ProbeApp, report_crash

    appearance = appearance or Appearance.from_environment()
    app = ProbeApp(session, appearance)
    gc.freeze()
    gc.set_threshold(*_RARE_COLLECTIONS)
    with ending_signals(app.end_by_signal):
        app.run(mouse=appearance.wants_mouse)
    if app.crash is not None:
        report_crash(app.crash)
    return app.return_code or 0
