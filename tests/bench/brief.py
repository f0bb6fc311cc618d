"""Time and size of the brief report of every bundled trace, and of one with 10 000 kernels.

    python -m tests.bench.brief [--kernels 10000] [--lines 200000]

Each trace is opened and its brief is made three times in this process; the best times count. The goal is 0.5 s and
4000 characters. The first trace is opened once more before, so that no time is that of imports.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import tui_probe.evals
from tests.bench.long_trace import LongTrace
from tests.recorded import DATA
from tui_probe.trace.follow import open_trace
from tui_probe.verdicts.run_brief import run_brief

ROUNDS = 3
SECONDS = 0.5


def bundled_traces() -> Iterator[Path]:
    """Yield the directories of all traces in the repository."""
    for root in (DATA, Path(tui_probe.evals.__file__).parent / "traces"):
        yield from sorted(log.parent for log in root.rglob("event.log"))


def measure(directory: Path) -> tuple[float, float, int]:
    """Seconds to open a trace, then to make its brief, and the characters of that."""
    opening, making, size = float("inf"), float("inf"), 0
    for _ in range(ROUNDS):
        began = time.monotonic()
        trace = open_trace(directory)
        opened = time.monotonic()
        size = len(run_brief(trace).text())
        opening, making = min(opening, opened - began), min(making, time.monotonic() - opened)
    return opening, making, size


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kernels", type=int, default=10_000)
    parser.add_argument("--lines", type=int, default=200_000)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        long = Path(folder) / "trace"
        LongTrace(long, options.lines, options.kernels, 4_000_000, "./long").write()
        traces = [*bundled_traces(), long]
        measure(traces[0])
        for directory in traces:
            opening, making, size = measure(directory)
            mark = "" if making <= SECONDS else "  over the goal"
            print(f"opened {opening:6.3f} s, made {making:6.3f} s, {size:5} characters  {directory}{mark}")


if __name__ == "__main__":
    main()
