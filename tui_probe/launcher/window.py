"""When a run records: from ``--after`` on, as long as ``--for`` says."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .control import ControlPage


class Window:
    """Turns the switch of a run on and off, each once: what a person does with it in between stays."""

    def __init__(self, control: ControlPage, after: float, duration: float | None) -> None:
        self._control = control
        self._on_at: float | None = after if after > 0 else None
        self._off_at = None if duration is None else max(after, 0.0) + duration

    def tick(self, elapsed: float) -> None:
        """To be called now and then; ``elapsed`` is seconds since the target's start."""
        if self._on_at is not None and elapsed >= self._on_at:
            self._on_at = None
            self._control.switch(True)
        if self._off_at is not None and elapsed >= self._off_at:
            self._off_at = None
            self._control.switch(False)
