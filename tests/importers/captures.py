"""Random captures of several processes, GPUs, contexts and streams, and their files, with rows in any order."""

from __future__ import annotations

import csv
import gzip
import json
import random
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

from tests.importers.export import RANGE, write_export

NAMES = ("add(int)", "void mul<float>(float *)", "copy_if")
TEXTS = ("step", "forward", "inner", "")
CAPTURE_END = 5000
Row = TypeVar("Row")


@dataclass(frozen=True)
class Operation:
    """A kernel, a copy or an execution of a whole graph on a stream. ``gpu`` is its number in the machine."""

    kind: str
    name: str
    process: int
    gpu: int
    cuda_device: int
    context: int
    stream: int
    start: int
    end: int
    correlation: int
    blocks: int = 1
    graph: int = 0

    @property
    def place(self) -> tuple[int, int, int, int]:
        return self.process, self.gpu, self.context, self.stream


@dataclass(frozen=True)
class Call:
    """A call of the CUDA API on a thread of a process."""

    process: int
    thread: int
    start: int
    end: int
    correlation: int


@dataclass(frozen=True)
class Span:
    """An NVTX range; None is a range that the end of the capture cut off."""

    text: str
    process: int
    thread: int
    start: int
    end: int | None

    @property
    def last(self) -> int:
        return CAPTURE_END if self.end is None else self.end


@dataclass
class Capture:
    """Events of a program, as nsys has them. ``shift`` is the number of the GPU that each process calls device 0."""

    operations: list[Operation] = field(default_factory=list)
    calls: list[Call] = field(default_factory=list)
    spans: list[Span] = field(default_factory=list)
    shift: dict[int, int] = field(default_factory=dict)

    @property
    def work(self) -> list[Operation]:
        """Kernels and graph executions, by start."""
        ties = [operation for operation in self.operations if operation.kind != "copy"]
        return sorted(ties, key=lambda each: (each.start, each.end, each.place, each.correlation))


def random_capture(seed: int) -> Capture:
    """A capture with at most a few dozen operations; the same for a seed."""
    pick = random.Random(seed)
    capture = Capture()
    for process in pick.sample((100, 200, 300), pick.randint(1, 3)):
        capture.shift[process] = pick.randint(0, 2)
        for thread in range(1, pick.randint(2, 3)):
            _add_thread(capture, pick, process, thread)
    return capture


def _add_thread(capture: Capture, pick: random.Random, process: int, thread: int) -> None:
    """Calls of one thread, one after another, what they launch, and ranges around them."""
    time, numbers = pick.randint(0, 50), iter(range(1000 * thread, 1000 * thread + 999))
    free: dict[tuple[int, int, int], int] = {}
    for correlation in [next(numbers) for _ in range(pick.randint(0, 12))]:
        begin = time + pick.randint(1, 40)
        time = begin + pick.randint(1, 30)
        if pick.random() < 0.9:
            capture.calls.append(Call(process, thread, begin, time, correlation))
        cuda_device, context, stream = pick.randint(0, 1), pick.randint(1, 2), pick.choice((7, 13))
        start = max(begin + pick.randint(0, 200), free.get((cuda_device, context, stream), 0))
        end = start + pick.randint(0, 100)
        free[cuda_device, context, stream] = end + pick.randint(0, 2)
        kind, graph = pick.choice(("kernel", "kernel", "copy", "graph")), pick.randint(1, 2)
        name = pick.choice(NAMES)
        gpu = cuda_device + capture.shift[process]
        capture.operations.append(
            Operation(kind, name, process, gpu, cuda_device, context, stream, start, end, correlation, graph, graph)
        )
    for _ in range(pick.randint(0, 6)):
        begin = pick.randint(0, time)
        last = None if pick.random() < 0.1 else begin + pick.randint(0, time)
        capture.spans.append(Span(pick.choice(TEXTS), process, thread, begin, last))


def process_number(process: int) -> int:
    """As nsys numbers processes: that of the machine, then the id, then 24 bits for the thread."""
    return 1 << 48 | process << 24


OPERATION = ("start", "end", "deviceId", "contextId", "streamId", "correlationId", "globalPid")


def sqlite_of(capture: Capture, path: Path, seed: int = 0) -> Path:
    """The capture as an export, its rows shuffled."""
    pick = random.Random(seed)
    texts = {text: number for number, text in enumerate((*NAMES, *TEXTS), 1)}

    def rows(kind: str) -> list[tuple[object, ...]]:
        found: list[tuple[object, ...]] = []
        for operation in capture.operations:
            where = (
                operation.cuda_device,
                operation.context,
                operation.stream,
                operation.correlation,
                process_number(operation.process),
            )
            more = {
                "kernel": (texts[operation.name], None, operation.blocks, 1, 1, 32, 1, 1, 16, 0, 64),
                "graph": (operation.graph, operation.graph + 100),
                "copy": (),
            }[kind]
            found += [(operation.start, operation.end, *where, *more)] if operation.kind == kind else []
        return shuffled(found, pick)

    of_kernels = ("demangledName", "mangledName", "gridX", "gridY", "gridZ", "blockX", "blockY", "blockZ",
                  "registersPerThread", "staticSharedMemory", "dynamicSharedMemory")  # fmt: skip
    calls = [(call.start, call.end, process_number(call.process) | call.thread, call.correlation, 0)
             for call in capture.calls]  # fmt: skip
    spans = [(span.start, span.end, 59, process_number(span.process) | span.thread, None, texts[span.text])
             for span in capture.spans]  # fmt: skip
    seen = [(gpu + capture.shift[process], gpu, process) for process in capture.shift for gpu in (0, 1)]
    tables = {
        "CUPTI_ACTIVITY_KIND_KERNEL": ((*OPERATION, *of_kernels), rows("kernel")),
        "CUPTI_ACTIVITY_KIND_GRAPH_TRACE": ((*OPERATION, "graphId", "graphExecId"), rows("graph")),
        "CUPTI_ACTIVITY_KIND_MEMCPY": (OPERATION, rows("copy")),
        "CUPTI_ACTIVITY_KIND_RUNTIME": (
            ("start", "end", "globalTid", "correlationId", "nameId"),
            shuffled(calls, pick),
        ),
        "NVTX_EVENTS": (RANGE, shuffled(spans, pick)),
        "TARGET_INFO_CUDA_DEVICE": (("gpuId", "cudaId", "pid"), shuffled(seen, pick)),
        "TARGET_INFO_GPU": (("id", "name", "smCount"), [(gpu, "GPU", 100) for gpu in range(4)]),
        "ANALYSIS_DETAILS": (("duration",), [(CAPTURE_END,)]),
    }
    there = {name: table for name, table in tables.items() if table[1]}
    return write_export(
        path, {"StringIds": (("id", "value"), [(number, text) for text, number in texts.items()]), **there}
    )


def csv_of(capture: Capture, path: Path, seed: int = 0) -> Path:
    """The kernels and copies as a report of nsys stats, its rows shuffled. Processes are not in it."""
    pick = random.Random(seed)
    headings = ("Start (ns)", "Duration (ns)", "CorrId", "GrdX", "GrdY", "GrdZ", "BlkX", "BlkY", "BlkZ", "Reg/Trd",
                "StcSMem (MB)", "DymSMem (MB)", "Bytes (MB)", "Device", "Ctx", "Strm", "Name")  # fmt: skip
    rows = []
    for operation in capture.operations:
        shape = (operation.blocks, 1, 1, 32, 1, 1, 16, 0, 0, "") if operation.kind == "kernel" else ("",) * 9 + (1,)
        if operation.kind != "graph":
            rows.append((operation.start, operation.end - operation.start, operation.correlation,
                         *shape, f"GPU ({operation.gpu})", operation.context,
                         operation.stream, operation.name))  # fmt: skip
    with path.open("w", newline="") as file:
        csv.writer(file).writerows([headings, *shuffled(rows, pick)])
    return path


def chrome_of(capture: Capture, process: int, path: Path, seed: int = 0, shown: int | None = None) -> Path:
    """One process as PyTorch's profiler writes it, its events shuffled; packed if the name says so.

    ``shown`` is the id of the process in the file, which several files may share.
    """
    shown = process if shown is None else shown
    pick = random.Random(seed)
    events: list[dict[str, object]] = []

    def add(category: str, name: str, start: int, end: int, pid: object, tid: object, **details: object) -> None:
        times = {"ts": start / 1000, "dur": (end - start) / 1000}
        events.append({"ph": "X", "cat": category, "name": name, "pid": pid, "tid": tid, **times, "args": details})

    for operation in capture.operations:
        where = {
            "device": operation.gpu,
            "context": operation.context,
            "stream": operation.stream,
            "correlation": operation.correlation,
        }
        shape = {"grid": [operation.blocks, 1, 1], "block": [32, 1, 1], "registers per thread": 16, "shared memory": 64}
        if operation.process == process and operation.kind != "graph":
            category, more = ("kernel", shape) if operation.kind == "kernel" else ("gpu_memcpy", {})
            add(
                category,
                operation.name,
                operation.start,
                operation.end,
                operation.gpu,
                operation.stream,
                **where,
                **more,
            )
    for call in capture.calls:
        if call.process == process:
            add(
                "cuda_runtime",
                "cudaLaunchKernel",
                call.start,
                call.end,
                shown,
                call.thread,
                correlation=call.correlation,
            )
    for span in capture.spans:
        if span.process == process and span.end is not None:
            category = pick.choice(("cpu_op", "user_annotation"))
            add(category, span.text, span.start, span.end, shown, span.thread)
    add("python_function", "threading.py(973): run", 0, 9, shown, 1)
    devices = [{"id": gpu, "name": "GPU", "numSms": 100} for gpu in range(4)]
    document = {"deviceProperties": devices, "traceEvents": shuffled(events, pick), "baseTimeNanoseconds": 7}
    text = json.dumps(document, indent=pick.choice((None, 2))).encode()
    path.write_bytes(gzip.compress(text) if path.suffix == ".gz" else text)
    return path


def shuffled(rows: list[Row], pick: random.Random) -> list[Row]:
    return pick.sample(rows, len(rows))
