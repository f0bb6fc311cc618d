"""Page ``launches`` of a kernel: its launches in an order that the user chooses."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from tui_probe.draw import units
from tui_probe.draw.spans import LazyLines
from tui_probe.draw.spans import width as cells_of
from tui_probe.draw.table import Column, cell, fitted_cell, in_tables, layout
from tui_probe.draw.table_content import RemadeRows, TableContent, heading
from tui_probe.draw.view import Document
from tui_probe.pages.launch_rows import OUTCOME_COLUMNS, SHAPE_COLUMNS, START_COLUMNS, LaunchRow, launch_details
from tui_probe.probekit.measured import analyse_result, metric_text
from tui_probe.probekit.metric import leading_metrics
from tui_probe.probekit.page_kinds import ViewKind
from tui_probe.probekit.record_counts import unlisted_launches_text
from tui_probe.trace.device_memory import read_parameters

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from numpy.typing import NDArray

    from tui_probe.draw.spans import Line
    from tui_probe.draw.view import Progress
    from tui_probe.probekit.metric import MetricValue
    from tui_probe.probekit.page_kinds import ViewSource
    from tui_probe.trace.model import Kernel, Trace

_GAP: Final = 2
_SAMPLE: Final = 200
"""Rows at each end whose cells determine the widths of the columns."""
LAUNCH_ORDERS: Final = ("launch", "blocks", "threads per block", "probe memory", "outcome")
_ORDER_COLUMNS: Final = dict(zip(LAUNCH_ORDERS, ("launch", "grid", "block", "probe_bytes", "outcome"), strict=True))
"""The column that each order sorts by."""
_MAX_RESULTS: Final = 64
"""Newest results of a kernel that are read for the metrics of their launches: the page is opened again as it grows."""
_MAX_RESULT_BYTES: Final = 4 << 20
"""Maximum size of a result that is read for its metrics; the page Results reads all."""


@dataclass(frozen=True, slots=True)
class LaunchLine(LaunchRow):
    """A launch of the kernel with its parameters and metrics."""

    parameters: bytes | None
    """Parameters as the log has them: hexadecimal words. None where the launch was not probed."""
    metrics: str
    """The leading metric of each result of the launch; "" if it has none, or none that was read."""


def _parameter_values(row: LaunchLine) -> list[int] | None:
    """Return the parameters as numbers; a number has the bytes of one parameter, which may be more than 8.

    Words of a damaged log that are not hexadecimal are left out. The text of the column has all words.
    """
    return None if row.parameters is None else [int(word, 16) for word in row.parameters.split() if _is_hex(word)]


def _is_hex(word: bytes) -> bool:
    try:
        int(word, 16)
    except ValueError:
        return False
    return True


def _parameters_text(row: LaunchLine) -> str:
    return units.NOT_MEASURED if row.parameters is None else row.parameters.decode("ascii", "replace")


COLUMNS: Final[tuple[Column[LaunchLine], ...]] = (
    *START_COLUMNS,
    *SHAPE_COLUMNS,
    Column("metrics", None, "metrics", lambda r: r.metrics, right=False, rank=2, narrow=20),
    *OUTCOME_COLUMNS,
    Column("parameters", _parameter_values, "parameters (hex)", _parameters_text, right=False, rank=8, narrow=20),
)


class Launches(Document):
    """Launches of a kernel when the page was opened, in an order that can be changed."""

    def __init__(
        self,
        kernel: Kernel,
        trace: Trace,
        parameters: Mapping[int, bytes],
        metrics: Mapping[int, str],
        launch_row: int | None = None,
    ) -> None:
        self.launch_row = launch_row
        self.metrics = metrics
        """The metrics of launches whose results were read, by row."""
        self.page_keys: Mapping[str, str] = {}
        """Keys of other pages, by page."""
        self.title = f"Launches of {kernel.demangled}"
        self.trace = trace
        self.unlisted_text = unlisted_launches_text(kernel)
        self.parameters = parameters
        self.log_order = np.array(kernel.rows, dtype=np.int64)
        self.rows = self.log_order
        self.order = LAUNCH_ORDERS[0]
        self.is_reversed = False
        self._natural_widths: list[int] = []
        self.content = TableContent("launches", self.title, COLUMNS, RemadeRows(self._sorted_rows))

    def _sorted_rows(self) -> Iterator[LaunchLine]:
        return map(self.row, range(len(self.rows)))

    def row(self, place: int) -> LaunchLine:
        """Return the launch at a position of the present order."""
        launch = self.trace.launches[int(self.rows[place])]
        parameters = None if launch.number is None else self.parameters.get(launch.number)
        metrics = self.metrics.get(launch.row, "")
        return LaunchLine(launch, launch_details(self.trace, launch), parameters, metrics)

    # -- drawing

    def lines(self, width: int) -> Sequence[Line]:
        """Headings, and one line per launch."""
        columns = layout(in_tables(COLUMNS), self._column_widths(), width - 1)
        marks = {_ORDER_COLUMNS[self.order]: "↓" if self.is_reversed else "↑"} if self._is_sorted else {}
        titles = (
            heading(column.title, cells, marks.get(column.key, ""), right=column.right) for column, cells in columns
        )
        head: Line = ((f" {''.join(titles)}".rstrip(), "head"),)

        def make(place: int) -> Line:
            row = self.row(place)
            spans = [(" ", "")]
            for column, cells in columns:
                spans += [(fitted_cell(column, row, cells), self._role(column, row)), (" " * _GAP, "")]
            return tuple(spans)

        return LazyLines(len(self.rows), make, [head])

    def pinned(self, width: int) -> int:
        """Return the headings."""
        del width
        return 1

    def gutter(self, width: int) -> int:
        """Return the whole row."""
        return width

    def _column_widths(self) -> list[int]:
        """Return column widths from a sample of the rows, so that they do not change while scrolling."""
        if not self._natural_widths:
            count = len(self.rows)
            places = [*range(min(count, _SAMPLE)), *range(max(_SAMPLE, count - _SAMPLE), count)]
            rows = [self.row(place) for place in places]
            self._natural_widths = [
                max([cells_of(column.title), *(cells_of(cell(column, row)) for row in rows)])
                for column in in_tables(COLUMNS)
            ]
        return self._natural_widths

    @staticmethod
    def _role(column: Column[LaunchLine], row: LaunchLine) -> str:
        if column.key == "outcome":
            return "bad" if row.launch.status else "" if row.launch.probed else "dim"
        return "dim" if column.key in ("launch", "parameters") else ""

    # -- places

    def begins(self, width: int) -> int:
        """Return the line of the selected launch, if it is in the log, else the first."""
        places = np.flatnonzero(self.rows == (-1 if self.launch_row is None else self.launch_row))
        return self.pinned(width) + (int(places[0]) if len(places) else 0)

    def launch_at(self, number: int) -> int | None:
        """Return the row in the launch table of the launch at a line; None outside."""
        place = number - 1
        return int(self.rows[place]) if 0 <= place < len(self.rows) else None

    def name_keys(self, keys: Mapping[str, str]) -> None:
        self.page_keys = keys

    # -- order

    def commands(self) -> Mapping[str, str]:
        """Return the commands that change the order and the direction."""
        return {"order": f"sort by {self._next_order()}", "reverse": "reverse the order"}

    def _next_order(self) -> str:
        return LAUNCH_ORDERS[(LAUNCH_ORDERS.index(self.order) + 1) % len(LAUNCH_ORDERS)]

    def press(self, command: str) -> str | None:
        """Change the order or the direction, and sort."""
        if command == "order":
            self.order, self.is_reversed = self._next_order(), False
        elif command == "reverse":
            self.is_reversed = not self.is_reversed
        self._sort()
        return None

    def sortable(self) -> Mapping[str, str]:
        """Return the orders."""
        return {order: order for order in LAUNCH_ORDERS}

    @property
    def sorted_column(self) -> str:
        """Return the present order."""
        return self.order

    def sort_by(self, key: str) -> None:
        """Sort by an order; the present order again reverses the rows."""
        self.order, self.is_reversed = key, key == self.order and not self.is_reversed
        self._sort()

    @property
    def _is_sorted(self) -> bool:
        """Return whether the order is another one than that of the log."""
        return self.order != LAUNCH_ORDERS[0] or self.is_reversed

    def _sort(self) -> None:
        rows = self.log_order
        if self.order != LAUNCH_ORDERS[0]:
            rows = rows[np.argsort(self._sort_keys(), kind="stable")]
        self.rows = rows[::-1] if self.is_reversed else rows

    def _sort_keys(self) -> NDArray[np.int64]:
        """Return a number per launch, in the order of the log, that the present order sorts by."""
        launches = self.trace.launches
        if self.order == "probe memory":
            return np.asarray(launches.column("probe_bytes")[self.log_order], dtype=np.int64)
        if self.order == "outcome":
            is_failed = launches.column("status")[self.log_order] > 0
            return np.where(is_failed, -1, launches.column("probed")[self.log_order])
        sides = {"blocks": slice(0, 3), "threads per block": slice(3, 6)}[self.order]
        shape = launches.column("shape")[self.log_order, sides].astype(np.int64)
        return shape[:, 0] * shape[:, 1] * shape[:, 2]

    def status(self) -> list[str]:
        """Return the key of page Results, the number of launches left out, and the order."""
        parts = [f"values: {self.page_keys['results']} Results"] if "results" in self.page_keys else []
        parts += [self.unlisted_text] if self.unlisted_text else []
        if not self._is_sorted:
            return parts
        return [*parts, f"sorted by {self.order}{', reversed' if self.is_reversed else ''}"]

    def choices(self) -> Mapping[str, Any]:
        """Return the order and direction, to be restored later."""
        return {"order": self.order, "reversed": self.is_reversed}

    def choose(self, choices: Mapping[str, Any]) -> None:
        """Restore the order and direction."""
        self.order, self.is_reversed = choices["order"], choices["reversed"]
        self._sort()

    # -- data

    def record(self) -> dict[str, Any]:
        """Return the launches in the order shown."""
        return {"launches": [*self.content.records()]}

    def cells(self) -> Iterator[Sequence[object]]:
        """Return a row per launch."""
        return self.content.cells()


def unavailable_reason(source: ViewSource) -> str | None:
    """Return why there is no launch."""
    if source.kernel.launches and not source.kernel.launches_recorded:
        return "the launches of this kernel were only counted; the log does not list them"
    return None if source.kernel.launches else "the kernel was loaded but never launched"


def _open_view(source: ViewSource, progress: Progress) -> Launches:
    kernel, parameters = source.kernel.kernel, read_parameters(source.trace, source.kernel.index, progress)
    return Launches(kernel, source.trace, parameters, _metrics_by_row(source), _selected_row(source))


def _metrics_by_row(source: ViewSource) -> dict[int, str]:
    """Return the metrics of the launches with the newest results, by row."""
    trace, kernel = source.trace, source.kernel.kernel
    values: dict[int, list[Sequence[MetricValue]]] = {}
    for row in kernel.result_rows[-_MAX_RESULTS:]:
        launch = trace.results.launch(row)
        if launch is not None and _is_small(trace.results.path(row)):
            values.setdefault(launch, []).append(analyse_result(trace, kernel, row).metric_values)
    return {
        row: ", ".join(f"{value.label} {metric_text(value)}" for value in leading_metrics(results))
        for row, results in values.items()
    }


def _is_small(path: Path | None) -> bool:
    try:
        return path is not None and path.stat().st_size <= _MAX_RESULT_BYTES
    except OSError:
        return False


def _selected_row(source: ViewSource) -> int | None:
    """Return the row of the selected launch, else of the launch with the newest result; None without any."""
    if source.launch is not None:
        return source.launch.row
    newest_result = source.kernel.find_newest_result()
    return None if newest_result is None else source.trace.results.launch(newest_result)


KIND: Final = ViewKind(
    "launches",
    "Launches",
    "every launch: grid, block, parameters, stream, probe memory, result",
    unavailable_reason,
    _open_view,
    explanation=(
        "One row per launch: grid, block, kernel parameters, stream, probe memory, and the result file. Launches are"
        " numbered from 0 per process. “Ran unprobed” means that the original kernel ran; the reason follows.",
        f"The column “metrics” has the main metric of each of the newest {_MAX_RESULTS} results.",
        "Press Enter to select the launch of a row for all pages of this kernel. Page Results has the values of each"
        " launch.",
    ),
    order=0,
    short_title="Launch",
    grows=True,
)
