"""How far a command is that takes long, on a terminal: a line that goes when it is done. Ctrl-C ends the command."""

from __future__ import annotations

import os
import sys
import time
from typing import TYPE_CHECKING, Self

from tui_probe.draw import units

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

PATIENCE = 0.5
"""Seconds for which nothing is said, and between two words."""


class Reading:
    """Called with the share that is done, from 0 to 1; says that, and how long the rest will take at this pace."""

    def __init__(self, doing: str = "reading") -> None:
        self._doing = doing
        self._began = time.monotonic()
        self._next = self._began + PATIENCE if os.isatty(2) else float("inf")
        self._told = False

    def __enter__(self) -> Self:
        return self

    def __call__(self, share: float) -> None:
        now = time.monotonic()
        if now >= self._next:
            self._next = now + PATIENCE
            self._told = True
            sys.stderr.write(f"\r[info] {self._doing}: {share:4.0%}{units.left(share, now - self._began)}\x1b[K")
            sys.stderr.flush()

    def before(self, lines: Iterable[str]) -> Iterator[str]:
        """The lines; where they come on the same terminal, they end what was told before the first one."""
        for line in lines:
            if os.isatty(1):
                self._end()
            yield line

    def __exit__(self, *_: object) -> None:
        self._end()

    def _end(self) -> None:
        if self._told:
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()
        self._told, self._next = False, float("inf")
