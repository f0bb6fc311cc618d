"""The launches of a kernel: a line each, made only where it is visible."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, cast

import numpy as np

from tui_probe.draw import units
from tui_probe.draw.formats import as_record
from tui_probe.draw.lazy import LazyLines
from tui_probe.draw.spans import pad
from tui_probe.draw.spans import width as cells_of
from tui_probe.draw.table import Column, cell, fitted_cell, in_data, in_tables, layout
from tui_probe.draw.view import Document
from tui_probe.pages.launch_counts import left_out
from tui_probe.pages.launch_report import LAUNCH_COLUMNS, LaunchRow, place_of
from tui_probe.probekit.kind import Kind
from tui_probe.trace.parameters import read_parameters

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from tui_probe.draw.spans import Line
    from tui_probe.draw.view import Progress
    from tui_probe.probekit.kind import Source
    from tui_probe.trace.model import Kernel, Trace

_GAP: Final = 2
_SAMPLE: Final = 200
"""Rows at each end whose cells say how wide the columns are."""
ORDERS: Final = ("launch", "blocks", "threads per block", "probe memory", "outcome")


@dataclass(frozen=True, slots=True)
class Row(LaunchRow):
    """A launch of this kernel. ``parameters`` are its words in the log, None where it was not probed."""

    parameters: bytes | None = None


def _values(row: Row) -> list[int] | None:
    """The parameters as numbers; one that is longer than 8 bytes is the hexadecimal digits of its bytes."""
    return None if row.parameters is None else [int(word, 16) for word in row.parameters.split() if _is_hex(word)]


def _is_hex(word: bytes) -> bool:
    try:
        int(word, 16)
    except ValueError:
        return False
    return True


def _shown(row: Row) -> str:
    return units.NOT_MEASURED if row.parameters is None else row.parameters.decode("ascii", "replace")


_OF_KERNEL: Final = ("kernel", "name", "demangled")
COLUMNS: Final[tuple[Column[Row], ...]] = (
    *cast("tuple[Column[Row], ...]", tuple(column for column in LAUNCH_COLUMNS if column.key not in _OF_KERNEL)),
    Column("parameters", _values, "parameters (hex)", _shown, False, 8, 20),
)


class Launches(Document):
    """The launches there were when it was opened, in an order that can be changed."""

    def __init__(self, kernel: Kernel, trace: Trace, parameters: Mapping[int, bytes]) -> None:
        self.title = f"Launches of {kernel.demangled}"
        self.trace = trace
        self.left_out = left_out(kernel)
        self.parameters = parameters
        self.log_order = np.array(kernel.rows, dtype=np.int64)
        self.rows = self.log_order
        self.order = ORDERS[0]
        self.reversed = False
        self._natural: list[int] = []

    def row(self, place: int) -> Row:
        """The launch at a place of the present order."""
        launch = self.trace.launches[int(self.rows[place])]
        epoch = self.trace.state.zero_ns
        seconds = None if launch.time_ns is None or epoch is None else (launch.time_ns - epoch) / 1e9
        result = None if launch.result is None else self.trace.results.name(launch.result)
        parameters = None if launch.number is None else self.parameters.get(launch.number)
        probe = None if launch.result is None else self.trace.results.probe(launch.result)
        return Row(launch, "", "", seconds, result, probe, place_of(self.trace, launch), parameters)

    # -- drawing

    def lines(self, width: int) -> Sequence[Line]:
        """Headings, and one line per launch."""
        columns = layout(in_tables(COLUMNS), self._widths(), width - 1)
        titles = (pad(column.title, cells, right=column.right) for column, cells in columns)
        head: Line = ((" " + (" " * _GAP).join(titles), "head"),)

        def make(place: int) -> Line:
            row = self.row(place)
            spans = [(" ", "")]
            for column, cells in columns:
                spans += [(fitted_cell(column, row, cells), self._role(column, row)), (" " * _GAP, "")]
            return tuple(spans)

        return LazyLines(len(self.rows), make, [head])

    def pinned(self, width: int) -> int:
        """The headings."""
        del width
        return 1

    def gutter(self, width: int) -> int:
        """The whole row."""
        return width

    def _widths(self) -> list[int]:
        """What the columns would like, by a sample of the rows: they stand still while one scrolls."""
        if not self._natural:
            count = len(self.rows)
            places = [*range(min(count, _SAMPLE)), *range(max(_SAMPLE, count - _SAMPLE), count)]
            rows = [self.row(place) for place in places]
            self._natural = [
                max([cells_of(column.title), *(cells_of(cell(column, row)) for row in rows)])
                for column in in_tables(COLUMNS)
            ]
        return self._natural

    @staticmethod
    def _role(column: Column[Row], row: Row) -> str:
        if column.key == "outcome":
            return "bad" if row.launch.status else "" if row.launch.probed else "dim"
        return "dim" if column.key in ("launch", "parameters") else ""

    # -- order

    def commands(self) -> Mapping[str, str]:
        """Order and direction."""
        following = ORDERS[(ORDERS.index(self.order) + 1) % len(ORDERS)]
        return {"order": f"sort by {following}", "reverse": "reverse the order"}

    def press(self, command: str) -> str | None:
        """Sort anew."""
        if command == "order":
            self.order, self.reversed = ORDERS[(ORDERS.index(self.order) + 1) % len(ORDERS)], False
        elif command == "reverse":
            self.reversed = not self.reversed
        self._sort()
        return None

    def _sort(self) -> None:
        rows = self.log_order
        if self.order != ORDERS[0]:
            rows = rows[np.argsort(self._keys(), kind="stable")]
        self.rows = rows[::-1] if self.reversed else rows

    def _keys(self) -> NDArray[np.int64]:
        launches = self.trace.launches
        if self.order == "probe memory":
            return np.asarray(launches.column("probe_bytes")[self.log_order], dtype=np.int64)
        if self.order == "outcome":
            failed = launches.column("status")[self.log_order] > 0
            return np.where(failed, -1, launches.column("probed")[self.log_order])
        shape = launches.column("shape")[self.log_order].astype(np.int64)
        sides = shape[:, :3] if self.order == "blocks" else shape[:, 3:6]
        return sides[:, 0] * sides[:, 1] * sides[:, 2]

    def status(self) -> list[str]:
        """How many launches are not in it, and how it is sorted."""
        told = [self.left_out] if self.left_out else []
        if self.order == ORDERS[0] and not self.reversed:
            return told
        return [*told, f"sorted by {self.order}{', reversed' if self.reversed else ''}"]

    def choices(self) -> Mapping[str, Any]:
        """The order."""
        return {"order": self.order, "reversed": self.reversed}

    def choose(self, choices: Mapping[str, Any]) -> None:
        """The same one."""
        self.order, self.reversed = choices["order"], choices["reversed"]
        self._sort()

    # -- data

    def record(self) -> dict[str, Any]:
        """The launches in the order shown."""
        return {"launches": [as_record(COLUMNS, self.row(place)) for place in range(len(self.rows))]}

    def cells(self) -> Iterator[Sequence[object]]:
        """One row per launch."""
        data = [column for column in in_data(COLUMNS) if column.value is not None]
        yield [column.key for column in data]
        for place in range(len(self.rows)):
            row = self.row(place)
            yield [column.value(row) for column in data if column.value is not None]


def missing(source: Source) -> str | None:
    """Why there is none."""
    if source.kernel.launches and not source.kernel.launches_recorded:
        return "its launches are counted, and none has lines of its own in the log"
    return None if source.kernel.launches else "it was loaded and never launched"


def _open(source: Source, progress: Progress) -> Launches:
    return Launches(source.kernel, source.trace, read_parameters(source.trace, source.kernel.index, progress))


KIND: Final = Kind(
    "launches",
    "Launches",
    "every launch: grid, block, parameters, stream, probe memory, result",
    missing,
    _open,
    explanation=(
        "One row per launch: grid, block, parameters as the kernel got them, stream, memory of the probe, and the"
        " result file. Launches are numbered from 0 through the process. “Passed through” says that the original ran,"
        " and why.",
    ),
    order=0,
    short="Launch",
    grows=True,
)
