"""The launches of a trace as columns, in the order of its log."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from tui_probe.draw import units
from tui_probe.draw.shell import command_lines, shell_word
from tui_probe.draw.shorten import shorten
from tui_probe.draw.table import Column, table
from tui_probe.draw.units import NOT_MEASURED

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from tui_probe.trace.graphs import Place
    from tui_probe.trace.launches import Launch
    from tui_probe.trace.model import Trace


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
    place: Place | None = None
    """The node of a graph that it was, in which replay."""


LISTED: Final = 1000
"""Launches that text has a line for each of."""
ENDS: Final = 100
"""Of more launches it has so many of the first and as many of the newest."""


def launch_rows(trace: Trace) -> Iterator[LaunchRow]:
    """All launches; a kernel that the log does not name is ``?``."""
    return _rows(trace, trace.launches)


def launch_lines(trace: Trace, cells: int) -> Iterator[str]:
    """The launches as a table, or those at both ends where there are many."""
    launches, total = trace.launches, len(trace.launches)
    if total <= LISTED:
        yield from table(LAUNCH_COLUMNS, list(launch_rows(trace)), cells)
        return
    first, last = range(ENDS), range(total - ENDS, total)
    lines = list(table(LAUNCH_COLUMNS, list(_rows(trace, (launches[i] for i in (*first, *last)))), cells))
    yield from lines[:-ENDS]
    rest = units.counted(total - 2 * ENDS, "more launch")
    command = f"tui-probe show launches {shell_word(trace.directory)}:KERNEL"
    yield from command_lines(f"… {rest}: --format csv has all; of one kernel:", command, cells)
    yield from lines[-ENDS:]


def _rows(trace: Trace, launches: Iterable[Launch]) -> Iterator[LaunchRow]:
    epoch = trace.state.zero_ns
    for launch in launches:
        kernel = trace.kernels.get(launch.kernel)
        seconds = None if launch.time_ns is None or epoch is None else (launch.time_ns - epoch) / 1e9
        result = None if launch.result is None else trace.results.name(launch.result)
        probe = None if launch.result is None else trace.results.probe(launch.result)
        name, demangled = (kernel.name, kernel.demangled) if kernel else ("?", "?")
        yield LaunchRow(launch, name, demangled, seconds, result, probe, place_of(trace, launch))


def place_of(trace: Trace, launch: Launch) -> Place | None:
    """Where a probed launch was in a graph; None for one of the program's own."""
    return trace.graphs.place_of(launch.number) if launch.probed and launch.number is not None else None


def _number(value: int | None) -> str:
    return NOT_MEASURED if value is None else str(value)


def _outcome(row: LaunchRow) -> str:
    """``probed``, or why the original was launched, and the driver's error if there was one."""
    launch = row.launch
    probed = f"probed by {row.probe}" if row.probe else "probed"
    if row.place is not None:
        probed += f" as node {row.place.node} of graph {row.place.graph}, replay {row.place.replay}"
    words = probed if launch.probed else launch.reason or "passed through"
    return f"{words}, failed with CUDA error {launch.status}" if launch.status else words


LAUNCH_COLUMNS: Final[tuple[Column[LaunchRow], ...]] = (
    Column("launch", lambda r: r.launch.number, "launch", lambda r: _number(r.launch.number)),
    Column(
        "time_s",
        lambda r: r.seconds,
        "time (s)",
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
