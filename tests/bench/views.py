"""What views cost: opening a long diff, a key at 200×50, opening a trace of many kernels.

    python -m tests.bench.views [--diff-lines 20000] [--log-lines 1000000] [--kernels 10000]

Times are the best of three, in seconds of this process (CPU) and by the clock; memory is the largest resident set.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median

from tests.trace.make import TraceWriter
from tests.ui.terminal import Terminal, on_screen
from tui_probe.render.views.diff import Diff
from tui_probe.trace.model import Trace
from tui_probe.trace.source_lines import SourceLines

ROUNDS = 3
ENTER = "\r"
PAGES = {"table": "jk", "2": "jk", "3": ".,", "6": "or", "8": "da"}
"""Pages of the screen, the kernel table first, and keys that change what each shows."""
RECORDED = Path(__file__).parents[1] / "data" / "h200" / "demo"
LAUNCH_LINES = 7
KERNEL_LINES = 6
OPEN = """
import resource, sys, time
from tui_probe.trace.model import Trace
clock, cpu = time.perf_counter(), time.process_time()
trace = Trace.open(sys.argv[1])
print(time.perf_counter() - clock, time.process_time() - cpu, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--diff-lines", type=int, default=20_000)
    parser.add_argument("--log-lines", type=int, default=1_000_000)
    parser.add_argument("--kernels", type=int, default=10_000)
    options = parser.parse_args()
    show_diff(options.diff_lines)
    with tempfile.TemporaryDirectory() as name:
        show_keys(Path(name))
    with tempfile.TemporaryDirectory() as name:
        show_trace(Path(name) / "trace", options.log_lines, options.kernels)


def best(work: Callable[[], object]) -> tuple[float, float]:
    """Clock and CPU seconds of the fastest round."""
    rounds = []
    for _ in range(ROUNDS):
        clock, cpu = time.perf_counter(), time.process_time()
        work()
        rounds.append((time.perf_counter() - clock, time.process_time() - cpu))
    return min(rounds)


def show_diff(lines: int) -> None:
    """A diff of so many probed lines, opened and drawn once at 200×50."""
    trace = Trace.open(RECORDED)
    pruned = [f"\tadd.s32 %r{i}, %r{i + 1}, {i};" for i in range(lines * 3 // 4)]
    probed = []
    for i, line in enumerate(pruned):
        probed.append(line)
        if i % 3 == 0:
            probed.append(f"\tmov.u32 %tp_{i % 7}, %clock; // tui-probe: bench")

    def work() -> None:
        diff = Diff(trace.kernels[0], pruned, probed, SourceLines({}))
        shown = diff.lines(200)
        assert all(shown[i] for i in range(5, 50))

    clock, cpu = best(work)
    print(f"diff of {len(probed)} probed lines, opened and drawn: {clock:.3f} s, CPU {cpu:.3f} s")


def show_keys(root: Path) -> None:
    """From a key to the first byte of the frame that shows it, on a pseudo-terminal of 200×50."""
    shutil.copytree(RECORDED, root / "trace")
    with Terminal(on_screen(root), (200, 50)) as terminal:
        terminal.wait("7 kernels")
        terminal.type("jjjjj")
        for page, keys in PAGES.items():
            if page != "table":
                terminal.type(f"{ENTER}{page}" if page == "2" else page)
            terminal.quiet(0.5, steady=True)
            times = [answered(terminal, key) for key in keys * 5]
            print(f"key to frame, {page}: median {1000 * median(times):.1f} ms, most {1000 * max(times):.1f} ms")


def answered(terminal: Terminal, key: str) -> float:
    """Seconds until something comes back."""
    before, clock = terminal.count, time.perf_counter()
    terminal.type(key)
    terminal.wait(lambda: len(terminal.received) > before)
    seconds = time.perf_counter() - clock
    terminal.quiet(0.15, steady=True)
    return seconds


def show_trace(directory: Path, lines: int, kernels: int) -> None:
    """A trace of so many lines and kernels, opened in a process of its own."""
    write_log(directory, lines, kernels)
    rounds = []
    for _ in range(ROUNDS):
        said = subprocess.run([sys.executable, "-c", OPEN, str(directory)], capture_output=True, text=True, check=True)
        rounds.append(tuple(map(float, said.stdout.split())))
    clock, cpu, memory = min(rounds)
    print(f"open {lines} lines, {kernels} kernels: {clock:.2f} s, CPU {cpu:.2f} s, {memory:.0f} MB")


def write_log(directory: Path, lines: int, kernels: int) -> None:
    """Kernels one after another, each launched equally often, each launch saved."""
    writer = TraceWriter(directory)
    writer.start()
    launches = max(1, (lines - KERNEL_LINES * kernels) // (LAUNCH_LINES * kernels))
    with writer.log.open("a") as log:
        for kernel in range(kernels):
            name = f"_Z9kernel_{kernel:05d}Pfi"
            log.write(
                f"[exec] funcmap-not-find {kernel + 1:#x}\n"
                f"[probe] find {kernel + 1:#x} name {name} bin 0x1 size 100\n"
                f"[probe] rename {name} {kernel}_{'a' * 40}\n"
                "[probe] engine ok probed.bin\n"
                f"[kernel] {kernel} probed registers 8 local 0 shared 0 blocks 16 name {name} reason -\n"
                f"[kernel] {kernel} probed-function registers 10 local 0 shared 0 blocks 16\n"
            )
            for number in range(kernel * launches, (kernel + 1) * launches):
                log.write(
                    f"[exec] funcmap-find {kernel + 1:#x} success\n"
                    f"[exec] {1_785_000_000_000_000_000 + 1000 * number} param 7fc573e00000 4000\n"
                    f"[exec] grid 128 1 1 block 128 1 1 shared 0 kernel {kernel} launch {number} stream 0\n"
                    "[exec] grid 128 warp  4 probe 16 total 8192\n"
                    "[exec] probe-mem 8192 (bytes)\n"
                    "[exec] succeed 0\n"
                    f"[exec] save result/{(number + 1) / 1e6:.6f}.bin size 8240 kernel {kernel} launch {number}\n"
                )
    writer.launches = kernels * launches
    writer.exit()


if __name__ == "__main__":
    main()
