"""Read Chrome traces of PyTorch, JAX and Proton, value by value from a large JSON document.

PyTorch  ``cat`` is kernel, gpu_memcpy, cuda_runtime, cpu_op, …; a call has the correlation of its kernels
JAX      kernels are in threads named ``Stream #N`` of processes named ``/device:GPU:N``
Proton   ``cat`` is kernel; the scopes around a kernel are its ``call_stack``
"""

from __future__ import annotations

import zlib
from typing import TYPE_CHECKING, Final

from tui_probe.errors import ImportFileError
from tui_probe.nsight.importers.chrome_events import Collector
from tui_probe.nsight.importers.chrome_report import report_of
from tui_probe.nsight.importers.file_kinds import JsonStream, Truncated
from tui_probe.nsight.importers.file_reading import file_progress, unpacked

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from tui_probe.nsight.importers.nsys_model import NsysReport

_EVENTS: Final = "traceEvents"
_TELLING: Final = 4096
"""Events between two reports of progress."""


def read_chrome(paths: Sequence[Path], progress: Callable[[float], object] = lambda _: None) -> NsysReport:
    """One profile of one file per process. ImportFileError names the file that cannot be used."""
    parts = [_read(path, number, file_progress(progress, number, len(paths))) for number, path in enumerate(paths)]
    report = report_of([str(path) for path in paths], parts)
    if not len(report.kernels):
        raise ImportFileError(_no_kernels(paths, parts))
    return report


def _no_kernels(paths: Sequence[Path], parts: Sequence[Collector]) -> str:
    """Explain that there is no kernel: a file is cut off, or none was recorded."""
    for path, part in zip(paths, parts, strict=True):
        if part.is_cut_off:
            return (
                f"{path}: cut off after {part.count} events, before the first kernel: copy it again, or record it again"
            )
    return f"{paths[0]}: a Chrome trace without kernels of a GPU: record it with CUDA activities"


def _read(path: Path, number: int, progress: Callable[[float], object]) -> Collector:
    collector = Collector(number)
    try:
        with unpacked(path) as file:
            size = max(path.stat().st_size, 1)
            raw = getattr(file, "fileobj", None) or file

            def report_position() -> None:
                progress(min(1.0, raw.tell() / size))

            _take(JsonStream(file), collector, report_position)
    except Truncated:
        collector.is_cut_off = True
    except (OSError, EOFError, zlib.error) as error:
        if isinstance(error, OSError) and not collector.count:
            raise ImportFileError(f"{path}: {error.strerror or error}: name a file that can be read") from error
        collector.is_cut_off = True
    except (ValueError, RecursionError) as error:
        raise ImportFileError(f"{path}: no Chrome trace that can be read ({error}): export it again") from error
    return collector


def _take(stream: JsonStream, collector: Collector, report_position: Callable[[], object]) -> None:
    """All events, in an array by itself or in the member of an object; the other members are small."""
    if stream.peek() == "[":
        _take_events(stream, collector, report_position)
        return
    for key in stream.members():
        if key == _EVENTS:
            _take_events(stream, collector, report_position)
        else:
            collector.about(key, stream.value())


def _take_events(stream: JsonStream, collector: Collector, report_position: Callable[[], object]) -> None:
    for number, _ in enumerate(stream.elements()):
        event = stream.value()
        if isinstance(event, dict):
            collector.take(event)
        if number % _TELLING == 0:
            report_position()
