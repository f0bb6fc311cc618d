"""Makes small sqlite exports of Nsight Systems."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping, Sequence
from pathlib import Path

PROCESS = 7 << 24
THREAD = PROCESS | 11
OTHER_THREAD = PROCESS | 12
KERNEL = (
    "start", "end", "deviceId", "streamId", "correlationId", "globalPid", "demangledName", "mangledName", "gridX",
    "gridY", "gridZ", "blockX", "blockY", "blockZ", "registersPerThread", "staticSharedMemory", "dynamicSharedMemory",
)  # fmt: skip
CALL = ("start", "end", "globalTid", "correlationId", "nameId")
RANGE = ("start", "end", "eventType", "globalTid", "text", "textId")
COPY = ("start", "end", "deviceId", "streamId", "globalPid")

Table = tuple[Sequence[str], Sequence[Sequence[object]]]


def kernel(start: int, end: int, call: int, *, name: int = 1, stream: int = 7, grid: int = 4) -> tuple[object, ...]:
    return (start, end, 0, stream, call, PROCESS, name, None, grid, 1, 1, 64, 1, 1, 32, 0, 1024)


def call(start: int, end: int, number: int, *, thread: int = THREAD) -> tuple[object, ...]:
    return (start, end, thread, number, 2)


def span(
    start: int, end: int | None, text: object, *, kind: int = 59, thread: int = THREAD, text_id: object = None
) -> tuple[object, ...]:
    return (start, end, kind, thread, text, text_id)


def write_export(path: Path, tables: Mapping[str, Table]) -> Path:
    """An export with these tables, and the strings 1 ``f``, 2 ``cudaLaunchKernel``, 3 ``registered``."""
    strings: Table = (("id", "value"), [(1, "f(int)"), (2, "cudaLaunchKernel"), (3, "registered"), (4, "g(int)")])
    connection = sqlite3.connect(path)
    connection.execute("PRAGMA synchronous = OFF")
    for name, (columns, rows) in {"StringIds": strings, **tables}.items():
        connection.execute(f'CREATE TABLE "{name}" ({", ".join(columns)})')
        connection.executemany(f'INSERT INTO "{name}" VALUES ({", ".join("?" * len(columns))})', rows)
    connection.commit()
    connection.close()
    return path


def tables(
    kernels: Sequence[Sequence[object]], calls: Sequence[Sequence[object]], ranges: Sequence[Sequence[object]]
) -> dict[str, Table]:
    return {
        "CUPTI_ACTIVITY_KIND_KERNEL": (KERNEL, kernels),
        "CUPTI_ACTIVITY_KIND_RUNTIME": (CALL, calls),
        "NVTX_EVENTS": (RANGE, ranges),
    }
