"""What views cost: opening a long diff, a key at 200×50.

    python -m tests.bench.views [--diff-lines 20000]

Times of the diff are the best of three, in seconds of this process (CPU) and by the clock.
"""

from __future__ import annotations

import argparse
import shutil
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median

from tests.ui.terminal import Terminal, on_screen
from tui_probe.render.views.diff import Diff
from tui_probe.trace.follow import open_trace
from tui_probe.trace.source_lines import SourceLines

ROUNDS = 3
ENTER = "\r"
PAGES = {"table": "jk", "2": "jk", "3": ".,", "6": "or", "8": "da"}
"""Pages of the screen, the kernel table first, and keys that change what each shows."""
RECORDED = Path(__file__).parents[1] / "data" / "h200" / "demo"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--diff-lines", type=int, default=20_000)
    options = parser.parse_args()
    show_diff(options.diff_lines)
    with tempfile.TemporaryDirectory() as name:
        show_keys(Path(name))


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
    trace = open_trace(RECORDED)
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


if __name__ == "__main__":
    main()
