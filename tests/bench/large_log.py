"""Cost of an event.log of gigabytes: its last page, a search, a filter, and opening the trace.

    python -m tests.bench.large_log [--megabytes 1000] [--kernels 1000] [--folder DIR]

Each is done once, in a process of its own: seconds by the clock, and the largest resident set.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.bench.long_trace import LongTrace

BYTES_A_LINE = 57
COMMON = """
import resource, sys, time
from pathlib import Path
from tui_probe.trace.follow import open_trace
from tui_probe.ui.views.log import LogFilter, LogReader
trace, everything = Path(sys.argv[1]), LogFilter()
reader = LogReader(trace / "event.log")
def told(words):
    print(f"{words}: {time.perf_counter() - clock:.2f} s,",
          f"{resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} MB")
clock = time.perf_counter()
"""
WORK = {
    "index and last page": "page = reader.page(None, 40, everything); told(f'index and last of {page.total} lines')",
    "search": "reader.page(None, 40, everything); clock = time.perf_counter();"
    " place = reader.find('no such text', 0, 1, everything); told(f'search through all, found: {place}')",
    "filter": "page = reader.page(None, 40, LogFilter(frozenset(['[kernel]'])));"
    " told(f'filter, {page.total} lines left')",
    "open": "opened = open_trace(trace); told(f'open the trace, {opened.state.launches} launches')",
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--megabytes", type=int, default=1000)
    parser.add_argument("--kernels", type=int, default=1000)
    parser.add_argument("--folder", type=Path, help="where the log is written meanwhile; default the temporary folder")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=options.folder) as name:
        trace = Path(name) / "trace"
        lines = options.megabytes * 1_000_000 // BYTES_A_LINE
        LongTrace(trace, lines, options.kernels, os.getpid(), "large_log").write()
        print(f"event.log of {(trace / 'event.log').stat().st_size / 1e6:.0f} MB")
        for work in WORK.values():
            done = subprocess.run([sys.executable, "-c", COMMON + work, str(trace)], stdout=subprocess.PIPE, check=True)
            sys.stdout.write(done.stdout.decode())


if __name__ == "__main__":
    main()
