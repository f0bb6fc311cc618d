"""Declarations of pages: their names, kinds, output formats, and names in older schemas."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal, cast, get_args

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from tui_probe.draw.table_content import TableContent
    from tui_probe.draw.view import Progress, View
    from tui_probe.trace.launches import Launch
    from tui_probe.trace.model import Kernel, Trace

FIXED_PAGES: Final = ("summary", "ptx", "diff", "sass", "process", "launches")
"""Pages of a kernel whose number is the same for every kernel."""
SHARED_PAGES: Final = ("lines", "timeline", "latency", "results", "source", "probe", "explain")
"""Pages of a kernel that several probes fill."""
DRAWN_PAGES: Final = ("timeline",)
"""Those of them that are drawings."""
_NUMBERED: Final = (*FIXED_PAGES, "lines", "timeline", "source")
_UNNUMBERED: Final = ("results", "probe", "explain")
PROBE_PAGE_NUMBER: Final = 10
"""Pages that only some probes have share this number: whatever probe ran, what it alone shows is behind one key."""
TRACE_PAGES: Final = ("kernels", "summary", "launches", "results", "ranges", "graphs", "events")
"""Pages of a whole trace."""
RESERVED_PAGES: Final = frozenset((*FIXED_PAGES, *SHARED_PAGES, *TRACE_PAGES))


def page_number(name: str) -> int:
    """The number of a page of a kernel, the same whatever probe ran; 0 for a page without one."""
    if name in _UNNUMBERED:
        return 0
    return _NUMBERED.index(name) + 1 if name in _NUMBERED else PROBE_PAGE_NUMBER


@dataclass(frozen=True, slots=True)
class ViewSource:
    """What a view is about: a launch of a kernel (None: the newest that has what the view needs)."""

    trace: Trace
    kernel: Kernel
    launch: Launch | None = None


@dataclass(frozen=True, slots=True)
class ViewKind:
    """A kind of view. ``name`` is the word for ``tui-probe show``, ``title`` that of its page, ``about`` one line.

    ``missing`` tells why there is nothing to show and what to do (“run with -p NAME”), None if there is; it reads
    little. ``open`` reads what is needed; it raises TraceError naming the file.
    """

    name: str
    title: str
    about: str
    missing: Callable[[ViewSource], str | None]
    open: Callable[[ViewSource, Progress], View]
    explanation: tuple[str, ...] = ()
    """How to read it, a paragraph each."""
    order: int = 50
    """Where its page stands among others; those of the kernel itself come first."""
    short: str = ""
    """The title of its tab where there is little room; "" for the whole one."""
    grows: bool = False
    """Whether it is read again while the kernel is still launched."""
    drawn: bool = False
    """Whether it is a drawing: with a window that moves, a cursor, and a worst place that it knows."""
    fed_by: Callable[[], tuple[str, ...]] = tuple
    """The names of the probes whose results it shows, the one to run first; none if every kernel has what it shows."""

    @property
    def probes(self) -> tuple[str, ...]:
        """The probes whose results it shows."""
        return self.fed_by()


@dataclass(frozen=True, slots=True)
class TracePage:
    """A page about a whole trace: report, data and screen take its cells from what ``open`` returns.

    ``open`` calls ``progress`` where results are read. ``title`` and ``about`` are those of the page of a kernel that
    has the same name, where there is one.
    """

    name: str
    open: Callable[[Trace, Progress], TableContent[Any]]
    title: str = ""
    about: str = ""
    headed: bool = True
    """Whether its text begins with what the trace is of."""


@dataclass(frozen=True, slots=True)
class LazyPage:
    """One page; ``make`` may take a while. ``about`` is how to read it, a paragraph each.

    Without a terminal the first page is written, and those ``in_text``.
    """

    name: str
    title: str
    make: Callable[[], View]
    about: Sequence[str] = ()
    in_text: bool = False


@dataclass(frozen=True, slots=True)
class PageSet:
    """Files that were read. ``title`` says which."""

    title: str
    pages: Sequence[LazyPage]


FORMER_REPORT_PAGES: Final = {"counts": "results", "log": "events"}
"""What ``report --page`` called pages before."""
FORMER_SHOW_PAGES: Final = {"log": "process"}
"""What ``show`` called them."""

Format = Literal["table", "json", "csv", "md"]
FORMATS: Final[tuple[Format, ...]] = ("table", "json", "csv", "md")


Schema = Literal[1, 2]
SCHEMAS: Final = cast("tuple[Schema, ...]", get_args(Schema))
NEWEST_SCHEMA: Final[Schema] = 2

_SCHEMA_1_STATUS: Final = {"excluded": "filtered"}
_SCHEMA_1_MEASURES: Final = {
    "sectors_per_request": "sectors_a_request",
    "lanes_per_execution": "lanes_an_execution",
    "passes_per_access": "passes_an_access",
    "cycles_per_visit": "cycles_a_visit",
    "cycles_per_iteration": "cycles_an_iteration",
    "cycles_per_wait": "cycles_a_wait",
}
"""What was measured of a line. Results had figures of some of these names before, and have them in both schemas."""
_SCHEMA_1_LATENCY: Final = {
    "one_block": "a_block",
    "one_gap": "a_gap",
    "one_warp": "a_warp_waits",
    "one_barrier": "at_a_barrier",
}
_SCHEMA_1_KEYS: Final[Mapping[str, Mapping[str, str]]] = {
    **dict.fromkeys(("lines", "source", "ptx", "diff", "sass"), _SCHEMA_1_MEASURES),
    "latency": _SCHEMA_1_LATENCY,
}
"""For each page the keys that schema 1 calls otherwise."""
SCHEMA_2_KEYS: Final = frozenset((
    "time_share", "time_of", "time_samples", "time_samples_host_bound", "time_total_ms", "time_total_doubt_ms",
    "time_mean_ms", "time_mean_doubt_ms", "time_median_ms", "time_p99_ms", "time_min_ms", "time_max_ms",
    "slowdown_doubt", "way",
))  # fmt: skip
"""What only schema 2 says of a kernel."""
_KERNEL_PAGES: Final = ("kernels", "summary")
_SCHEMA_1_LATENCY_ROWS: Final = {new.replace("_", " "): old.replace("_", " ") for new, old in _SCHEMA_1_LATENCY.items()}
"""The same as they name rows of CSV."""


def in_schema(record: Any, page: str, schema: Schema) -> Any:
    """A record, or anything in one, in the words of a schema."""
    return record if schema == NEWEST_SCHEMA else _in_schema_1(record, _SCHEMA_1_KEYS.get(page, {}), _new_keys(page))


def _new_keys(page: str) -> frozenset[str]:
    return SCHEMA_2_KEYS if page in _KERNEL_PAGES else frozenset()


def _in_schema_1(value: Any, keys: Mapping[str, str], added: frozenset[str]) -> Any:
    if isinstance(value, dict):
        kept = ((key, each) for key, each in value.items() if key not in added)
        return {keys.get(key, key): _status_in_schema_1(key, _in_schema_1(each, keys, added)) for key, each in kept}
    return [_in_schema_1(each, keys, added) for each in value] if isinstance(value, list) else value


def _status_in_schema_1(key: str, value: Any) -> Any:
    return _SCHEMA_1_STATUS.get(value, value) if key == "status" and isinstance(value, str) else value


def rows_in_schema(rows: Iterable[Sequence[object]], page: str, schema: Schema) -> Iterator[Sequence[object]]:
    """The rows of a table in CSV, the headings first."""
    if schema == NEWEST_SCHEMA:
        yield from rows
        return
    keys, added = _SCHEMA_1_KEYS.get(page, {}), _new_keys(page)
    headings: list[str] = []
    kept: list[int] = []
    for row in rows:
        if not kept:
            kept = [i for i, name in enumerate(row) if name not in added]
            headings = [str(row[i]) for i in kept]
            yield [keys.get(name, name) for name in headings]
            continue
        row = [row[i] for i in kept]
        first = str(row[0])
        if first in added:
            continue
        names = [headings[0], *(first if first == "status" else name for name in headings[1:])]
        values = [_status_in_schema_1(name, value) for name, value in zip(names, row, strict=True)]
        yield [_SCHEMA_1_LATENCY_ROWS.get(first, values[0]) if page == "latency" else values[0], *values[1:]]
