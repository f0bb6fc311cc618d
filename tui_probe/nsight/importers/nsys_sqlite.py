"""Read an sqlite export of Nsight Systems: GPUs, kernels, copies and messages of its recorder.

CUPTI_ACTIVITY_KIND_KERNEL       kernels; names are numbers of ``StringIds``
CUPTI_ACTIVITY_KIND_GRAPH_TRACE  executions of CUDA graphs as wholes, the default of nsys: their kernels are in no table
NVTX_EVENTS                      type 59 is push/pop, 60 start/end; the text is in ``text`` or ``textId``

Rows are in any order.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal

import numpy as np

from tui_probe.draw import units
from tui_probe.errors import ImportFileError
from tui_probe.nsight.importers.nsys_host import CALLS, RANGES, Strings, launch_calls, read_ranges
from tui_probe.nsight.importers.nsys_model import (
    MAX_TIME_NS,
    NO_TIME,
    UNKNOWN,
    Copies,
    Device,
    Kernels,
    NsysReport,
    Stream,
    distinct_rows,
    impossible_time_notes,
    possible_times,
    process_id,
)
from tui_probe.nsight.importers.sqlite_tables import Cell, Tables, narrow_column, open_tables

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from pathlib import Path

    from numpy.typing import NDArray

    from tui_probe.nsight.importers.nsys_model import HostRanges

_SHORT_PID_MASK: Final = 0xFFFF
"""Bits of a short process id, as with the default ``pid_max`` of Linux, 32 768."""
_SEVERITIES: Final = frozenset({2, 3})
"""Warnings and errors; 4 are verbose messages."""
_UNRELATED: Final = re.compile(
    r"\b(OpenGL|Vulkan|OS runtime|OpenACC|OpenMP|OpenXR|Direct3D|DX1[12]|MPI|WDDM|ETW|NVVIDEO|cuDNN|cuBLAS|backtraces?"
    r"|IP samples?|Context switch)\b",
    re.IGNORECASE,
)
"""Messages about what is not read from a file."""
_MAX_QUOTED: Final = 5
"""Messages that are quoted."""
_KERNELS: Final = "CUPTI_ACTIVITY_KIND_KERNEL"
_GRAPHS: Final = "CUPTI_ACTIVITY_KIND_GRAPH_TRACE"
_COPIES: Final = ("CUPTI_ACTIVITY_KIND_MEMCPY", "CUPTI_ACTIVITY_KIND_MEMSET")
_LONG_TABLES: Final = ("StringIds", _KERNELS, _GRAPHS, CALLS, *_COPIES, RANGES)
"""The tables that may be long."""
_SHAPE: Final = ("gridX", "gridY", "gridZ", "blockX", "blockY", "blockZ")
_OPERATION_COLUMNS: Final[dict[str, object]] = {
    "start": Cell(NO_TIME), "end": Cell(NO_TIME), "deviceId": 0, "contextId": UNKNOWN, "streamId": UNKNOWN,
    "correlationId": UNKNOWN, "globalPid": UNKNOWN,
}  # fmt: skip
"""Columns of all operations on a GPU, and what stands for a missing one; ``...`` has to be there."""
_KERNEL_COLUMNS: Final[dict[str, object]] = {
    **_OPERATION_COLUMNS, "streamId": Cell(UNKNOWN), "demangledName": Cell(UNKNOWN, ("shortName", "mangledName")),
    "mangledName": UNKNOWN, "registersPerThread": UNKNOWN,
    "staticSharedMemory": UNKNOWN, "dynamicSharedMemory": UNKNOWN, **dict.fromkeys(_SHAPE, UNKNOWN),
}  # fmt: skip
_GRAPH_COLUMNS: Final[dict[str, object]] = {**_OPERATION_COLUMNS, "graphId": 0, "graphExecId": UNKNOWN}
_EXPORT_TABLES: Final = ("META_DATA_EXPORT", "StringIds", "TARGET_INFO_SESSION_START_TIME")
"""Tables; every export has at least one of them."""
_UNNAMED_KERNEL: Final = "kernel without a name"


class Gpus:
    """The GPUs of one export, and the GPU of each CUDA device of a process::

    TARGET_INFO_GPU             GPUs, with their SMs
    TARGET_INFO_CUDA_DEVICE     GPU ``gpuId`` of a process's device ``cudaId``, as CUDA_VISIBLE_DEVICES sets it
    """

    def __init__(self, tables: Tables) -> None:
        rows = tables.rows("TARGET_INFO_GPU", {"id": ..., "name": "", "smCount": UNKNOWN})
        self.devices = {
            number: Device(number, str(name), sms if isinstance(sms, int) and sms > 0 else None)
            for number, name, sms in rows
            if isinstance(number, int)
        }
        rows_of_processes = tables.rows("TARGET_INFO_CUDA_DEVICE", {"pid": UNKNOWN, "cudaId": ..., "gpuId": UNKNOWN})
        self._gpus_by_device = {
            (pid, cuda): gpu for pid, cuda, gpu in rows_of_processes if isinstance(gpu, int) and gpu != UNKNOWN
        }

    def numbers(self, processes: NDArray[Any], cuda_devices: NDArray[Any]) -> NDArray[Any]:
        """Return GPU numbers of CUDA devices of processes (nsys' ids); the id where the file has no number."""
        if not self._gpus_by_device:
            return cuda_devices
        pairs, positions = distinct_rows((processes, cuda_devices))
        return np.array([self._number(*pair) for pair in pairs], dtype=np.int32)[positions]

    def _number(self, process: int, cuda_device: int) -> int:
        """The GPU, or the same number where the file does not name it."""
        identity = process_id(process)
        for process_key in (identity, UNKNOWN):
            if (process_key, cuda_device) in self._gpus_by_device:
                return self._gpus_by_device[process_key, cuda_device]
        # Some writers put bits of the machine right above a short process id.
        candidates = {
            gpu
            for (pid, cuda), gpu in self._gpus_by_device.items()
            if cuda == cuda_device and pid == identity & _SHORT_PID_MASK
        }
        return candidates.pop() if len(candidates) == 1 else cuda_device


class Recorder:
    """Messages and options of nsys about its own recording: why nothing, or not everything, was recorded::

    DIAGNOSTIC_EVENT      messages, with a severity
    META_DATA_CAPTURE     options, as names and values
    """

    def __init__(self, tables: Tables) -> None:
        rows = tables.rows("DIAGNOSTIC_EVENT", {"severity": 0, "text": ""})
        texts = (" ".join(str(text).split()) for severity, text in rows if severity in _SEVERITIES)
        self._messages = Counter(text for text in texts if text and not _UNRELATED.search(text))
        options = tables.rows("META_DATA_CAPTURE", {"name": "", "value": ""})
        self._options = {str(name).rpartition(":")[2]: str(value) for name, value in options}

    def notes(self) -> Iterator[str]:
        """Yield its first messages, and how many more there are."""
        for text, times in [*self._messages.items()][:_MAX_QUOTED]:
            yield f"nsys reports: {text}" + (f" ({times} times)" if times > 1 else "")
        unquoted = len(self._messages) - _MAX_QUOTED
        if unquoted > 0:
            noun = "warning" if unquoted == 1 else "warnings"
            yield f"nsys reports {unquoted} more {noun}: see table DIAGNOSTIC_EVENT"

    def missing_reason(self, noun: str, kind: Literal["CUDA", "NVTX"]) -> str:
        """Explain missing kernels or ranges (``noun``) by the options of the recording, else say how to record them."""
        trace_option = self._options.get(f"COLLECT_{kind}_TRACE")
        if trace_option == "true":
            return f"no {noun} were recorded, although nsys traced {kind}"
        return f"no {noun} were recorded: profile with nsys profile --trace=cuda,nvtx"

    def empty_reason(self) -> str:
        """Explain a file with neither kernels nor ranges, the recorder's own reasons first."""
        messages = [*self.notes()]
        reason = self.missing_reason("kernels and no NVTX ranges", "CUDA")
        return f"{'; '.join(messages)}; {reason}" if messages else reason


def read_sqlite(path: Path, progress: Callable[[float], object] = lambda _: None) -> NsysReport:
    """Read an export. Raises ImportFileError if it is none, or holds neither kernels nor ranges."""
    with open_tables(path, progress) as tables:
        if not tables.names & {_KERNELS, RANGES, *_EXPORT_TABLES}:
            raise ImportFileError(f"{path}: an sqlite file without the tables of an Nsight Systems export")
        tables.expect(_LONG_TABLES)
        recorder, strings, gpus = Recorder(tables), Strings(tables), Gpus(tables)
        work = _read_work(tables, strings, gpus)
        ranges, unended = read_ranges(tables, strings, max(work.last_end, _duration(tables)))
        if not len(work.kernels) and not len(ranges):
            raise ImportFileError(f"{path}: {'; '.join([*work.exclusion_notes, *unended, recorder.empty_reason()])}")
        notes = [*recorder.notes(), *unended, *_notes(tables, strings, recorder, work, ranges)]
        return NsysReport((str(path),), work.kernels, work.copies, ranges, (), gpus.devices, (), tuple(notes))


@dataclass(frozen=True, slots=True)
class _GpuWork:
    """Operations on GPUs; how many were left out, and when the last operation or call ended."""

    kernels: Kernels
    copies: Copies
    exclusion_notes: list[str]
    last_end: int


def _read_work(tables: Tables, strings: Strings, gpus: Gpus) -> _GpuWork:
    exclusion_notes: list[str] = []
    rows = _sorted_by_start(_with_possible_times(_kernel_rows(tables, strings), "kernel", exclusion_notes))
    copies = _concatenated([tables.integers(name, _OPERATION_COLUMNS) for name in _COPIES])
    copies = _sorted_by_start(_with_possible_times(copies, "copy", exclusion_notes))
    streams, (queues, copy_queues) = _streams(gpus, rows, copies)
    calls = launch_calls(tables, rows.pop("globalPid"), rows.pop("correlationId"))
    shape = np.stack([rows.pop(name) for name in _SHAPE], axis=1)
    kernels = Kernels(
        names=strings.names,
        streams=streams,
        start=rows["start"],
        end=rows["end"],
        queue=queues,
        name=rows["name"],
        mangled=rows["mangled"],
        shape=np.where(shape > 0, shape, shape.dtype.type(UNKNOWN)),
        registers=rows["registersPerThread"],
        shared=rows["shared"],
        graph=rows["graph"],
        thread=calls.thread,
        launch_start=calls.start,
        launch_end=calls.end,
    )
    last_end = max(int(column.max(initial=calls.last_end)) for column in (kernels.end, copies["end"]))
    return _GpuWork(kernels, Copies(copies["start"], copies["end"], copy_queues), exclusion_notes, last_end)


def _kernel_rows(tables: Tables, strings: Strings) -> dict[str, NDArray[Any]]:
    """Kernels and graph executions."""
    kernels, graphs = tables.integers(_KERNELS, _KERNEL_COLUMNS), tables.integers(_GRAPHS, _GRAPH_COLUMNS)
    kernels["name"] = strings.codes(kernels.pop("demangledName"))
    if (is_unnamed := kernels["name"] == UNKNOWN).any():
        kernels["name"][is_unnamed] = strings.code(_UNNAMED_KERNEL)
    kernels["mangled"] = strings.codes(kernels.pop("mangledName"))
    static, dynamic = kernels.pop("staticSharedMemory"), kernels.pop("dynamicSharedMemory")
    shared_bytes = np.add(static.clip(0), dynamic.clip(0), dtype=np.int64)
    kernels["shared"] = narrow_column(np.where((static == UNKNOWN) & (dynamic == UNKNOWN), UNKNOWN, shared_bytes))
    kernels["graph"] = np.full(len(static), UNKNOWN, dtype=np.int32)
    graphs["name"] = _graph_names(strings, graphs)
    graphs["graph"] = graphs.pop("graphId").clip(0)
    del graphs["graphExecId"]
    return _concatenated([kernels, graphs]) if len(graphs["start"]) else kernels


def _graph_names(strings: Strings, graphs: Mapping[str, NDArray[Any]]) -> NDArray[Any]:
    """A name for each graph, with as much as tells it from others: the process, the executable."""
    rows, places = distinct_rows((graphs["globalPid"], graphs["graphId"], graphs["graphExecId"]))
    has_one_process = len({process for process, _, _ in rows}) < 2
    names = []
    for process, graph, executable in rows:
        is_unique = sum(row[:2] == (process, graph) for row in rows) == 1
        details = [] if has_one_process else [f"process {process_id(process)}"]
        details += [] if is_unique else [f"executable {executable}"]
        names.append(f"CUDA graph {graph}" + (f" ({', '.join(details)})" if details else ""))
    return np.array([strings.code(name) for name in names], dtype=np.int32)[places]


def _concatenated(parts: list[dict[str, NDArray[Any]]]) -> dict[str, NDArray[Any]]:
    """The rows of several tables; a column that one of them does not have is not known there."""
    names = dict.fromkeys(name for part in parts for name in part)
    absent = [np.full(len(part["start"]), UNKNOWN, dtype=np.int32) for part in parts]
    return {name: np.concatenate([part.get(name, unknown) for part, unknown in zip(parts, absent, strict=True)])
            for name in names}  # fmt: skip


def _with_possible_times(
    rows: Mapping[str, NDArray[Any]], noun: str, exclusion_notes: list[str]
) -> dict[str, NDArray[Any]]:
    """The rows whose times can be, and notes about the others."""
    start, end = rows["start"], rows["end"]
    is_possible = possible_times(start, end)
    exclusion_notes += impossible_time_notes(noun, start, end)
    possible_rows = {**rows} if is_possible.all() else {name: column[is_possible] for name, column in rows.items()}
    return possible_rows | {name: possible_rows[name].astype(np.int64) for name in ("start", "end")}


def _sorted_by_start(rows: Mapping[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
    """The rows by start; of those that start together by what else tells them apart."""
    start = rows["start"]
    if (start[1:] > start[:-1]).all():
        return {**rows}
    names = ("correlationId", "streamId", "contextId", "deviceId", "globalPid", "end", "start")
    order = np.lexsort([rows[name] for name in names])
    return {name: column[order] for name, column in rows.items()}


def _streams(gpus: Gpus, *parts: Mapping[str, NDArray[Any]]) -> tuple[list[Stream], list[NDArray[np.int32]]]:
    """All streams, and for each part the positions of its rows among them."""
    processes, devices, contexts, numbers = (
        np.concatenate([part[name] for part in parts]) for name in ("globalPid", "deviceId", "contextId", "streamId")
    )
    rows, places = distinct_rows((processes, gpus.numbers(processes, devices), contexts, numbers))
    streams = [
        Stream(UNKNOWN if process == UNKNOWN else process_id(process), device, context, number)
        for process, device, context, number in rows
    ]
    part_ends = np.cumsum([len(part["start"]) for part in parts])[:-1]
    return streams, np.split(places, part_ends)


def _duration(tables: Tables) -> int:
    """Ns from the start of the capture to its end, 0 if the file does not say."""
    rows = tables.rows("ANALYSIS_DETAILS", {"duration": 0})
    return max((value for (value,) in rows if isinstance(value, int) and value < MAX_TIME_NS), default=0)


def _notes(tables: Tables, strings: Strings, recorder: Recorder, work: _GpuWork, ranges: HostRanges) -> Iterator[str]:
    kernels = work.kernels
    yield from work.exclusion_notes
    if strings.missing_numbers:
        yield (
            f"{units.counted(len(strings.missing_numbers), 'string')} missing in the file (table StringIds), shown as"
            f" “{strings.text(min(strings.missing_numbers))}”; export the report again"
        )
    yield from _graph_notes(kernels)
    if not len(kernels):
        yield recorder.missing_reason("kernels", "CUDA")
    if not len(ranges):
        yield recorder.missing_reason("NVTX ranges", "NVTX")
    if CALLS not in tables.names and len(kernels):
        yield "no CUDA API calls were recorded, so kernels cannot be assigned to NVTX ranges"
    unknown = int((kernels.thread == UNKNOWN).sum())
    if unknown and CALLS in tables.names:
        yield f"kernels not assigned to an NVTX range, because their launch calls are missing: {unknown}"


def _graph_notes(kernels: Kernels) -> Iterator[str]:
    is_graph = kernels.is_graph
    if is_graph.any():
        graph_share = kernels.duration[is_graph].sum() / max(int(kernels.duration.sum()), 1)
        yield (
            f"CUDA graphs with {100 * graph_share:.1f} % of the GPU time were recorded without their kernels; to record"
            " kernels, use nsys profile --cuda-graph-trace=node"
        )
