"""Cells of tables of imported files: quantities, processes, and names that stay apart when they are cut."""

from __future__ import annotations

from dataclasses import replace
from pathlib import PurePath
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from tui_probe.draw import units
from tui_probe.draw.printable import printable
from tui_probe.draw.shorten import cut_apart, shorten_apart
from tui_probe.draw.units import NOT_MEASURED
from tui_probe.nsight.importers.nsys_model import file_number, system_id

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from numpy.typing import NDArray

    from tui_probe.draw.table import Column, Row
    from tui_probe.nsight.analysis.kernel_groups import Shape
    from tui_probe.nsight.importers.nsys_model import Stream

_KERNEL_NAME_KEYS: Final = frozenset({"kernel", "after_name", "before_name"})
"""Keys of columns with names of kernels."""
_KERNEL_PART: Final = 1 / 3
_TEXT_PART: Final = 1 / 3
"""Parts of a table's width."""
_FILE_CELLS: Final = 14
"""Cells of a file in the label of a stream."""


def mean_count(value: float | None) -> str:
    """A mean of counts: whole where it is whole, else with a decimal."""
    if value is None:
        return NOT_MEASURED
    if abs(value - round(value)) < 0.005:
        return units.count(round(value))
    return units.decimal(value, 1)


def decimal(value: float | None) -> str:
    """``4.00``."""
    return units.decimal(value)


def percent(value: float | None) -> str:
    """Percent of a peak, ``43.3 %``."""
    return NOT_MEASURED if value is None else f"{value:.1f} %"


def nanoseconds(value: float | None) -> str:
    """A time in ns, as ``2.34 µs``."""
    return units.duration(None if value is None else value / 1e9)


def moment(value: float | None, digits: int = 3) -> str:
    """Format a time in ns as ``1 203.457 ms``: one unit for all, so that a column shows the order of events."""
    return NOT_MEASURED if value is None else f"{units.decimal(value / 1e6, digits)} ms"


def show_moments(columns: Iterable[Column[Row]], starts: NDArray[Any]) -> tuple[Column[Row], ...]:
    """The columns, with starts in ns if two of them look alike in µs."""
    sorted_starts = np.sort(starts)
    is_new = sorted_starts[1:] != sorted_starts[:-1]
    if not (is_new & (sorted_starts[1:] // 1000 == sorted_starts[:-1] // 1000)).any():
        return tuple(columns)
    return tuple(_in_ns(column) if column.key == "start_ns" else column for column in columns)


def _in_ns(column: Column[Row]) -> Column[Row]:
    value = column.value
    return replace(column, text=None if value is None else lambda row: moment(value(row), 6))


def quantity(value: float, unit: str) -> str:
    """A value in base units with its unit: ``264 GB/s``, ``6.36 MB``, ``2.34 µs``, ``25.57 %``, ``1 024 sector``."""
    formatter = {"byte": units.size, "byte/s": units.rate, "ns": nanoseconds}.get(unit)
    if formatter is not None and value >= 0:
        return formatter(value)
    number = units.count(int(value)) if value.is_integer() else units.decimal(value)
    return f"{number} {unit}".rstrip()


def stem(name: str) -> str:
    """A file in a table, where its ending tells nothing."""
    return name.removesuffix(".csv")


def short_names(paths: Sequence[str]) -> list[str]:
    """Files by their names, with folders where two have the same name."""
    names = [PurePath(path).name for path in paths]
    return [name if names.count(name) == 1 else path for name, path in zip(names, paths, strict=True)]


def shorten_names(
    columns: Iterable[Column[Row]], names: Iterable[str], part: float = _KERNEL_PART
) -> tuple[Column[Row], ...]:
    """The columns, with one shortening for all ``names`` of kernels, and ``part`` of the table for them."""
    shorten_apart_names = shorten_apart(map(printable, names))
    return tuple(
        replace(column, shorten=shorten_apart_names, readable=part) if column.key in _KERNEL_NAME_KEYS else column
        for column in columns
    )


def cut_texts(columns: Iterable[Column[Row]], key: str, texts: Iterable[str]) -> tuple[Column[Row], ...]:
    """The columns; that of ``key`` cuts these texts so that no two look alike."""
    cut_text = cut_apart(map(printable, texts))
    return tuple(
        replace(column, shorten=cut_text, readable=_TEXT_PART) if column.key == key else column for column in columns
    )


def shape_columns(columns: Iterable[Column[Row]], shapes: Iterable[tuple[str, Shape]]) -> tuple[Column[Row], ...]:
    """The columns; grid and block are in every table in which nothing else tells two rows of a file apart."""
    varying_keys: set[str] = set()
    first_shapes: dict[tuple[str, str], Shape] = {}
    for file, shape in shapes:
        first_shape = first_shapes.setdefault((file, shape.kernel), shape)
        varying_keys |= {side for side in ("grid", "block") if getattr(first_shape, side) != getattr(shape, side)}
    return tuple(replace(column, rank=0) if column.key in varying_keys else column for column in columns)


class ProcessNames:
    """Names for the processes of some streams of these files."""

    def __init__(self, files: Sequence[str], streams: Sequence[Stream]) -> None:
        processes = {stream.process for stream in streams}
        self.has_several = len(processes) > 1
        """True if there are several processes."""
        self.has_files = len(files) > 1 and len({*map(system_id, processes)}) < len(processes)
        """True if ids of the system do not distinguish them."""
        self._files = short_names(files)
        self.cut_file = cut_apart(self._files)

    def file(self, stream: Stream | None) -> str | None:
        """The file of a stream's process."""
        number = None if stream is None else file_number(stream.process)
        return None if number is None else self._files[number]

    def label(self, stream: Stream) -> str:
        """The process of a stream in few cells, with a blank behind it; "" where there is one process."""
        if not self.has_several:
            return ""
        if self.has_files and (file := self.file(stream)) is not None:
            return f"{self.cut_file(file, _FILE_CELLS)} "
        number = system_id(stream.process)
        return "" if number is None else f"{number} "
