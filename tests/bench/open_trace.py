"""Cost of reading a long trace: opening it, one row per kernel, the next look at a live one, the index of its log.

    python -m tests.bench.open_trace [--lines 1000000] [--kernels 10000] [--new 100000] [--launches 100000]
                                     [--index-bytes 1000000000] [--rounds 3]

Each is measured in a process of its own, without its start: time by the clock, time of the processor, and the most
memory that the process held. Ratios are of processor time, to reading the first log in slices and finding its newlines
with NumPy in the same run. The best of some rounds, which go through all in turn: what else runs on the machine then
meets all alike. Then what opening the first trace on a terminal feels like (``open_screen``).
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import astuple, dataclass
from operator import attrgetter
from pathlib import Path

import numpy as np

from tests.bench.long_trace import LAUNCH_LINES, LongTrace
from tests.bench.open_screen import open_on_terminal
from tui_probe.trace.follow import TraceFollower, open_trace
from tui_probe.trace.log_index import LogIndex
from tui_probe.ui.live.snapshots import KernelSnapshots
from tui_probe.verdicts.kernel_snapshot import kernel_snapshot

SLICE = 8 << 20
Work = Callable[[], object]


@dataclass(frozen=True, order=True)
class Cost:
    cpu: float
    """Seconds of the processor; ``clock`` by the clock."""
    clock: float
    megabytes: float
    """The largest resident set of the process, libraries and all."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--lines", type=int, default=1_000_000)
    parser.add_argument("--kernels", type=int, default=10_000)
    parser.add_argument("--new", type=int, default=100_000)
    parser.add_argument("--launches", type=int, default=100_000)
    parser.add_argument("--index-bytes", type=int, default=1_000_000_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--measure", nargs=2, metavar=("WHAT", "PATH"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.measure:
        print(*astuple(measured(MEASURED[options.measure[0]][1](Path(options.measure[1])))))
        return
    with tempfile.TemporaryDirectory() as name:
        show(Path(name), options)


def show(root: Path, options: argparse.Namespace) -> None:
    begun = time.perf_counter()
    paths = make(root, options)
    sizes = {what: (path / "event.log" if path.is_dir() else path).stat().st_size for what, path in paths.items()}
    print(f"traces made in {time.perf_counter() - begun:.1f} s")
    best: dict[str, Cost] = {}
    for _ in range(options.rounds):
        for what, path in paths.items():
            cost = in_own_process(what, path)
            best[what] = min(cost, best.get(what, cost))
    print(f"{'':<48}{'log MB':>8}{'clock s':>9}{'CPU s':>9}{'ratio':>8}{'MB':>7}")
    for what, cost in best.items():
        label = MEASURED[what][0].format(**vars(options))
        ratio = cost.cpu / best["newlines"].cpu
        print(
            f"{label:<48}{sizes[what] / 1e6:>8.0f}{cost.clock:>9.3f}{cost.cpu:>9.3f}{ratio:>8.1f}{cost.megabytes:>7.0f}"
        )
    print(min((open_on_terminal(paths["open"], root) for _ in range(options.rounds)), key=attrgetter("table")))


def make(root: Path, options: argparse.Namespace) -> dict[str, Path]:
    """The traces, by what is measured with them. They are of this process: one that has no end yet is a live one."""
    command = Path("/proc/self/cmdline").read_bytes().replace(b"\0", b" ").decode().strip()
    long = LongTrace(root / "long", options.lines, options.kernels, os.getpid(), command)
    long.write()
    few = LongTrace(root / "few", LAUNCH_LINES * options.launches, 10, os.getpid(), command)
    few.write()
    live = root / "live"
    shutil.copytree(long.directory, live, copy_function=os.link)
    (live / "event.log").unlink()
    lines = long.log.read_bytes().splitlines(keepends=True)[:-1]
    (live / "event.log").write_bytes(b"".join(lines[: -options.new]))
    (live / "new").write_bytes(b"".join(lines[-options.new :]))
    with (root / "large.log").open("wb") as large:
        while large.tell() < options.index_bytes:
            large.write(long.log.read_bytes())
    paths = dict.fromkeys(("newlines", "open", "table", "rows"), long.directory)
    return paths | {"live": live, "launches": few.directory, "index": root / "large.log"}


def in_own_process(what: str, path: Path) -> Cost:
    command = [sys.executable, "-m", "tests.bench.open_trace", "--measure", what, str(path)]
    output = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout
    return Cost(*map(float, output.split()))


def measured(work: Work) -> Cost:
    clock, cpu = time.perf_counter(), time.process_time()
    work()
    cpu, clock = time.process_time() - cpu, time.perf_counter() - clock
    status = Path("/proc/self/status").read_text()
    return Cost(cpu, clock, int(status.partition("VmHWM:")[2].split()[0]) * 1024 / 1e6)


def find_newlines(directory: Path) -> Work:
    def work() -> int:
        count = 0
        with (directory / "event.log").open("rb") as file:
            while data := file.read(SLICE):
                count += len(np.flatnonzero(np.frombuffer(data, dtype=np.uint8) == ord("\n")))
        return count

    return work


def open_whole(directory: Path) -> Work:
    return lambda: open_trace(directory)


def open_with_first_rows(directory: Path) -> Work:
    """Make the rows of the screen's table from the log."""

    def work() -> None:
        trace = open_trace(directory)
        KernelSnapshots().update(trace, [kernel.index for kernel in trace.kernels])

    return work


def open_with_rows(directory: Path) -> Work:
    """Make the rows that the table has in the end, with values from each kernel's directory."""

    def work() -> None:
        trace = open_trace(directory)
        for kernel in trace.kernels:
            kernel_snapshot(kernel, trace.state.device)

    return work


def look_again(directory: Path) -> Work:
    """A live trace that was looked at before its last lines came."""
    log = directory / "event.log"
    size = log.stat().st_size
    follower = TraceFollower(directory)
    follower.poll()
    assert follower.trace.state.is_running
    with log.open("ab") as file:
        file.write((directory / "new").read_bytes())

    def work() -> None:
        follower.poll()
        os.truncate(log, size)

    return work


def index_lines(path: Path) -> Work:
    return lambda: LogIndex(path).refresh()


MEASURED: dict[str, tuple[str, Callable[[Path], Work]]] = {
    "newlines": ("finding the newlines of {lines} lines", find_newlines),
    "open": ("opening {lines} lines, {kernels} kernels", open_whole),
    "table": ("the same, and one row per kernel from the log", open_with_first_rows),
    "rows": ("the same, and one row per kernel from its folder", open_with_rows),
    "live": ("{new} new lines of a live trace of {kernels} kernels", look_again),
    "launches": ("opening {launches} launches of 10 kernels", open_whole),
    "index": ("index of a log of {index_bytes} bytes", index_lines),
}
"""Measurements by name: title, and the function that prepares each."""


if __name__ == "__main__":
    main()
