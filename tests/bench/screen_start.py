"""CPU time until a screen is up, beyond that of a bare Textual application.

    python -m tests.bench.screen_start [--rounds 7] [TRACE]

Starts `tui-probe open TRACE` (default: a recorded trace of an H200) and a Textual application with one line of text, in
turn, each in a new Python on a pseudo-terminal of 120×40. Prints the medians of user and system time of the process
when its first frame is on the terminal, and when the kernel table is: CPU seconds, which a busy machine changes less
than seconds by the clock.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path
from statistics import median

from tests.recorded import H200, unpacked
from tests.ui.terminal import Terminal
from tests.warm_start import COLD

BARE = """
from textual.app import App
from textual.widgets import Static

class Bare(App):
    ENABLE_COMMAND_PALETTE = False

    def compose(self):
        yield Static("bare application")

Bare().run()
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("trace", nargs="?", type=Path)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        trace = options.trace or unpacked(H200 / "demo", Path(name))
        opened = [sys.executable, "-m", "tui_probe", "open", str(trace)]
        runs = [
            (start([sys.executable, "-c", BARE], name, "bare"), start(opened, name, "reading the trace", "kernel 1 of"))
            for _ in range(options.rounds)
        ]
    bare = median(bare[0] for bare, _ in runs)
    for place, what in enumerate(("first frame", "kernel table")):
        total = median(screen[place] for _, screen in runs)
        print(f"{what}: {total:.2f} s of CPU, a bare Textual application {bare:.2f} s, beyond it {total - bare:.2f} s")


def start(command: list[str], home: str, *texts: str) -> list[float]:
    """CPU seconds of a command at the moment at which each text is on its terminal."""
    own = {f"XDG_{kind}_HOME": home for kind in ("CACHE", "CONFIG", "STATE")}
    with Terminal(command, (120, 40), {**own, COLD: "1"}) as terminal:
        seconds = []
        for text in texts:
            terminal.wait(text)
            seconds.append(cpu_seconds(terminal.pid))
    return seconds


def cpu_seconds(process: int) -> float:
    """Time on a CPU of all threads of a process that still run: first field of schedstat in proc(5), in ns."""
    threads = Path(f"/proc/{process}/task").iterdir()
    return sum(int((thread / "schedstat").read_text(encoding="utf-8").split()[0]) for thread in threads) / 1e9


if __name__ == "__main__":
    main()
