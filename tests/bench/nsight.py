"""Time and memory to import profiles, as ratios to reading the same rows with ``sqlite3`` or ``json``.

    python -m tests.bench.nsight [KERNELS]

The sqlite file has about 130 bytes per kernel, a Chrome trace of a quarter of the kernels as much in all: kernels, the
calls that launched them, and ranges. Times are processor seconds of a process of its own, without the start of Python.

An export of 1 000 000 kernels, 116 MB, times the 2.9 s of sqlite3, and most memory in MB, on two quiet cores:

    page      text        CSV, all rows
    totals    2.0  211
    ranges    2.2  212    2.6  212
    gaps      2.1  268    2.9  266
    kernels   2.2  212    3.3  211

Reading takes 1.9 times as long and 201 MB. Text has the first 10 000 rows.

Chrome traces of this layout, most memory in MiB (3 060 000 kernels are 2.0 GB; sums and timeline of these from rows
filled in without the JSON, whose page of totals needs 388):

    kernels    file      reading  totals  sums  timeline
    1 150 000   759 MB       164     207
    3 060 000  2030 MB               384   473       495
"""

from __future__ import annotations

import json
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from tests.importers.captures import process_number
from tests.importers.export import CALL, RANGE

KERNEL = (
    "start", "end", "deviceId", "contextId", "greenContextId", "streamId", "correlationId", "globalPid",
    "demangledName", "shortName", "mangledName", "launchType", "registersPerThread", "gridX", "gridY", "gridZ",
    "blockX", "blockY", "blockZ", "staticSharedMemory", "dynamicSharedMemory", "localMemoryPerThread", "gridId",
    "localMemoryTotal", "sharedMemoryExecuted", "sharedMemoryLimitConfig",
)  # fmt: skip
READ = {
    "CUPTI_ACTIVITY_KIND_KERNEL": (
        "start, end, deviceId, contextId, streamId, correlationId, globalPid, demangledName, mangledName,"
        " registersPerThread, gridX, gridY, gridZ, blockX, blockY, blockZ, staticSharedMemory, dynamicSharedMemory"
    ),
    "CUPTI_ACTIVITY_KIND_RUNTIME": "start, end, globalTid, correlationId",
    "NVTX_EVENTS": "start, end, eventType, globalTid, text, textId",
}
NAMES = 40
PID = 9946
FIRST = 18_000_000_000_000
"""Ns before the first call: the clock of a machine that is up for some hours."""
PER_RANGE = 20
"""Kernels in a range; a step has ten of these."""
MEASURED = """
import json, resource, sys, time
from pathlib import Path
began = time.process_time()
{work}
used = time.process_time() - began
print(json.dumps([used, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024]))
"""
BASELINE = """
import sqlite3
connection = sqlite3.connect({path!r})
for table, columns in {read!r}.items():
    for row in connection.execute(f"SELECT {{columns}} FROM {{table}}"):
        pass
"""
READING = """
from tui_probe.nsight.importers.nsys import read_nsys
report = read_nsys([{path!r}])
"""
PAGE = """
sys.stdout, shown = open("/dev/null", "w"), sys.stdout
from tui_probe.cli.main import main
main(["import", "nsys", {path!r}, "--page", {page!r}, "--format", {form!r}])
sys.stdout = shown
"""


def main() -> None:
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "profile.sqlite"
        write_profile(path, count)
        size = path.stat().st_size
        print(f"{count:,} kernels, {size / 1e6:.0f} MB")
        base, memory = measured(BASELINE.format(path=str(path), read=READ))
        print(f"{'sqlite3 alone':28} {base:7.2f} s {memory:6.0f} MB")
        show("reading", measured(READING.format(path=str(path))), base)
        show("page totals", measured(PAGE.format(path=str(path), page="totals", form="table")), base)
        for page in ("ranges", "gaps", "kernels"):
            show(f"page {page}", measured(PAGE.format(path=str(path), page=page, form="table")), base)
            show(f"page {page}, CSV", measured(PAGE.format(path=str(path), page=page, form="csv")), base)
        path = path.with_name("trace.json")
        write_chrome(path, count // 4)
        print(f"{count // 4:,} kernels, {path.stat().st_size / 1e6:.0f} MB")
        base, memory = measured(f"import json; json.load(open({str(path)!r}))")
        print(f"{'json alone':28} {base:7.2f} s {memory:6.0f} MB")
        show("reading", measured(READING.format(path=str(path))), base)
        for page in ("totals", "sums", "timeline"):
            show(f"page {page}", measured(PAGE.format(path=str(path), page=page, form="table")), base)


def show(what: str, measured: tuple[float, float], base: float) -> None:
    used, memory = measured
    print(f"{what:28} {used:7.2f} s {memory:6.0f} MB {used / base:6.1f} x the time")


def measured(work: str) -> tuple[float, float]:
    """Processor seconds and most memory in MB."""
    code = MEASURED.format(work=work)
    answer = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    used, memory = json.loads(answer.stdout.splitlines()[-1])
    return float(used), float(memory)


def write_profile(path: Path, count: int) -> None:
    """An export of ``count`` kernels on four streams of one process."""
    connection = sqlite3.connect(path)
    connection.execute("PRAGMA synchronous = OFF")
    strings = [(1 + i, f"void kernel_{i}<float, {i}>(float *, int)") for i in range(NAMES)]
    tables = {
        "StringIds": (("id", "value"), iter(strings)),
        "CUPTI_ACTIVITY_KIND_KERNEL": (KERNEL, kernels(count)),
        "CUPTI_ACTIVITY_KIND_RUNTIME": (CALL, calls(count)),
        "NVTX_EVENTS": (RANGE, ranges(count)),
        "TARGET_INFO_GPU": (("id", "name", "smCount"), iter([(0, "GPU", 132)])),
    }
    for name, (columns, rows) in tables.items():
        connection.execute(f'CREATE TABLE "{name}" ({", ".join(f"{column} INTEGER" for column in columns)})')
        connection.executemany(f'INSERT INTO "{name}" VALUES ({", ".join("?" * len(columns))})', rows)
    connection.commit()
    connection.close()


def kernels(count: int) -> Iterator[tuple[object, ...]]:
    for i in range(count):
        start = FIRST + 10_000 + 2_500 * i + i % 7
        name, grid = 1 + i % NAMES, 1 + i % 64
        shape = (32, grid, 1, 1, 256, 1, 1)
        memory = (0, 49_152, 0, i, 157_286_400, 102_400, 0)
        where = (0, 1, None, 7 + i % 4, 1 + i, process_number(PID))
        yield start, start + 1_000 + i % 911, *where, name, name, name, 0, *shape, *memory


def calls(count: int) -> Iterator[tuple[object, ...]]:
    for i in range(count):
        start = FIRST + 2_500 * i
        yield start, start + 2_000, process_number(PID) | 11, 1 + i, 3


def ranges(count: int) -> Iterator[tuple[object, ...]]:
    for i in range(0, count, PER_RANGE):
        start, thread = FIRST + 2_500 * i, process_number(PID) | 11
        yield start, start + 2_500 * PER_RANGE, 59, thread, f"layer {i // PER_RANGE % 10}", None
        if i % (10 * PER_RANGE) == 0:
            yield start, start + 25_000 * PER_RANGE, 59, thread, "step", None


def write_chrome(path: Path, count: int) -> None:
    """A Chrome trace of ``count`` kernels, with a call and an operator each."""
    with path.open("w") as file:
        file.write('{"schemaVersion": 1, "traceEvents": [\n')
        for i in range(count):
            start, name = 1_000_000 + 2.5 * i, f"void kernel_{i % NAMES}<float, {i % NAMES}>(float *, int)"
            details = {"External id": i, "device": 0, "context": 1, "stream": 7, "correlation": i, "grid": [64, 1, 1],
                       "block": [256, 1, 1], "registers per thread": 32, "shared memory": 0}  # fmt: skip
            for category, what, more in (
                ("cpu_op", "aten::mul", {"External id": i, "Sequence number": i}),
                ("cuda_runtime", "cudaLaunchKernel", {"External id": i, "cbid": 211, "correlation": i}),
                ("kernel", name, details),
            ):
                times = {"ts": start, "dur": 1.9 if category == "kernel" else 0.25}
                event = {"ph": "X", "cat": category, "name": what, "pid": 9, "tid": 9, **times, "args": more}
                file.write(json.dumps(event) + ",\n")
        file.write('{"ph": "M", "name": "end"}], "baseTimeNanoseconds": 1764000000000000000}\n')


if __name__ == "__main__":
    main()
