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
    LATEST,
    NO_TIME,
    UNKNOWN,
    Copies,
    Device,
    Kernels,
    NsysReport,
    Stream,
    distinct_rows,
    impossible_times,
    possible_times,
    process_id,
)
from tui_probe.nsight.importers.sqlite_tables import Cell, Tables, narrow, open_tables

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from pathlib import Path

    from numpy.typing import NDArray

    from tui_probe.nsight.importers.nsys_model import HostRanges

_SHORT: Final = 0xFFFF
"""Bits of a short process id, as with the default ``pid_max`` of Linux, 32 768."""
_SERIOUS: Final = frozenset({2, 3})
"""Warnings and errors; 4 are verbose messages."""
_OF_OTHERS: Final = re.compile(
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
_READ: Final = ("StringIds", _KERNELS, _GRAPHS, CALLS, *_COPIES, RANGES)
"""The tables that may be long."""
_SHAPE: Final = ("gridX", "gridY", "gridZ", "blockX", "blockY", "blockZ")
_OPERATION: Final[dict[str, object]] = {
    "start": Cell(NO_TIME), "end": Cell(NO_TIME), "deviceId": 0, "contextId": UNKNOWN, "streamId": UNKNOWN,
    "correlationId": UNKNOWN, "globalPid": UNKNOWN,
}  # fmt: skip
"""Columns of all operations on a GPU, and what stands for a missing one; ``...`` has to be there."""
_OF_KERNELS: Final[dict[str, object]] = {
    **_OPERATION, "streamId": Cell(UNKNOWN), "demangledName": Cell(UNKNOWN, ("shortName", "mangledName")),
    "mangledName": UNKNOWN, "registersPerThread": UNKNOWN,
    "staticSharedMemory": UNKNOWN, "dynamicSharedMemory": UNKNOWN, **dict.fromkeys(_SHAPE, UNKNOWN),
}  # fmt: skip
_OF_GRAPHS: Final[dict[str, object]] = {**_OPERATION, "graphId": 0, "graphExecId": UNKNOWN}
_MARKS: Final = ("META_DATA_EXPORT", "StringIds", "TARGET_INFO_SESSION_START_TIME")
"""Tables; every export has at least one of them."""
_UNNAMED: Final = "kernel without a name"


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
        called = tables.rows("TARGET_INFO_CUDA_DEVICE", {"pid": UNKNOWN, "cudaId": ..., "gpuId": UNKNOWN})
        self._called = {(pid, cuda): gpu for pid, cuda, gpu in called if isinstance(gpu, int) and gpu != UNKNOWN}

    def numbers(self, processes: NDArray[Any], cuda_devices: NDArray[Any]) -> NDArray[Any]:
        """Return GPU numbers of CUDA devices of processes (nsys' ids); the id where the file has no number."""
        if not self._called:
            return cuda_devices
        pairs, places = distinct_rows((processes, cuda_devices))
        return np.array([self._number(*pair) for pair in pairs], dtype=np.int32)[places]

    def _number(self, process: int, cuda_device: int) -> int:
        """The GPU, or the same number where the file does not name it."""
        identity = process_id(process)
        for named in (identity, UNKNOWN):
            if (named, cuda_device) in self._called:
                return self._called[named, cuda_device]
        # Some writers put bits of the machine right above a short process id.
        alike = {gpu for (pid, cuda), gpu in self._called.items() if cuda == cuda_device and pid == identity & _SHORT}
        return alike.pop() if len(alike) == 1 else cuda_device


class Recorder:
    """Messages and options of nsys about its own recording: why nothing, or not everything, was recorded::

    DIAGNOSTIC_EVENT      messages, with a severity
    META_DATA_CAPTURE     options, as names and values
    """

    def __init__(self, tables: Tables) -> None:
        rows = tables.rows("DIAGNOSTIC_EVENT", {"severity": 0, "text": ""})
        texts = (" ".join(str(text).split()) for severity, text in rows if severity in _SERIOUS)
        self._messages = Counter(text for text in texts if text and not _OF_OTHERS.search(text))
        options = tables.rows("META_DATA_CAPTURE", {"name": "", "value": ""})
        self._options = {str(name).rpartition(":")[2]: str(value) for name, value in options}

    def notes(self) -> Iterator[str]:
        """Yield its first messages, and how many more there are."""
        for text, times in [*self._messages.items()][:_MAX_QUOTED]:
            yield f"nsys reports: {text}" + (f" ({times} times)" if times > 1 else "")
        more = len(self._messages) - _MAX_QUOTED
        if more > 0:
            yield f"nsys reports {more} more {'warning' if more == 1 else 'warnings'}: see table DIAGNOSTIC_EVENT"

    def why_nothing(self, what: str, kind: Literal["CUDA", "NVTX"]) -> str:
        """Explain missing kernels or ranges (``what``) by the options of the recording, else say how to record them."""
        traced = self._options.get(f"COLLECT_{kind}_TRACE")
        if traced == "true":
            return f"no {what} were recorded, although nsys traced {kind}"
        return f"no {what} were recorded: profile with nsys profile --trace=cuda,nvtx"

    def why_empty(self) -> str:
        """Explain a file with neither kernels nor ranges, the recorder's own reasons first."""
        messages = [*self.notes()]
        why = self.why_nothing("kernels and no NVTX ranges", "CUDA")
        return f"{'; '.join(messages)}; {why}" if messages else why


def read_sqlite(path: Path, progress: Callable[[float], object] = lambda _: None) -> NsysReport:
    """Read an export. Raises ImportFileError if it is none, or holds neither kernels nor ranges."""
    with open_tables(path, progress) as tables:
        if not tables.names & {_KERNELS, RANGES, *_MARKS}:
            raise ImportFileError(f"{path}: an sqlite file without the tables of an Nsight Systems export")
        tables.expect(_READ)
        recorder, strings, gpus = Recorder(tables), Strings(tables), Gpus(tables)
        work = _read_work(tables, strings, gpus)
        ranges, unended = read_ranges(tables, strings, max(work.last, _duration(tables)))
        if not len(work.kernels) and not len(ranges):
            raise ImportFileError(f"{path}: {'; '.join([*work.left_out, *unended, recorder.why_empty()])}")
        notes = [*recorder.notes(), *unended, *_notes(tables, strings, recorder, work, ranges)]
        return NsysReport((str(path),), work.kernels, work.copies, ranges, (), gpus.devices, (), tuple(notes))


@dataclass(frozen=True, slots=True)
class _Work:
    """Operations on GPUs; how many were left out, and when the last operation or call ended."""

    kernels: Kernels
    copies: Copies
    left_out: list[str]
    last: int


def _read_work(tables: Tables, strings: Strings, gpus: Gpus) -> _Work:
    left_out: list[str] = []
    rows = _by_start(_with_possible_times(_kernel_rows(tables, strings), "kernel", left_out))
    copies = _joined_rows([tables.integers(name, _OPERATION) for name in _COPIES])
    copies = _by_start(_with_possible_times(copies, "copy", left_out))
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
    last = max(int(column.max(initial=calls.last)) for column in (kernels.end, copies["end"]))
    return _Work(kernels, Copies(copies["start"], copies["end"], copy_queues), left_out, last)


def _kernel_rows(tables: Tables, strings: Strings) -> dict[str, NDArray[Any]]:
    """Kernels and graph executions."""
    kernels, graphs = tables.integers(_KERNELS, _OF_KERNELS), tables.integers(_GRAPHS, _OF_GRAPHS)
    kernels["name"] = strings.codes(kernels.pop("demangledName"))
    if (unnamed := kernels["name"] == UNKNOWN).any():
        kernels["name"][unnamed] = strings.code(_UNNAMED)
    kernels["mangled"] = strings.codes(kernels.pop("mangledName"))
    static, dynamic = kernels.pop("staticSharedMemory"), kernels.pop("dynamicSharedMemory")
    shared = np.add(static.clip(0), dynamic.clip(0), dtype=np.int64)
    kernels["shared"] = narrow(np.where((static == UNKNOWN) & (dynamic == UNKNOWN), UNKNOWN, shared))
    kernels["graph"] = np.full(len(static), UNKNOWN, dtype=np.int32)
    graphs["name"] = _graph_names(strings, graphs)
    graphs["graph"] = graphs.pop("graphId").clip(0)
    del graphs["graphExecId"]
    return _joined_rows([kernels, graphs]) if len(graphs["start"]) else kernels


def _graph_names(strings: Strings, graphs: Mapping[str, NDArray[Any]]) -> NDArray[Any]:
    """A name for each graph, with as much as tells it from others: the process, the executable."""
    rows, places = distinct_rows((graphs["globalPid"], graphs["graphId"], graphs["graphExecId"]))
    of_one_process = len({process for process, _, _ in rows}) < 2
    names = []
    for process, graph, executable in rows:
        is_unique = sum(row[:2] == (process, graph) for row in rows) == 1
        more = [] if of_one_process else [f"process {process_id(process)}"]
        more += [] if is_unique else [f"executable {executable}"]
        names.append(f"CUDA graph {graph}" + (f" ({', '.join(more)})" if more else ""))
    return np.array([strings.code(name) for name in names], dtype=np.int32)[places]


def _joined_rows(parts: list[dict[str, NDArray[Any]]]) -> dict[str, NDArray[Any]]:
    """The rows of several tables; a column that one of them does not have is not known there."""
    names = dict.fromkeys(name for part in parts for name in part)
    absent = [np.full(len(part["start"]), UNKNOWN, dtype=np.int32) for part in parts]
    return {name: np.concatenate([part.get(name, unknown) for part, unknown in zip(parts, absent, strict=True)])
            for name in names}  # fmt: skip


def _with_possible_times(rows: Mapping[str, NDArray[Any]], noun: str, left_out: list[str]) -> dict[str, NDArray[Any]]:
    """The rows whose times can be, and notes about the others."""
    start, end = rows["start"], rows["end"]
    possible = possible_times(start, end)
    left_out += impossible_times(noun, start, end)
    sound = {**rows} if possible.all() else {name: column[possible] for name, column in rows.items()}
    return sound | {name: sound[name].astype(np.int64) for name in ("start", "end")}


def _by_start(rows: Mapping[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
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
    ends = np.cumsum([len(part["start"]) for part in parts])[:-1]
    return streams, np.split(places, ends)


def _duration(tables: Tables) -> int:
    """Ns from the start of the capture to its end, 0 if the file does not say."""
    rows = tables.rows("ANALYSIS_DETAILS", {"duration": 0})
    return max((value for (value,) in rows if isinstance(value, int) and value < LATEST), default=0)


def _notes(tables: Tables, strings: Strings, recorder: Recorder, work: _Work, ranges: HostRanges) -> Iterator[str]:
    kernels = work.kernels
    yield from work.left_out
    if strings.missing:
        yield (
            f"{units.counted(len(strings.missing), 'string')} missing in the file (table StringIds), shown as"
            f" “{strings.text(min(strings.missing))}”; export the report again"
        )
    yield from _graph_notes(kernels)
    if not len(kernels):
        yield recorder.why_nothing("kernels", "CUDA")
    if not len(ranges):
        yield recorder.why_nothing("NVTX ranges", "NVTX")
    if CALLS not in tables.names and len(kernels):
        yield "no CUDA API calls were recorded, so kernels cannot be assigned to NVTX ranges"
    unknown = int((kernels.thread == UNKNOWN).sum())
    if unknown and CALLS in tables.names:
        yield f"kernels not assigned to an NVTX range, because their launch calls are missing: {unknown}"


def _graph_notes(kernels: Kernels) -> Iterator[str]:
    is_graph = kernels.is_graph
    if is_graph.any():
        part = kernels.duration[is_graph].sum() / max(int(kernels.duration.sum()), 1)
        yield (
            f"CUDA graphs with {100 * part:.1f} % of the GPU time were recorded without their kernels; to record"
            " kernels, use nsys profile --cuda-graph-trace=node"
        )
