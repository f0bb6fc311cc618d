"""Time until the accesses of a launch are visible: from the result file to the first picture, and to a zoomed one.

    python -m tests.bench.dmat [--large] [--repeats 3]

Writes a result of 34 MB (with --large also one of 2 GB, which needs as much room in the folder for temporary files),
then measures each in a process of its own: reading the file once from end to end; the first picture of 200x50 cells,
in seconds, in seconds of processors, and as a multiple of the reading; and a picture zoomed in sixteen times, of which
accesses are counted again, exactly. Values are medians of all repeats; resident memory is the largest of any.
"""

from __future__ import annotations

import argparse
import json
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from tests.probes.dmat_files import as_bytes
from tests.trace.make import TraceWriter, shape_words
from tui_probe.probes.dmat.accesses import RECORD, WARP

SIZE = (200, 50)
THREADS, CAPACITY, SMS, RESIDENT = 256, 64, 132, 8
BLOCKS = {"34 MB": 130, "2 GB": 8000}
TENSOR = 1 << 30
BASE = 0x7F00_0000_0000
FIRST_CLOCK = 1 << 40
CELLS = (14, 9, 9, 9, 9, 10, 9)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--large", action="store_true", help="also 2 GB")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--measure", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.measure is not None:
        print(json.dumps(measure(options.measure)))
        return
    headings = ("accesses", "read s", "first s", "CPU s", "/ read", "zoomed s", "RSS MB")
    print(f"{'result':<10}" + "".join(f"{heading:>{cells}}" for heading, cells in zip(headings, CELLS, strict=True)))
    for name, blocks in BLOCKS.items():
        if name == "34 MB" or options.large:
            with tempfile.TemporaryDirectory() as folder:
                write(Path(folder) / "trace", blocks)
                show(name, [measured(Path(folder) / "trace") for _ in range(options.repeats)])


def write(directory: Path, blocks: int) -> None:
    """A trace with one launch whose blocks come in waves; each thread reads two tensors and writes a third."""
    writer = TraceWriter(directory)
    writer.start()
    folder = writer.kernel(0, "kernel")
    (folder / "kernel.info").write_text(f"kernel\n3\n3\n1,24\n0,{16 * CAPACITY}\n0,4\ncallback dmat\n")
    (folder / "pruned.ptx").write_text(".version 8.0\n.target sm_90\n.address_size 64\n")
    writer.lines(*(f"[mem] cuMemAlloc_v2 0 dptr {BASE + i * TENSOR:x} bytesize {TENSOR}" for i in range(3)))
    writer.lines(
        f"[exec] 1 param {' '.join(f'{BASE + i * TENSOR:x}' for i in range(3))}",
        f"[exec] {shape_words((blocks, 1, 1), (THREADS, 1, 1), 0)} kernel 0 launch 0 stream 0x0",
        "[exec] succeed 0",
    )
    path = directory / "result" / "1.000000.bin"
    with path.open("wb") as file:
        write_result(file.write, blocks)
    writer.lines(f"[exec] save result/{path.name} size {path.stat().st_size} kernel 0 launch 0")
    writer.exit()
    writer.run_json()


def write_result(write: object, blocks: int) -> None:
    """The file, some blocks at a time."""
    assert callable(write)
    warps, records = THREADS // 32, blocks * THREADS * CAPACITY
    first = 32 + 3 * 16
    second = first + blocks * warps * 24
    sections = [(24, 32, first), (16 * CAPACITY, 1, second), (4, 1, second + records * 16)]
    write(np.array([blocks, 1, 1, THREADS, 1, 1, 0, 3], dtype="<u4").tobytes())
    for size, divisor, offset in sections:
        write(np.array([size, divisor], dtype="<u4").tobytes() + np.array([offset], dtype="<u8").tobytes())
    every = np.arange(blocks)
    entries = FIRST_CLOCK + every // (SMS * RESIDENT) * 40_000
    begun = np.zeros((blocks, warps, 1), dtype=WARP)
    begun["start"], begun["sm"] = entries[:, None, None] + np.arange(warps)[:, None] * 10, every[:, None, None] % SMS
    begun["time"] = 10**18 + every[:, None, None] // (SMS * RESIDENT) * 22_000
    write(as_bytes(begun).tobytes())
    thread, record = np.arange(THREADS)[:, None], np.arange(CAPACITY)
    for at in range(0, blocks, 64):
        some = every[at : at + 64, None, None]
        made = np.zeros((len(some), THREADS, CAPACITY), dtype=RECORD)
        place = (some * THREADS + thread) * 4 + record // 3 * (4 << 16)
        made["address"] = BASE + record % 3 * TENSOR + place % (TENSOR // 4)
        made["clock"] = (entries[at : at + 64, None, None] + 100 + record * 600 + thread // 32 * 10) & 0xFFFFFFFF
        made["line"] = 10 + record % 3
        write(made.tobytes())
    write(np.full((blocks, THREADS), CAPACITY, dtype="<u4").tobytes())


def measured(directory: Path) -> dict[str, float]:
    """Measurements of a fresh process."""
    command = [sys.executable, "-m", "tests.bench.dmat", "--measure", str(directory)]
    output = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    found: dict[str, float] = json.loads(output)
    return found


def measure(directory: Path) -> dict[str, float]:
    """Seconds of reading the file, of the first picture, of a zoomed one; accesses; the largest resident memory."""
    from tui_probe.draw.view import no_progress
    from tui_probe.probekit.page_kinds import ViewSource
    from tui_probe.probes.dmat import DMAT
    from tui_probe.probes.dmat.view import Dmat
    from tui_probe.trace.follow import open_trace

    read = seconds_to_read(next((directory / "result").iterdir()))
    trace = open_trace(directory)
    started, busy = time.perf_counter(), time.process_time()
    view = DMAT.open(ViewSource(trace, trace.kernels[0]), no_progress)
    assert isinstance(view, Dmat)
    work = view.prepare(*SIZE)
    if view.frame is None and work is not None:
        work()
    view.draw(*SIZE)
    first, busy = time.perf_counter() - started, time.process_time() - busy
    for _ in range(4):
        view.press("zoom_in")
    started = time.perf_counter()
    work = view.prepare(*SIZE)
    if work is not None:
        work()
    view.draw(*SIZE)
    return {
        "accesses": view.map.survey.record_count,
        "read": read,
        "first": first,
        "busy": busy,
        "zoomed": time.perf_counter() - started,
        "resident": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1000,
    }


def seconds_to_read(path: Path) -> float:
    """Reading a file once, in pieces that fit a cache."""
    piece = bytearray(1 << 20)
    started = time.perf_counter()
    with path.open("rb", buffering=0) as file:
        while file.readinto(piece):
            pass
    return time.perf_counter() - started


def show(name: str, runs: list[dict[str, float]]) -> None:
    """One line of the table."""
    medians = {key: statistics.median(run[key] for run in runs) for key in runs[0]}
    cells_of_row = (
        f"{medians['accesses']:,.0f}",
        *(f"{medians[key]:.3f}" for key in ("read", "first", "busy")),
        f"{medians['first'] / medians['read']:.1f}",
        f"{medians['zoomed']:.3f}",
        f"{max(run['resident'] for run in runs):.0f}",
    )
    print(f"{name:<10}" + "".join(f"{text:>{cells}}" for text, cells in zip(cells_of_row, CELLS, strict=True)))


if __name__ == "__main__":
    main()
