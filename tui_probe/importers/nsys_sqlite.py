"""Reads an sqlite export of Nsight Systems. Tables without rows are absent from one; what is missing is told.

CUPTI_ACTIVITY_KIND_KERNEL   kernels; names are numbers of ``StringIds``
CUPTI_ACTIVITY_KIND_RUNTIME  calls of the CUDA API; a kernel's has its ``correlationId``, in the same process
NVTX_EVENTS                  type 59 is push/pop, 60 start/end; the text is in ``text`` or ``textId``
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np

from tui_probe.errors import ImportFileError
from tui_probe.importers.nsys_model import UNKNOWN, Copies, Device, HostRanges, Kernels, NsysReport, no_copies
from tui_probe.importers.sqlite_tables import Tables, open_tables

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from numpy.typing import NDArray

_KERNELS: Final = "CUPTI_ACTIVITY_KIND_KERNEL"
_CALLS: Final = "CUPTI_ACTIVITY_KIND_RUNTIME"
_RANGES: Final = "NVTX_EVENTS"
_COPIES: Final = ("CUPTI_ACTIVITY_KIND_MEMCPY", "CUPTI_ACTIVITY_KIND_MEMSET")
_READ: Final = ("StringIds", _KERNELS, _CALLS, *_COPIES, _RANGES)
"""The tables that may be long."""
_PROCESS: Final = ~0xFFFFFF
"""What is left of a thread's id is its process' id."""
_RANGE_TYPES: Final = (59, 60)
_SHAPE: Final = ("gridX", "gridY", "gridZ", "blockX", "blockY", "blockZ")
_KERNEL_COLUMNS: Final[dict[str, object]] = {
    "start": ..., "end": ..., "deviceId": 0, "streamId": ..., "correlationId": UNKNOWN, "globalPid": UNKNOWN,
    "demangledName": ..., "mangledName": UNKNOWN, "registersPerThread": UNKNOWN, "staticSharedMemory": 0,
    "dynamicSharedMemory": 0,
}  # fmt: skip
"""Columns and what stands for a missing one; ``...`` has to be there."""
_MARKS: Final = ("META_DATA_EXPORT", "StringIds", "TARGET_INFO_SESSION_START_TIME")
"""Tables of which every export has one."""
_LATEST: Final = 1 << 62
"""Ns from which on a time is none: 146 years, and half of what a column holds, so that no difference overflows."""


def read_sqlite(path: Path, progress: Callable[[float], object] = lambda _: None) -> NsysReport:
    """One export; ImportFileError if it is none, or holds neither kernels nor ranges."""
    with open_tables(path, progress) as tables:
        if not tables.names & {_KERNELS, _RANGES, *_MARKS}:
            raise ImportFileError(f"{path}: an sqlite file, but no export of Nsight Systems: it has none of its tables")
        tables.expect(_READ)
        strings = _Strings(tables)
        kernels, impossible = _kernels(tables, strings)
        ranges = _ranges(tables, strings)
        if not len(kernels) and not len(ranges):
            raise ImportFileError(
                f"{path}: no kernels and no NVTX ranges were recorded: profile with nsys profile --trace=cuda,nvtx"
            )
        notes = tuple(_notes(tables, kernels, ranges, impossible))
        return NsysReport((str(path),), kernels, _copies(tables), ranges, (), _devices(tables), (), notes)


class _Strings:
    """Texts by their numbers in the export, and by ours."""

    def __init__(self, tables: Tables) -> None:
        rows = tables.rows("StringIds", {"id": ..., "value": ...})
        self._texts = {number: str(text) for number, text in rows}
        self.names: list[str] = []
        self._codes: dict[str, int] = {}

    def code(self, text: str) -> int:
        """The number of a text in ``names``."""
        code = self._codes.setdefault(text, len(self.names))
        if code == len(self.names):
            self.names.append(text)
        return code

    def codes(self, numbers: NDArray[np.int64]) -> NDArray[np.int64]:
        """Our numbers for those of the export; -1 stays -1."""
        distinct, inverse = np.unique(numbers, return_inverse=True)
        ours = [UNKNOWN if number == UNKNOWN else self.code(self.text(number)) for number in distinct.tolist()]
        return np.array(ours, dtype=np.int64)[inverse] if len(ours) else numbers

    def text(self, number: int) -> str:
        return self._texts.get(number, f"string {number}")


def _possible(rows: Mapping[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
    """The rows whose times can be: none beyond what a clock shows, no end before its start."""
    start, end = rows["start"], rows["end"]
    kept = (start > -_LATEST) & (start <= end) & (end < _LATEST)
    return {name: column[kept] for name, column in rows.items()}


def _kernels(tables: Tables, strings: _Strings) -> tuple[Kernels, int]:
    """The kernels, and how many were left out since their times cannot be."""
    wanted = {**_KERNEL_COLUMNS, **dict.fromkeys(_SHAPE, UNKNOWN)}
    found = tables.integers(_KERNELS, wanted, order="start")
    rows = _possible(found)
    thread, start, end = _calls(tables, rows)
    shape = np.stack([rows[name] for name in _SHAPE], axis=1)
    kernels = Kernels(
        names=strings.names,
        start=rows["start"],
        end=rows["end"],
        device=rows["deviceId"],
        stream=rows["streamId"],
        process=rows["globalPid"],
        name=strings.codes(rows["demangledName"]),
        mangled=strings.codes(rows["mangledName"]),
        shape=np.where(shape > 0, shape, UNKNOWN),
        registers=rows["registersPerThread"],
        shared=rows["staticSharedMemory"] + rows["dynamicSharedMemory"],
        thread=thread,
        launch_start=start,
        launch_end=end,
    )
    return kernels, len(found["start"]) - len(kernels)


def _calls(tables: Tables, kernels: Mapping[str, NDArray[Any]]) -> tuple[NDArray[np.int64], ...]:
    """Thread, start and end of the call that launched each kernel; -1 where it was not recorded."""
    wanted: dict[str, object] = {"globalTid": UNKNOWN, "start": ..., "end": ..., "correlationId": UNKNOWN}
    calls = _possible(tables.integers(_CALLS, wanted, order="start"))
    rows = _first_rows(
        (calls["globalTid"] & _PROCESS, calls["correlationId"]),
        (kernels["globalPid"] & _PROCESS, kernels["correlationId"]),
    )
    found = rows >= 0
    columns = []
    for name in ("globalTid", "start", "end"):
        column = np.full(len(rows), UNKNOWN, dtype=np.int64)
        column[found] = calls[name][rows[found]]
        columns.append(column)
    return tuple(columns)


def _first_rows(
    table: tuple[NDArray[np.int64], NDArray[np.int64]], wanted: tuple[NDArray[np.int64], NDArray[np.int64]]
) -> NDArray[np.int64]:
    """For each wanted pair the first row of the table that holds it, -1 if none does."""
    size = len(table[0])
    codes = np.zeros(size + len(wanted[0]), dtype=np.int64)
    for there, looked_for in zip(table, wanted, strict=True):
        distinct, inverse = np.unique(np.concatenate((there, looked_for)), return_inverse=True)
        codes = codes * len(distinct) + inverse.reshape(-1)
    order = np.argsort(codes[:size], kind="stable")
    places = np.searchsorted(codes[:size][order], codes[size:])
    rows = np.append(order, UNKNOWN)[places]
    return np.where((rows >= 0) & (codes[rows] == codes[size:]), rows, UNKNOWN)


def _copies(tables: Tables) -> Copies:
    wanted = {"start": ..., "end": ..., "deviceId": 0, "streamId": ...}
    parts = [_possible(tables.integers(name, wanted, order="start")) for name in _COPIES]
    columns = {name: np.concatenate([part[name] for part in parts]) for name in wanted}
    if not len(columns["start"]):
        return no_copies()
    order = np.argsort(columns["start"], kind="stable")
    return Copies(*(columns[name][order] for name in wanted))


def _ranges(tables: Tables, strings: _Strings) -> HostRanges:
    rows = tables.rows(
        _RANGES,
        {"start": ..., "end": UNKNOWN, "eventType": ..., "globalTid": UNKNOWN, "textId": UNKNOWN, "text": ""},
    )
    kept = [row for row in rows if row[2] in _RANGE_TYPES and row[1] != UNKNOWN]
    try:
        numbers = np.array([(row[0], row[1], row[3]) for row in kept], dtype=np.int64).reshape(len(kept), 3)
    except (TypeError, ValueError, OverflowError) as error:
        raise ImportFileError(tables.no_number(_RANGES, error)) from error
    codes = [strings.code(str(row[5]) if row[5] else strings.text(row[4]) if row[4] != UNKNOWN else "") for row in kept]
    columns = {"start": numbers[:, 0], "end": numbers[:, 1], "thread": numbers[:, 2], "name": np.array(codes, np.int64)}
    sound = _possible(columns)
    order = np.lexsort((-sound["end"], sound["start"], sound["thread"]))
    return HostRanges(strings.names, **{name: column[order] for name, column in sound.items()})


def _devices(tables: Tables) -> dict[int, Device]:
    rows = tables.rows("TARGET_INFO_GPU", {"id": ..., "name": "", "smCount": UNKNOWN})
    return {
        number: Device(number, str(name), sms if isinstance(sms, int) and sms > 0 else None)
        for number, name, sms in rows
        if isinstance(number, int)
    }


def _notes(tables: Tables, kernels: Kernels, ranges: HostRanges, impossible: int) -> list[str]:
    notes = []
    if impossible:
        notes.append(f"kernels left out, since their times cannot be: {impossible}; export the report again")
    if not len(kernels):
        notes.append("no kernels were recorded: profile with nsys profile --trace=cuda,nvtx")
    if not len(ranges):
        notes.append("no NVTX ranges were recorded")
    if _CALLS not in tables.names and len(kernels):
        notes.append("no calls of the CUDA API were recorded, so kernels cannot be put into NVTX ranges")
    unknown = int((kernels.thread == UNKNOWN).sum())
    if unknown and _CALLS in tables.names:
        notes.append(f"kernels without the call that launched them, so in no NVTX range: {unknown}")
    return notes
