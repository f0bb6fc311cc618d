"""Response of ``tui-probe open`` to a long trace on a terminal; part of ``python -m tests.bench.open_trace``.

Seconds by the clock from the start of the command, Python's imports among them: when the screen says that it reads,
when the table of kernels stands, and when the folders of all kernels have been read. Meanwhile keys are pressed: how
long each takes until the terminal gets something. A key that was pressed before the table stood must have acted on it.
"""

from __future__ import annotations

import re
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from tests.ui.terminal import Terminal

_PLACE = re.compile(r"kernel ([\d ]+) of [\d ]+")
LONGEST = 120.0
BETWEEN = 0.11
"""Seconds between two keys."""


@dataclass(frozen=True)
class Opening:
    reading: float
    table: float
    complete: float
    keys: list[float]
    """Seconds from a key to what it brings, pressed while folders are read."""

    def __str__(self) -> str:
        keys = f"{1e3 * median(self.keys):.0f} ms, at most {1e3 * max(self.keys):.0f}" if self.keys else "none pressed"
        return (
            f"tui-probe open: says that it reads after {self.reading:.2f} s, table after {self.table:.2f} s, "
            f"all folders read after {self.complete:.2f} s\n{len(self.keys)} keys while they are read: {keys}"
        )


def open_on_terminal(trace: Path, state: Path) -> Opening:
    """Opens the trace on a terminal of 120 x 40; ``state`` is a folder for what the command remembers."""
    command = [sys.executable, "-m", "tui_probe", "open", str(trace)]
    begun = time.perf_counter()
    with Terminal(command, (120, 40), {"XDG_STATE_HOME": str(state), "XDG_CONFIG_HOME": str(state)}) as terminal:

        def after(holds: str | Callable[[], bool]) -> float:
            terminal.wait(holds, LONGEST)
            return time.perf_counter() - begun

        reading = after("reading the trace")
        terminal.type("j")
        table = after(lambda: bool(_PLACE.search(terminal.shown)))
        terminal.wait("kernel 2 of")
        keys = []
        while "kernels read" in terminal.text:
            keys.append(_key(terminal))
        complete = time.perf_counter() - begun
    return Opening(reading, table, complete, keys)


def _key(terminal: Terminal) -> float:
    """Moves down once: the place in the title bar changes with the key only."""
    time.sleep(BETWEEN)
    before = _PLACE.findall(terminal.text)
    pressed = time.perf_counter()
    terminal.type("j")
    terminal.wait(lambda: _PLACE.findall(terminal.shown) not in ([], before))
    return time.perf_counter() - pressed


if __name__ == "__main__":
    print(open_on_terminal(Path(sys.argv[1]), Path(sys.argv[2])))
