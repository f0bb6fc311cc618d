"""Reads Chrome traces (JSON, also with gzip) of PyTorch's profiler, JAX and Proton: the kernels of GPUs, the calls that
launched them, and operators, modules and annotations as ranges. Each file is one process.

PyTorch  ``cat`` is kernel, gpu_memcpy, cuda_runtime, cpu_op, …; a call has the correlation of its kernels
JAX      kernels are in threads named ``Stream #N`` of processes named ``/device:GPU:N``
Proton   ``cat`` is kernel; the scopes around a kernel are its ``call_stack``
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tui_probe.errors import ImportFileError
from tui_probe.nsight.importers.chrome_events import Collector
from tui_probe.nsight.importers.chrome_file import unpacked
from tui_probe.nsight.importers.chrome_report import report_of
from tui_probe.nsight.importers.json_stream import JsonStream, Truncated
from tui_probe.nsight.importers.text_file import part_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from tui_probe.nsight.importers.nsys_model import NsysReport

_EVENTS: Final = "traceEvents"
_TELLING: Final = 4096
"""Events between two reports of progress."""


def read_chrome(paths: Sequence[Path], progress: Callable[[float], object] = lambda _: None) -> NsysReport:
    """One profile of one file per process. ImportFileError names the file that cannot be used."""
    parts = [_read(path, number, part_of(progress, number, len(paths))) for number, path in enumerate(paths)]
    report = report_of([str(path) for path in paths], parts)
    if not len(report.kernels):
        raise ImportFileError(f"{paths[0]}: a Chrome trace without kernels of a GPU: record it with CUDA activities")
    return report


def _read(path: Path, number: int, progress: Callable[[float], object]) -> Collector:
    found = Collector(number)
    try:
        with unpacked(path) as file:
            size = max(path.stat().st_size, 1)
            raw = getattr(file, "fileobj", None) or file

            def told() -> None:
                progress(min(1.0, raw.tell() / size))

            _take(JsonStream(file), found, told)
    except Truncated:
        found.is_cut_off = True
    except (OSError, EOFError) as error:
        if not isinstance(error, OSError) or found.count:
            found.is_cut_off = True
        else:
            raise ImportFileError(f"{path}: {error.strerror or error}: name a file that can be read") from error
    except (ValueError, RecursionError) as error:
        raise ImportFileError(f"{path}: no Chrome trace that can be read ({error}): export it again") from error
    return found


def _take(stream: JsonStream, found: Collector, told: Callable[[], object]) -> None:
    """All events, in an array by itself or in the member of an object; the other members are small."""
    if stream.peek() == "[":
        _take_events(stream, found, told)
        return
    for key in stream.members():
        if key == _EVENTS:
            _take_events(stream, found, told)
        else:
            found.about(key, stream.value())


def _take_events(stream: JsonStream, found: Collector, told: Callable[[], object]) -> None:
    for number, _ in enumerate(stream.elements()):
        event = stream.value()
        if isinstance(event, dict):
            found.take(event)
        if number % _TELLING == 0:
            told()
