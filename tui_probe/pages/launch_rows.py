"""Launches of a trace as rows: their details, their columns, and the report page of all launches."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Final, NamedTuple

from tui_probe.draw import units
from tui_probe.draw.printable import shell_word
from tui_probe.draw.shorten import shorten
from tui_probe.draw.spans import command_lines
from tui_probe.draw.table import Column, table
from tui_probe.draw.table_content import RemadeRows, TableContent
from tui_probe.draw.units import NOT_MEASURED

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from tui_probe.trace.graphs import GraphPosition
    from tui_probe.trace.launches import Launch
    from tui_probe.trace.model import Trace

MAX_LISTED: Final = 1000
"""Maximum number of launches for which the report lists all."""
LISTED_AT_ENDS: Final = 100
"""Launches listed at each end, the first and the newest, if there are more."""


class LaunchDetails(NamedTuple):
    """Facts about a launch from other parts of the trace."""

    seconds: float | None
    """Start of the launch in seconds since the start of the process."""
    result: str | None
    """Name of the result file."""
    probe: str | None
    """Names of the probes with a result of the launch, in a run with several probes."""
    position: GraphPosition | None
    """Graph, node and replay of a launch in a graph."""


def launch_details(trace: Trace, launch: Launch) -> LaunchDetails:
    """Look up the details of a launch."""
    epoch = trace.state.zero_ns
    probes = [name for row in trace.launches.results(launch.row) if (name := trace.results.probe(row))]
    return LaunchDetails(
        seconds=None if launch.time_ns is None or epoch is None else (launch.time_ns - epoch) / 1e9,
        result=None if launch.result is None else trace.results.name(launch.result),
        probe=", ".join(probes) or None,
        position=_graph_position(trace, launch),
    )


def _graph_position(trace: Trace, launch: Launch) -> GraphPosition | None:
    """Return the position of a probed launch in a graph; None for one of the program's own."""
    return trace.graphs.position_of(launch.number) if launch.probed and launch.number is not None else None


@dataclass(frozen=True, slots=True)
class LaunchRow:
    """A launch with its details."""

    launch: Launch
    details: LaunchDetails


@dataclass(frozen=True, slots=True)
class NamedLaunchRow(LaunchRow):
    """A launch with the names of its kernel."""

    name: str
    demangled: str


def _number_text(value: int | None) -> str:
    return NOT_MEASURED if value is None else str(value)


def _start_text(row: LaunchRow) -> str:
    seconds = row.details.seconds
    return NOT_MEASURED if seconds is None else f"{seconds:.6f}"


def _stream_text(row: LaunchRow) -> str:
    return NOT_MEASURED if row.launch.stream is None else f"{row.launch.stream:#x}"


def _outcome_text(row: LaunchRow) -> str:
    """Return ``probe_text``, or why the original was launched, with the driver's error if there was one."""
    launch, details = row.launch, row.details
    probe_text = f"probed by {details.probe}" if details.probe else "probed"
    if details.position is not None:
        position = details.position
        probe_text += f" as node {position.node} of graph {position.graph}, replay {position.replay}"
    text = probe_text if launch.probed else launch.reason or "ran unprobed"
    return f"{text}, failed with CUDA error {launch.status}" if launch.status else text


START_COLUMNS: Final[tuple[Column[LaunchRow], ...]] = (
    Column("launch", lambda r: r.launch.number, "launch", lambda r: _number_text(r.launch.number)),
    Column("time_s", lambda r: r.details.seconds, "started at (s)", _start_text, rank=3),
)
"""``time_s`` is in seconds since the epoch of the trace."""
_KERNEL_COLUMNS: Final[tuple[Column[NamedLaunchRow], ...]] = (
    Column("kernel", lambda r: r.launch.kernel if r.launch.kernel >= 0 else None, "#", lambda r: str(r.launch.kernel)),
    Column("name", lambda r: r.name),
    Column(
        "demangled", lambda r: r.demangled, "kernel", lambda r: r.demangled, right=False, narrow=16, shorten=shorten
    ),
)
SHAPE_COLUMNS: Final[tuple[Column[LaunchRow], ...]] = (
    Column("grid", lambda r: r.launch.grid, "grid", lambda r: units.extent(r.launch.grid), rank=1),
    Column("block", lambda r: r.launch.block, "block", lambda r: units.extent(r.launch.block), rank=1),
    Column("shared", lambda r: r.launch.shared, "shared", lambda r: units.size(r.launch.shared), rank=5),
    Column("stream", lambda r: r.launch.stream, "stream", _stream_text, rank=6),
    Column("probed", lambda r: r.launch.probed),
    Column("status", lambda r: r.launch.status),
    Column("reason", lambda r: r.launch.reason),
    Column(
        "probe_bytes", lambda r: r.launch.probe_bytes, "probe mem", lambda r: units.size(r.launch.probe_bytes), rank=4
    ),
    Column(
        "result",
        lambda r: r.details.result,
        "result",
        lambda r: r.details.result or NOT_MEASURED,
        right=False,
        rank=7,
    ),
)
"""``status`` is the driver's answer to a probed launch, 0 for success."""
OUTCOME_COLUMNS: Final[tuple[Column[LaunchRow], ...]] = (
    Column("outcome", None, "outcome", _outcome_text, right=False, rank=2, narrow=20),
    Column("reason_code", lambda r: r.launch.reason_code),
    Column("probe", lambda r: r.details.probe),
    Column("graph", lambda r: None if r.details.position is None else r.details.position.graph),
    Column("replay", lambda r: None if r.details.position is None else r.details.position.replay),
    Column("node", lambda r: None if r.details.position is None else r.details.position.node),
)
LAUNCH_COLUMNS: Final[tuple[Column[NamedLaunchRow], ...]] = (
    *START_COLUMNS,
    *_KERNEL_COLUMNS,
    *SHAPE_COLUMNS,
    *OUTCOME_COLUMNS,
)


def launch_content(trace: Trace) -> TableContent[NamedLaunchRow]:
    """Return the page of all launches, in the order of the log."""
    rows = RemadeRows(partial(_all_rows, trace))
    return TableContent("launches", "Launches", LAUNCH_COLUMNS, rows, report=partial(_report_lines, trace))


def _all_rows(trace: Trace) -> Iterator[NamedLaunchRow]:
    return _rows(trace, trace.launches)


def _rows(trace: Trace, launches: Iterable[Launch]) -> Iterator[NamedLaunchRow]:
    """Yield the rows of these launches; a kernel that the log does not name is ``?``."""
    for launch in launches:
        kernel = trace.kernels.get(launch.kernel)
        name, demangled = (kernel.name, kernel.demangled) if kernel else ("?", "?")
        yield NamedLaunchRow(launch, launch_details(trace, launch), name, demangled)


def _report_lines(trace: Trace, cells: int) -> Iterator[str]:
    """Yield the launches as a table; of more than ``MAX_LISTED`` only the first and the newest."""
    launches, total = trace.launches, len(trace.launches)
    if total <= MAX_LISTED:
        yield from table(LAUNCH_COLUMNS, list(_all_rows(trace)), cells)
        return
    first_rows, last_rows = range(LISTED_AT_ENDS), range(total - LISTED_AT_ENDS, total)
    lines = list(table(LAUNCH_COLUMNS, list(_rows(trace, (launches[i] for i in (*first_rows, *last_rows)))), cells))
    yield from lines[:-LISTED_AT_ENDS]
    omitted_text = units.counted(total - 2 * LISTED_AT_ENDS, "more launch")
    command = f"tui-probe show launches {shell_word(trace.directory)}:KERNEL"
    yield f"… {omitted_text}; to list all launches, use --format csv"
    yield from command_lines("  launches of one kernel:", command, cells)
    yield from lines[-LISTED_AT_ENDS:]
