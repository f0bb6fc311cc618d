"""What it takes to open the recorded profile of 3 689 kernels: as text by the whole command, and by its parts.

    python -m tests.bench.nsight

Times are the best of five, by the clock and in seconds of the processor.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from tests.importers.files import real
from tui_probe.importers.nsys import read_nsys
from tui_probe.pages.nsight.nsys_pages import kernels_page
from tui_probe.pages.nsight.nsys_sources import NsysSources
from tui_probe.pages.nsight.page import page_lines

ROUNDS = 5


def main() -> None:
    with tempfile.TemporaryDirectory() as name:
        path = real(Path(name), "nsys/sample.sqlite")
        whole = [sys.executable, "-m", "tui_probe", "import", "nsys", str(path)]
        show("the whole command", lambda: run(whole))
        show("  Python and NumPy alone", lambda: run([sys.executable, "-c", "import numpy"]))
        show("  reading", lambda: read_nsys([path]))
        report = read_nsys([path])
        show("  projecting ranges", lambda: (NsysSources(report).projected, NsysSources(report).innermost))
        sources = NsysSources(report)
        kernels_page(sources)
        show("  3 689 rows of text", lambda: list(page_lines(kernels_page(sources), "table", width=120)))


def run(command: list[str]) -> None:
    subprocess.run(command, stdout=subprocess.DEVNULL, check=True)


def show(what: str, action: Callable[[], object]) -> None:
    """The best of some rounds; processor time is that of this process and its children."""
    clock, used = [], []
    for _ in range(ROUNDS):
        before, began = sum(os.times()[:4]), time.perf_counter()
        action()
        clock.append(time.perf_counter() - began)
        used.append(sum(os.times()[:4]) - before)
    print(f"{what:28} {min(clock):6.3f} s by the clock {min(used):6.2f} s of the processor")


if __name__ == "__main__":
    main()
