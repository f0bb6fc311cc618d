"""Page ``launches``: rows of the report, and the list of one kernel on the screen."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Final, cast

import numpy as np

from tui_probe.draw import units
from tui_probe.draw.shell import command_lines, shell_word
from tui_probe.draw.shorten import shorten
from tui_probe.draw.spans import LazyLines
from tui_probe.draw.spans import width as cells_of
from tui_probe.draw.table import Column, cell, fitted_cell, in_tables, layout, table
from tui_probe.draw.table_content import RemadeRows, TableContent, heading
from tui_probe.draw.units import NOT_MEASURED
from tui_probe.draw.view import Document
from tui_probe.probekit.measured import analyse_result, metric_text
from tui_probe.probekit.metric import leading_metrics
from tui_probe.probekit.page_kinds import ViewKind
from tui_probe.probekit.record_counts import unlisted_launches_text
from tui_probe.trace.device_memory import read_parameters

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from numpy.typing import NDArray

    from tui_probe.draw.spans import Line
    from tui_probe.draw.view import Progress
    from tui_probe.probekit.metric import MetricValue
    from tui_probe.probekit.page_kinds import ViewSource
    from tui_probe.trace.graphs import GraphPosition
    from tui_probe.trace.launches import Launch
    from tui_probe.trace.model import Kernel, Trace

MAX_LISTED: Final = 1000
"""Launches that text has a line for each of."""
LISTED_AT_ENDS: Final = 100
"""Launches listed at each end, the first and the newest, if there are more."""
_GAP: Final = 2
_SAMPLE: Final = 200
"""Rows at each end whose cells say how wide the columns are."""
LAUNCH_ORDERS: Final = ("launch", "blocks", "threads per block", "probe memory", "outcome")
_ORDER_COLUMNS: Final = dict(zip(LAUNCH_ORDERS, ("launch", "grid", "block", "probe_bytes", "outcome"), strict=True))
"""The column that each order is of."""
_OF_KERNEL: Final = ("kernel", "name", "demangled")
_RESULTS_READ: Final = 64
"""Newest results of a kernel that are read for the metrics of their launches: the page is opened again as it grows."""
_MOST_RESULT_BYTES: Final = 4 << 20
"""Bytes of a result that is read for that; the page Results reads all."""


@dataclass(frozen=True, slots=True)
class LaunchRow:
    """A launch with what the trace says of it elsewhere. ``seconds`` is its time since the start of the process."""

    launch: Launch
    name: str
    demangled: str
    seconds: float | None
    result: str | None
    probe: str | None = None
    """The probe that made the result, of several in the run."""
    place: GraphPosition | None = None
    """The node of a graph that it was, in which replay."""


def launch_rows(trace: Trace) -> Iterator[LaunchRow]:
    """All launches; a kernel that the log does not name is ``?``."""
    return _rows(trace, trace.launches)


def launch_content(trace: Trace) -> TableContent[LaunchRow]:
    """Return the page of all launches, in the order of the log."""
    rows = RemadeRows(partial(launch_rows, trace))
    return TableContent("launches", "Launches", LAUNCH_COLUMNS, rows, report=partial(launch_lines, trace))


def launch_lines(trace: Trace, cells: int) -> Iterator[str]:
    """The launches as a table, or those at both ends where there are many."""
    launches, total = trace.launches, len(trace.launches)
    if total <= MAX_LISTED:
        yield from table(LAUNCH_COLUMNS, list(launch_rows(trace)), cells)
        return
    first, last = range(LISTED_AT_ENDS), range(total - LISTED_AT_ENDS, total)
    lines = list(table(LAUNCH_COLUMNS, list(_rows(trace, (launches[i] for i in (*first, *last)))), cells))
    yield from lines[:-LISTED_AT_ENDS]
    others = units.counted(total - 2 * LISTED_AT_ENDS, "more launch")
    command = f"tui-probe show launches {shell_word(trace.directory)}:KERNEL"
    yield from command_lines(f"… {others}: --format csv lists all; for one kernel:", command, cells)
    yield from lines[-LISTED_AT_ENDS:]


def _rows(trace: Trace, launches: Iterable[Launch]) -> Iterator[LaunchRow]:
    for launch in launches:
        kernel = trace.kernels.get(launch.kernel)
        name, demangled = (kernel.name, kernel.demangled) if kernel else ("?", "?")
        yield LaunchRow(launch, name, demangled, *_launch_details(trace, launch))


def _launch_details(trace: Trace, launch: Launch) -> tuple[float | None, str | None, str | None, GraphPosition | None]:
    """Seconds since the start of the process, the result file, its probe, and the node of a graph."""
    epoch = trace.state.zero_ns
    seconds = None if launch.time_ns is None or epoch is None else (launch.time_ns - epoch) / 1e9
    result = None if launch.result is None else trace.results.name(launch.result)
    probes = [name for row in trace.launches.results(launch.row) if (name := trace.results.probe(row))]
    probe = ", ".join(probes) or None
    return seconds, result, probe, graph_position(trace, launch)


def graph_position(trace: Trace, launch: Launch) -> GraphPosition | None:
    """Return the position of a probed launch in a graph; None for one of the program's own."""
    return trace.graphs.place_of(launch.number) if launch.probed and launch.number is not None else None


def _number(value: int | None) -> str:
    return NOT_MEASURED if value is None else str(value)


def _outcome(row: LaunchRow) -> str:
    """``probed``, or why the original was launched, and the driver's error if there was one."""
    launch = row.launch
    probed = f"probed by {row.probe}" if row.probe else "probed"
    if row.place is not None:
        probed += f" as node {row.place.node} of graph {row.place.graph}, replay {row.place.replay}"
    text = probed if launch.probed else launch.reason or "ran unprobed"
    return f"{text}, failed with CUDA error {launch.status}" if launch.status else text


LAUNCH_COLUMNS: Final[tuple[Column[LaunchRow], ...]] = (
    Column("launch", lambda r: r.launch.number, "launch", lambda r: _number(r.launch.number)),
    Column(
        "time_s",
        lambda r: r.seconds,
        "started at (s)",
        lambda r: NOT_MEASURED if r.seconds is None else f"{r.seconds:.6f}",
        rank=3,
    ),
    Column("kernel", lambda r: r.launch.kernel if r.launch.kernel >= 0 else None, "#", lambda r: str(r.launch.kernel)),
    Column("name", lambda r: r.name),
    Column("demangled", lambda r: r.demangled, "kernel", lambda r: r.demangled, False, 0, 16, shorten),
    Column("grid", lambda r: r.launch.grid, "grid", lambda r: units.extent(r.launch.grid), rank=1),
    Column("block", lambda r: r.launch.block, "block", lambda r: units.extent(r.launch.block), rank=1),
    Column("shared", lambda r: r.launch.shared, "shared", lambda r: units.size(r.launch.shared), rank=5),
    Column(
        "stream",
        lambda r: r.launch.stream,
        "stream",
        lambda r: "–" if r.launch.stream is None else f"{r.launch.stream:#x}",
        rank=6,
    ),
    Column("probed", lambda r: r.launch.probed),
    Column("status", lambda r: r.launch.status),
    Column("reason", lambda r: r.launch.reason),
    Column(
        "probe_bytes", lambda r: r.launch.probe_bytes, "probe mem", lambda r: units.size(r.launch.probe_bytes), rank=4
    ),
    Column("result", lambda r: r.result, "result", lambda r: r.result or NOT_MEASURED, right=False, rank=7),
    Column("outcome", None, "outcome", _outcome, False, 2, 20),
    Column("reason_code", lambda r: r.launch.reason_code),
    Column("probe", lambda r: r.probe),
    Column("graph", lambda r: None if r.place is None else r.place.graph),
    Column("replay", lambda r: None if r.place is None else r.place.replay),
    Column("node", lambda r: None if r.place is None else r.place.node),
)
"""``status`` is the driver's answer to a probed launch (0 success), ``time_s`` seconds since the epoch of the trace."""


@dataclass(frozen=True, slots=True)
class LaunchLine(LaunchRow):
    """A launch of this kernel. ``parameters`` are its words in the log, None where it was not probed."""

    parameters: bytes | None = None
    metrics: str = ""
    """The leading metric of each of its results; "" if it has none, or none that was read."""


def _of_kernel(columns: Sequence[Column[LaunchRow]]) -> tuple[Column[LaunchLine], ...]:
    """The columns that rows of one kernel do not have in common."""
    return cast("tuple[Column[LaunchLine], ...]", tuple(column for column in columns if column.key not in _OF_KERNEL))


def _values(row: LaunchLine) -> list[int] | None:
    """The parameters as numbers; one that is longer than 8 bytes is the hexadecimal digits of its bytes."""
    return None if row.parameters is None else [int(word, 16) for word in row.parameters.split() if _is_hex(word)]


def _is_hex(word: bytes) -> bool:
    try:
        int(word, 16)
    except ValueError:
        return False
    return True


def _parameters_text(row: LaunchLine) -> str:
    return units.NOT_MEASURED if row.parameters is None else row.parameters.decode("ascii", "replace")


_OUTCOME_AT: Final = next(place for place, column in enumerate(LAUNCH_COLUMNS) if column.key == "outcome")
COLUMNS: Final[tuple[Column[LaunchLine], ...]] = (
    *_of_kernel(LAUNCH_COLUMNS[:_OUTCOME_AT]),
    Column("metrics", None, "metrics", lambda r: r.metrics, False, 2, 20),
    *_of_kernel(LAUNCH_COLUMNS[_OUTCOME_AT:]),
    Column("parameters", _values, "parameters (hex)", _parameters_text, False, 8, 20),
)


class Launches(Document):
    """The launches there were when it was opened, in an order that can be changed."""

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
        self.keys: Mapping[str, str] = {}
        self.title = f"Launches of {kernel.demangled}"
        self.trace = trace
        self.left_out = unlisted_launches_text(kernel)
        self.parameters = parameters
        self.log_order = np.array(kernel.rows, dtype=np.int64)
        self.rows = self.log_order
        self.order = LAUNCH_ORDERS[0]
        self.reversed = False
        self._natural: list[int] = []
        self.content = TableContent("launches", self.title, COLUMNS, RemadeRows(self._ordered_rows))

    def _ordered_rows(self) -> Iterator[LaunchLine]:
        return map(self.row, range(len(self.rows)))

    def row(self, place: int) -> LaunchLine:
        """The launch at a place of the present order."""
        launch = self.trace.launches[int(self.rows[place])]
        parameters = None if launch.number is None else self.parameters.get(launch.number)
        metrics = self.metrics.get(launch.row, "")
        return LaunchLine(launch, "", "", *_launch_details(self.trace, launch), parameters, metrics)

    # -- drawing

    def lines(self, width: int) -> Sequence[Line]:
        """Headings, and one line per launch."""
        columns = layout(in_tables(COLUMNS), self._widths(), width - 1)
        marks = {_ORDER_COLUMNS[self.order]: "↓" if self.reversed else "↑"} if self._is_sorted else {}
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
        """The headings."""
        del width
        return 1

    def gutter(self, width: int) -> int:
        """The whole row."""
        return width

    def _widths(self) -> list[int]:
        """Natural widths of the columns, by a sample of the rows: they be still while one scrolls."""
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
    def _role(column: Column[LaunchLine], row: LaunchLine) -> str:
        if column.key == "outcome":
            return "bad" if row.launch.status else "" if row.launch.probed else "dim"
        return "dim" if column.key in ("launch", "parameters") else ""

    # -- places

    def begins(self, width: int) -> int:
        """The launch at hand, if it is in the log."""
        places = np.flatnonzero(self.rows == (-1 if self.launch_row is None else self.launch_row))
        return self.pinned(width) + (int(places[0]) if len(places) else 0)

    def launch_at(self, number: int) -> int | None:
        """The launch of a row."""
        place = number - 1
        return int(self.rows[place]) if 0 <= place < len(self.rows) else None

    def name_keys(self, keys: Mapping[str, str]) -> None:
        self.keys = keys

    # -- order

    def commands(self) -> Mapping[str, str]:
        """Order and direction."""
        following = LAUNCH_ORDERS[(LAUNCH_ORDERS.index(self.order) + 1) % len(LAUNCH_ORDERS)]
        return {"order": f"sort by {following}", "reverse": "reverse the order"}

    def press(self, command: str) -> str | None:
        """Sort anew."""
        if command == "order":
            self.order, self.reversed = LAUNCH_ORDERS[(LAUNCH_ORDERS.index(self.order) + 1) % len(LAUNCH_ORDERS)], False
        elif command == "reverse":
            self.reversed = not self.reversed
        self._sort()
        return None

    def sortable(self) -> Mapping[str, str]:
        """Return the orders."""
        return {order: order for order in LAUNCH_ORDERS}

    @property
    def sorted_column(self) -> str:
        """The present order."""
        return self.order

    def sort_by(self, key: str) -> None:
        """Sort anew; the same order again reverses the rows."""
        self.order, self.reversed = key, key == self.order and not self.reversed
        self._sort()

    @property
    def _is_sorted(self) -> bool:
        """Return whether the order is another one than that of the log."""
        return self.order != LAUNCH_ORDERS[0] or self.reversed

    def _sort(self) -> None:
        rows = self.log_order
        if self.order != LAUNCH_ORDERS[0]:
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
        """Count the launches that are left out, and name the order."""
        parts = [f"values: {self.keys['results']} Results"] if "results" in self.keys else []
        parts += [self.left_out] if self.left_out else []
        if not self._is_sorted:
            return parts
        return [*parts, f"sorted by {self.order}{', reversed' if self.reversed else ''}"]

    def choices(self) -> Mapping[str, Any]:
        """The order."""
        return {"order": self.order, "reversed": self.reversed}

    def choose(self, choices: Mapping[str, Any]) -> None:
        """Restore the order."""
        self.order, self.reversed = choices["order"], choices["reversed"]
        self._sort()

    # -- data

    def record(self) -> dict[str, Any]:
        """The launches in the order shown."""
        return {"launches": [*self.content.records()]}

    def cells(self) -> Iterator[Sequence[object]]:
        """Return a row per launch."""
        return self.content.cells()


def missing(source: ViewSource) -> str | None:
    """Return why there is no launch."""
    if source.kernel.launches and not source.kernel.launches_recorded:
        return "its launches were only counted; the log has no lines for them"
    return None if source.kernel.launches else "it was loaded and never launched"


def _open(source: ViewSource, progress: Progress) -> Launches:
    kernel, parameters = source.kernel.kernel, read_parameters(source.trace, source.kernel.index, progress)
    return Launches(kernel, source.trace, parameters, _metrics_by_row(source), _row_at_hand(source))


def _metrics_by_row(source: ViewSource) -> dict[int, str]:
    """Return the metrics of the launches with the newest results, by row."""
    trace, kernel = source.trace, source.kernel.kernel
    values: dict[int, list[Sequence[MetricValue]]] = {}
    for row in kernel.result_rows[-_RESULTS_READ:]:
        launch = trace.results.launch(row)
        if launch is not None and _is_small(trace.results.path(row)):
            values.setdefault(launch, []).append(analyse_result(trace, kernel, row).metric_values)
    return {
        row: ", ".join(f"{value.label} {metric_text(value)}" for value in leading_metrics(results))
        for row, results in values.items()
    }


def _is_small(path: Path | None) -> bool:
    try:
        return path is not None and path.stat().st_size <= _MOST_RESULT_BYTES
    except OSError:
        return False


def _row_at_hand(source: ViewSource) -> int | None:
    """The row of the launch that was chosen, else of that with the newest result; None without any."""
    if source.launch is not None:
        return source.launch.row
    newest = source.kernel.find_newest_result()
    return None if newest is None else source.trace.results.launch(newest)


KIND: Final = ViewKind(
    "launches",
    "Launches",
    "every launch: grid, block, parameters, stream, probe memory, result",
    missing,
    _open,
    explanation=(
        "One row per launch: grid, block, kernel parameters, stream, probe memory, and the result file. Launches are"
        " numbered from 0 per process. “Ran unprobed” means that the original kernel ran instead; the reason follows.",
        f"The column metrics has the main metric of each result, for the newest {_RESULTS_READ} results.",
        "Enter selects the launch of a row for all pages of this kernel. Page Results has the values of each launch.",
    ),
    order=0,
    short="Launch",
    grows=True,
)
