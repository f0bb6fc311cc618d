"""Events of one Chrome trace of PyTorch, JAX or Proton, read value by value and collected as columns.

PyTorch  ``cat`` is kernel, gpu_memcpy, cuda_runtime, cpu_op, …; a call has the correlation of its kernels
JAX      kernels are in threads named ``Stream #N`` of processes named ``/device:GPU:N``
Proton   ``cat`` is kernel; the scopes around a kernel are its ``call_stack``
"""

from __future__ import annotations

import re
import zlib
from array import array
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from tui_probe.errors import ImportFileError
from tui_probe.nsight.importers.file_kinds import JsonStream, Truncated
from tui_probe.nsight.importers.file_reading import open_decompressed
from tui_probe.nsight.importers.nsys_model import UNKNOWN, Device

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from pathlib import Path

    from numpy.typing import NDArray

_KERNELS: Final = frozenset({"kernel"})
_COPIES: Final = frozenset({"gpu_memcpy", "gpu_memset", "memcpy", "memset"})
_CALLS: Final = frozenset({"cuda_runtime", "cuda_driver", "runtime", "driver"})
_RANGES: Final = frozenset({"cpu_op", "operator", "user_annotation"})
_MODULE_PREFIX: Final = "nn.Module: "
"""The beginning of the name of a module among the functions of Python, which are too many to be ranges."""
_GPU_NAME: Final = re.compile(r"/device:GPU:(\d{1,6})")
_STREAM_NAME: Final = re.compile(r"Stream #?(\d{1,9})")
_DETAIL: Final = re.compile(r"(\w+):(\S+)")
_MAX_TIME_NS: Final = 1 << 62
"""Ns from which on a time is none; with the base of a file, which is half of it at most, it has 64 bits."""
_MAX_NUMBER: Final = (1 << 31) - 1
_MAX_REMEMBERED_ROWS: Final = 1 << 14
"""Rows that are looked up to be shared; then all are forgotten: a trace whose rows all differ must not fill memory."""
_WIDTHS: Final = ("b", "h", "i", "q")
"""Typecodes of integers, the narrowest first."""
_TIMES: Final = ("start", "length")
QUEUE: Final = ("device", "context", "stream")
SHAPE: Final = ("grid x", "grid y", "grid z", "block x", "block y", "block z")
LAUNCH: Final = (*SHAPE, "registers", "shared")
_EVENTS: Final = "traceEvents"
_EVENTS_PER_REPORT: Final = 4096
"""Events between two reports of progress."""


class IntegerRows:
    """Rows of integers as columns by name, each of the fewest bits that hold its numbers so far."""

    def __init__(self, names: Iterable[str]) -> None:
        self._columns = {name: array(_WIDTHS[0]) for name in names}

    def add(self, *values: int) -> None:
        for name, value in zip(self._columns, values, strict=True):
            try:
                self._columns[name].append(value)
            except OverflowError:
                self._widen(name, value)

    def _widen(self, name: str, value: int) -> None:
        """Add a number that needs more bits than those before it."""
        code = next(code for code in _WIDTHS if array(code).itemsize * 8 > value.bit_length())
        self._columns[name] = array(code, self._columns[name])
        self._columns[name].append(value)

    def take_columns(self) -> dict[str, NDArray[Any]]:
        """The columns, which are not copies and are not kept here: each goes when it is not used any more."""
        columns, self._columns = self._columns, {}
        arrays: dict[str, NDArray[Any]] = {}
        for name, column in columns.items():
            dtype: np.dtype[Any] = np.dtype(column.typecode)
            arrays[name] = np.frombuffer(column, dtype) if column else np.empty(0, dtype)
        return arrays


class _DistinctRows:
    """Rows that are equal to one of the latest are not added again: most memory goes to what is different."""

    def __init__(self, rows: IntegerRows) -> None:
        self.rows = rows
        self._positions: dict[tuple[int, ...], int] = {}
        self._count = 0

    def position_of(self, values: tuple[int, ...]) -> int:
        """The position of a row with these values."""
        position = self._positions.get(values)
        if position is None:
            if len(self._positions) >= _MAX_REMEMBERED_ROWS:
                self._positions.clear()
            position = self._positions[values] = self._count
            self._count += 1
            self.rows.add(*values)
        return position


class Collector:
    """The events of one file. Times are in ns and may start anywhere; ``name`` is a position in ``names``."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.names: dict[str, int] = {}
        self.paths: dict[tuple[str, ...], int] = {(): 0}
        """Scopes around kernels, the outermost first."""
        self.kernels = IntegerRows((*_TIMES, "correlation", "kind"))
        self.kinds = _DistinctRows(IntegerRows((*QUEUE, "name", "path", *LAUNCH)))
        """Streams, names and launch parameters, by position: many kernels have the same."""
        self.copies = IntegerRows((*_TIMES, "correlation", *QUEUE))
        self.calls = IntegerRows((*_TIMES, "thread", "correlation"))
        self.ranges = IntegerRows((*_TIMES, "thread", "name"))
        self.threads: dict[tuple[object, object], int] = {}
        """Threads of the host by process and thread, as the file names them."""
        self.devices: dict[int, Device] = {}
        self.base = 0
        self.count = self.invalid_count = 0
        """Events that were read, and those without times that can be."""
        self.is_cut_off = False
        self._gpus: dict[object, int] = {}
        self._streams: dict[tuple[object, object], int | None] = {}

    def read_member(self, key: str, value: Any) -> None:
        """A member of the file next to its events."""
        if key == "baseTimeNanoseconds" and isinstance(value, int) and abs(value) < _MAX_TIME_NS >> 1:
            self.base = value
        if key == "deviceProperties" and isinstance(value, list):
            for device in value:
                if isinstance(device, dict) and isinstance(device.get("id"), int):
                    sms = device.get("numSms")
                    name = str(device.get("name", "GPU"))
                    self.devices[device["id"]] = Device(device["id"], name, sms if isinstance(sms, int) else None)

    def read_event(self, event: Mapping[str, Any]) -> None:
        """Read one event."""
        kind = event.get("ph")
        if kind == "M":
            self._read_name(event)
        if kind != "X":
            return
        self.count += 1
        start, length = _time_ns(event.get("ts")), _time_ns(event.get("dur"))
        if start is None or length is None or length < 0 or start + length >= _MAX_TIME_NS:
            self.invalid_count += 1
            return
        self._read_timed_event(event, start, start + length)

    def _read_timed_event(self, event: Mapping[str, Any], start: int, end: int) -> None:
        category, name = str(event.get("cat", "")).lower(), str(event.get("name", ""))
        details = event.get("args")
        details = details if isinstance(details, dict) else {}
        process, thread = _process_key(event.get("pid")), _process_key(event.get("tid"))
        if category in _KERNELS:
            self._read_kernel(
                name, start, end, details, _natural_number(details.get("device"), 0), self._stream(process, thread)
            )
        elif category in _COPIES:
            self._read_copy(start, end, details, self._stream(process, thread))
        elif category in _CALLS:
            self._read_call(start, end, self._thread(process, thread), details.get("correlation"))
        elif category in _RANGES or (category == "python_function" and name.startswith(_MODULE_PREFIX)):
            self._read_range(name.removeprefix(_MODULE_PREFIX), start, end, self._thread(process, thread))
        elif not category and process in self._gpus:
            self._read_jax_kernel(name, start, end, details, process, thread)
        elif not category:
            self._read_jax_host_event(name, start, end, self._thread(process, thread), details)

    def _read_name(self, event: Mapping[str, Any]) -> None:
        """A name of a process or a thread, by which JAX tells GPUs and streams."""
        details = event.get("args")
        name = str(details.get("name", "")) if isinstance(details, dict) else ""
        process = _process_key(event.get("pid"))
        if event.get("name") == "process_name" and (match := _GPU_NAME.search(name)):
            self._gpus[process] = int(match[1])
        if event.get("name") == "thread_name":
            match = _STREAM_NAME.search(name)
            self._streams[process, _process_key(event.get("tid"))] = int(match[1]) if match else None

    def _stream(self, process: object, thread: object) -> int:
        """The stream that a thread of a GPU stands for: that of its name, else its number."""
        number = self._streams.get((process, thread))
        return _natural_number(thread) if number is None else number

    def _thread(self, process: object, thread: object) -> int:
        return self.threads.setdefault((process, thread), len(self.threads))

    def _read_kernel(
        self, name: str, start: int, end: int, details: Mapping[str, Any], device: int, thread: int
    ) -> None:
        shape = (*_extent(details.get("grid")), *_extent(details.get("block")))
        stack = details.get("call_stack")
        path = (
            tuple(map(str, stack[:-1] if stack and str(stack[-1]) == name else stack))
            if isinstance(stack, list)
            else ()
        )
        self._add_kernel(
            name,
            (
                start,
                end,
                device,
                _natural_number(details.get("context")),
                _natural_number(details.get("stream"), thread),
            ),
            _natural_number(details.get("correlation")),
            (
                *shape,
                _natural_number(details.get("registers per thread")),
                _natural_number(details.get("shared memory")),
            ),
            tuple(scope for scope in path if scope not in ("ROOT", "<root>")),
        )

    def _add_kernel(
        self,
        name: str,
        times_and_queue: tuple[int, ...],
        correlation: int,
        launch: tuple[int, ...],
        path: tuple[str, ...],
    ) -> None:
        name_code, path_code = (
            self.names.setdefault(name, len(self.names)),
            self.paths.setdefault(path, len(self.paths)),
        )
        start, end, *queue = times_and_queue
        self.kernels.add(
            start, end - start, correlation, self.kinds.position_of((*queue, name_code, path_code, *launch))
        )

    def _read_jax_kernel(
        self, name: str, start: int, end: int, details: Mapping[str, Any], process: object, thread: object
    ) -> None:
        """A kernel or a copy of a stream; the device's other threads show the same by operation and by module."""
        stream = self._streams.get((process, thread))
        if stream is None:
            return
        launch_details = dict(_DETAIL.findall(str(details.get("kernel_details", ""))))
        if "memcpy_details" in details or "memset_details" in details:
            correlation = _natural_number(details.get("correlation_id"))
            self.copies.add(start, end - start, correlation, self._gpus[process], UNKNOWN, stream)
            return
        shape = (
            *_extent(launch_details.get("grid", "").split(",")),
            *_extent(launch_details.get("block", "").split(",")),
        )
        shared_sizes = [_natural_number(launch_details.get(key)) for key in ("static_shared", "dynamic_shared")]
        path = tuple(str(details[key]) for key in ("hlo_module", "hlo_op") if details.get(key))
        self._add_kernel(
            name,
            (start, end, self._gpus[process], UNKNOWN, stream),
            _natural_number(details.get("correlation_id")),
            (
                *shape,
                _natural_number(launch_details.get("regs")),
                UNKNOWN if UNKNOWN in shared_sizes else sum(shared_sizes),
            ),
            path,
        )

    def _read_jax_host_event(self, name: str, start: int, end: int, thread: int, details: Mapping[str, Any]) -> None:
        """A call has the name of the API's function or of the kernel; names of Python's functions begin with ``$``.

        Ranges have another clock than calls, which may seem to end later: a call is in the range in which it starts.
        """
        if "correlation_id" in details:
            self._read_call(start, start, thread, details["correlation_id"])
        elif not name.startswith("$"):
            self._read_range(name, start, end, thread)

    def _read_copy(self, start: int, end: int, details: Mapping[str, Any], thread: int) -> None:
        stream, context = _natural_number(details.get("stream"), thread), _natural_number(details.get("context"))
        device, correlation = _natural_number(details.get("device"), 0), _natural_number(details.get("correlation"))
        self.copies.add(start, end - start, correlation, device, context, stream)

    def _read_call(self, start: int, end: int, thread: int, correlation: object) -> None:
        if (number := _natural_number(correlation)) != UNKNOWN:
            self.calls.add(start, end - start, thread, number)

    def _read_range(self, name: str, start: int, end: int, thread: int) -> None:
        self.ranges.add(start, end - start, thread, self.names.setdefault(name, len(self.names)))


def _process_key(value: object) -> object:
    """A process or a thread, which may be a number or a name."""
    return value if isinstance(value, int | str) else None


def _time_ns(value: Any) -> int | None:
    """Microseconds of a file in ns."""
    try:
        time = round(value * 1000)
    except (TypeError, ValueError, ArithmeticError):
        return None
    return time if isinstance(time, int) and abs(time) < _MAX_TIME_NS else None


def _natural_number(value: Any, default: int = UNKNOWN) -> int:
    """A number that is not negative; ``default`` where there is none."""
    if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) < 19:
        value = int(value)
    return value if isinstance(value, int) and 0 <= value <= _MAX_NUMBER else default


def _extent(value: object) -> tuple[int, int, int]:
    """The three sides of a grid or block; -1 where they are not known."""
    if not isinstance(value, list) or len(value) != 3:
        return (UNKNOWN, UNKNOWN, UNKNOWN)
    sides = tuple(_natural_number(side) for side in value)
    return (sides[0], sides[1], sides[2]) if min(sides) > 0 else (UNKNOWN, UNKNOWN, UNKNOWN)


def read_events(path: Path, number: int, progress: Callable[[float], object]) -> Collector:
    """Read one file. ImportFileError names it if it cannot be used; one that is cut off gives what it has."""
    collector = Collector(number)
    try:
        with open_decompressed(path) as file:
            size = max(path.stat().st_size, 1)
            raw = getattr(file, "fileobj", None) or file

            def report_position() -> None:
                progress(min(1.0, raw.tell() / size))

            _read_document(JsonStream(file), collector, report_position)
    except Truncated:
        collector.is_cut_off = True
    except (OSError, EOFError, zlib.error) as error:
        if isinstance(error, OSError) and not collector.count:
            raise ImportFileError(f"{path}: {error.strerror or error}; pass a readable file") from error
        collector.is_cut_off = True
    except (ValueError, RecursionError) as error:
        raise ImportFileError(f"{path}: not a readable Chrome trace ({error}); export it again") from error
    return collector


def _read_document(stream: JsonStream, collector: Collector, report_position: Callable[[], object]) -> None:
    """All events, in an array by itself or in the member of an object; the other members are small."""
    if stream.peek() == "[":
        _read_events(stream, collector, report_position)
        return
    for key in stream.members():
        if key == _EVENTS:
            _read_events(stream, collector, report_position)
        else:
            collector.read_member(key, stream.value())


def _read_events(stream: JsonStream, collector: Collector, report_position: Callable[[], object]) -> None:
    for number, _ in enumerate(stream.elements()):
        event = stream.value()
        if isinstance(event, dict):
            collector.read_event(event)
        if number % _EVENTS_PER_REPORT == 0:
            report_position()
