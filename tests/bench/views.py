"""Cost of views: opening a long diff and a long text with measured lines, a key and opened pages at 200×50.

    python -m tests.bench.views [--diff-lines 20000]

Times of the long texts are the best of three, in seconds of this process (CPU) and by the clock.
"""

from __future__ import annotations

import argparse
import shutil
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from statistics import median

from tests.bench.screen_start import cpu_seconds
from tests.ui.desk import TestDesk
from tests.ui.terminal import Terminal, on_screen
from tui_probe.draw.view import Document
from tui_probe.pages.code.line_measures import LineMeasures
from tui_probe.pages.code.measure_column import MeasureColumn
from tui_probe.pages.views.diff import DiffView
from tui_probe.pages.views.ptx import PtxView
from tui_probe.probekit.lines import LineMeasure
from tui_probe.probekit.measured import UNKNOWN_PROBE
from tui_probe.probekit.probe_results import ProbeResult
from tui_probe.probekit.shown_results import JoinedResult
from tui_probe.trace.follow import open_trace
from tui_probe.trace.source_lines import SourceLines
from tui_probe.ui.views.document_view import DocumentView

ROUNDS = 3
ENTER = "\r"
PAGES = {"table": "jk", "3": "jk", "4": ".,", "8": "or", "7": "da"}
"""Pages of the screen, the kernel table first, and keys that change what each shows."""
OPENING = {"kernel": (ENTER, "q"), "page 7": ("7", "3"), "page 2": ("2", "3"), "keys": ("?", "q")}
"""By what a key opens: this key, and the key that leads back."""
SHOWN = {"3": "probed.ptx", "4": "changes", "8": "probe mem"}
"""Text that shows that a page is open."""
READING: dict[str, Callable[[DocumentView], object]] = {
    "j": lambda view: view.move(1),
    ".": lambda view: view.command("next"),
    "v": lambda view: view.command("level"),
    "G": lambda view: view.move_to(-1),
}
RECORDED = Path(__file__).parents[1] / "data" / "h200" / "demo"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--diff-lines", type=int, default=20_000)
    options = parser.parse_args()
    show_texts(options.diff_lines)
    with tempfile.TemporaryDirectory() as name:
        show_keys(Path(name))
    with tempfile.TemporaryDirectory() as name:
        show_openings(Path(name))


def best(work: Callable[[], object]) -> tuple[float, float]:
    """Clock and CPU seconds of the fastest round."""
    rounds = []
    for _ in range(ROUNDS):
        clock, cpu = time.perf_counter(), time.process_time()
        work()
        rounds.append((time.perf_counter() - clock, time.process_time() - cpu))
    return min(rounds)


def show_texts(lines: int) -> None:
    """A diff and a text of that many probed lines, a fifth of them measured: opened and drawn once, then keys."""
    kernel = open_trace(RECORDED).kernels[0]
    pruned = [f"\tadd.s32 %r{i}, %r{i + 1}, {i};" for i in range(lines * 3 // 4)]
    probed = []
    for i, line in enumerate(pruned):
        probed.append(line)
        if i % 3 == 0:
            probed.append(f"\tmov.u32 %tp_{i % 7}, %clock; // tui-probe: bench")
    result = ProbeResult(
        kernel.by_probe()[0], None, "bench", kernel.read_result_file(next(RECORDED.glob("result/*.bin")))
    )
    cycles = {line: line * 7 % 1000 for line in range(1, len(pruned), 4)}
    measures = LineMeasures(JoinedResult(UNKNOWN_PROBE, (result,)), (MeasureColumn(LineMeasure("cycles"), cycles),))

    def diff() -> DocumentView:
        return opened(DiffView(kernel, pruned, probed, SourceLines({}), measures))

    def text() -> DocumentView:
        return opened(PtxView("bench", {"probed": probed, "pruned": pruned}, None, measures))

    for name, make in (("diff", diff), ("PTX", text)):
        clock, cpu = best(make)
        print(f"{name} of {len(probed)} probed lines, opened and drawn: {clock:.3f} s, CPU {cpu:.3f} s")
        view = make()
        for key, press in READING.items():
            clock, _ = best(partial(redrawn, view, press))
            print(f"  key {key}: {1000 * clock:.1f} ms")


def opened(document: Document) -> DocumentView:
    """A document in a window of 200×50, drawn once."""
    view = DocumentView(TestDesk(), "bench", document, None)
    view.resize(200, 50)
    redrawn(view, DocumentView.request_redraw)
    return view


def redrawn(view: DocumentView, press: Callable[[DocumentView], object]) -> None:
    """Do the work of the screen at a key."""
    press(view)
    assert view.draw(200, 50)
    assert view.status()
    view.commands()


def show_keys(root: Path) -> None:
    """From a key to the first byte of the frame that shows it, on a pseudo-terminal of 200×50."""
    shutil.copytree(RECORDED, root / "trace")
    with Terminal(on_screen(root), (200, 50)) as terminal:
        terminal.wait("7 kernels")
        terminal.type("jjjjj")
        for page, keys in PAGES.items():
            if page != "table":
                terminal.type(f"{ENTER}{page}" if page == "3" else page)
            terminal.wait(SHOWN.get(page, ""))
            terminal.quiet(0.5, steady=True)
            times, cpu = zip(*(answered(terminal, key) for key in keys * 5), strict=True)
            print(
                f"key to frame, {page}: median {1000 * median(times):.1f} ms, most {1000 * max(times):.1f} ms;"
                f" CPU median {1000 * median(cpu):.1f} ms"
            )


def show_openings(root: Path) -> None:
    """From a key to the first byte of what it opens, on a pseudo-terminal of 200×50; each was open before."""
    shutil.copytree(RECORDED, root / "trace")
    with Terminal(on_screen(root), (200, 50)) as terminal:
        terminal.wait("7 kernels")
        terminal.type("jjjjj")
        for name, (key, back) in OPENING.items():
            if name == "page 7":
                terminal.type(f"{ENTER}3")
            terminal.quiet(0.5, steady=True)
            rounds = []
            for _ in range(10):
                before = cpu_seconds(terminal.pid)
                rounds.append((*answered(terminal, key), cpu_seconds(terminal.pid) - before))
                answered(terminal, back)
            times, cpu, total = zip(*rounds[1:], strict=True)
            print(
                f"key to frame, {name} opens: median {1000 * median(times):.1f} ms, most {1000 * max(times):.1f} ms;"
                f" CPU median {1000 * median(cpu):.1f} ms, until nothing more is drawn {1000 * median(total):.1f} ms"
            )


def answered(terminal: Terminal, key: str) -> tuple[float, float]:
    """Seconds until something comes back, by the clock and of the screen's CPU time."""
    before, clock, cpu = terminal.count, time.perf_counter(), cpu_seconds(terminal.pid)
    terminal.type(key)
    terminal.wait(lambda: len(terminal.received) > before)
    seconds, cpu = time.perf_counter() - clock, cpu_seconds(terminal.pid) - cpu
    terminal.quiet(0.15, steady=True)
    return seconds, cpu


if __name__ == "__main__":
    main()
