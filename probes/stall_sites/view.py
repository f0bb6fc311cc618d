"""Page ``stalls``: the wait sites of a kernel by share of warp life, from all groups that had a launch."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from tui_probe.draw import units
from tui_probe.draw.table import Column, as_record, in_data
from tui_probe.draw.table_content import titled_table
from tui_probe.draw.view import Document
from tui_probe.errors import TraceError
from tui_probe.probekit import probe_results
from tui_probe.probekit.finding import percent
from tui_probe.probekit.lines import ShareValue
from tui_probe.probekit.page_kinds import ViewSource
from tui_probe.probekit.probe_view import probe_view
from tui_probe.probekit.recognised import analysis_name
from tui_probe.trace.source_lines import source_position

from .analysis import DELAY, GROUPS, analyse

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tui_probe.draw.spans import Line
    from tui_probe.draw.view import Progress
    from tui_probe.probekit.probe_results import ProbeResult

    from .analysis import Stalls, StallSite

_HEADINGS: Final = 3
_MIN_PRODUCER: Final = 12


@dataclass(frozen=True, slots=True)
class StallRow:
    """A wait site, and the launch that measured it."""

    site: StallSite
    life: int

    @property
    def share(self) -> float | None:
        """Part of the warp life of its launch."""
        return self.site.cycles / self.life if self.life else None

    @property
    def null_share(self) -> float | None:
        """Part of warp life that clocks without a wait between them take."""
        return (self.site.waited - self.site.cycles) / self.life if self.life else None


def _share_text(value: float | None) -> str:
    return units.NOT_MEASURED if value is None else ShareValue(value).text


def _source(row: StallRow) -> str:
    return source_position(row.site.source) or units.NOT_MEASURED


_COLUMNS: Final[tuple[Column[StallRow], ...]] = (
    Column("share", lambda r: r.share, "warp life", lambda r: _share_text(r.share)),
    Column("offset", lambda r: int(r.site.line), "offset", lambda r: f"{r.site.line:#06x}", rank=3),
    Column("sass", lambda r: r.site.opcode, "SASS", lambda r: r.site.opcode or "", False, 2),
    Column("file", lambda r: r.site.source.file if r.site.source else None),
    Column("line", lambda r: r.site.source.line if r.site.source else None),
    Column("place", None, "source", _source, False),
    Column("waits_for", lambda r: r.site.kind or None, "waits for", lambda r: r.site.kind or units.NOT_MEASURED, False),
    Column(
        "producer",
        lambda r: r.site.producer or None,
        "producer",
        lambda r: r.site.producer or units.NOT_MEASURED,
        False,
        narrow=_MIN_PRODUCER,
    ),
    Column(
        "producer_offset",
        lambda r: int(r.site.wait.producers[0].line) if r.site.wait and r.site.wait.producers else None,
    ),
    Column("executions", lambda r: r.site.passes, "executions", lambda r: units.count(r.site.passes), rank=1),
    Column("cycles", lambda r: r.site.cycles),
    Column(
        "mean",
        lambda r: r.site.per_pass,
        "mean",
        lambda r: units.NOT_MEASURED if r.site.per_pass is None else units.count(round(r.site.per_pass)),
    ),
    Column(
        "longest",
        lambda r: r.site.longest,
        "longest",
        lambda r: units.NOT_MEASURED if r.site.longest is None else units.count(r.site.longest),
        rank=2,
    ),
    Column("null_share", lambda r: r.null_share, "null", lambda r: _share_text(r.null_share), rank=4),
)


class StallsView(Document):
    """The newest result of each group."""

    def __init__(self, source: ViewSource, progress: Progress) -> None:
        progress(0.0)
        self.title = f"Stalls of {source.kernel.demangled}"
        self.results = _results(source)
        rows = [StallRow(site, stalls.life) for _, stalls in self.results for site in stalls.sites]
        self.rows = sorted(rows, key=lambda row: -(row.share or 0))
        self.slowdowns = [result.kernel.slowdown for result, _ in self.results]
        """Times as long as without the probe that launches took with each group; None if not timed."""
        self._head = f"{source.kernel.demangled}, {', '.join(result.which for result, _ in self.results)}"
        progress(1.0)

    @property
    def measured(self) -> float:
        """Part of warp life at measured sites."""
        return sum(row.share or 0 for row in self.rows)

    @property
    def not_measured(self) -> int | None:
        """Wait sites that no launch has measured yet."""
        totals = [stalls.total for _, stalls in self.results if stalls.total is not None]
        return max(totals) - len(self.rows) if totals else None

    def notes(self) -> Iterator[str]:
        """Return notes on time that the shares leave out."""
        issuing = max(0.0, 1 - self.measured)
        other = "issuing, or waiting at an instruction that was not measured"
        yield f"{percent(issuing, 1)} of warp life: {other}"
        if self.not_measured:
            yield f"{units.counted(self.not_measured, 'wait site')} not measured yet: more launches needed"
        yield self._cost_note()
        yield (
            f"mean and longest wait ± {DELAY} cycles: the probe delays each execution, so a measured wait may be"
            " shorter than without it. Waits include cycles in which a warp is ready but not selected. null: share of"
            " the clock reads themselves"
        )

    def _cost_note(self) -> str:
        """Return how much longer launches took with the probe."""
        texts = [units.NOT_MEASURED if ratio is None else f"{ratio:.2f}" for ratio in self.slowdowns]
        measured = any(ratio is not None for ratio in self.slowdowns)
        how = " times as long with the probe" if measured else ": too few launches were timed with and without it"
        return f"cost of the probe: {', '.join(dict.fromkeys(texts))}{how}"

    def lines(self, width: int) -> Sequence[Line]:
        return titled_table(self._head, _COLUMNS, self.rows, self.notes(), width)

    def pinned(self, width: int) -> int:
        del width
        return _HEADINGS if self.rows else 1

    def counted(self) -> int:
        return len(self.rows)

    def gutter(self, width: int) -> int:
        return width

    def ptx_line(self, number: int, width: int) -> int | None:
        """The offset of the row's instruction."""
        place = number - self.pinned(width)
        return self.rows[place].site.line if 0 <= place < len(self.rows) else None

    def place_of(self, ptx_line: int, width: int) -> int | None:
        """The row of an instruction."""
        for place, row in enumerate(self.rows):
            if row.site.line == ptx_line:
                return place + self.pinned(width)
        return None

    def target_view(self) -> str:
        return "sass"

    def record(self) -> dict[str, Any]:
        return {
            "measured_share": self.measured,
            "sites_not_measured": self.not_measured,
            "uncertainty_cycles": DELAY,
            "launches": [result.launch.number if result.launch else None for result, _ in self.results],
            "sites": [as_record(_COLUMNS, row) for row in self.rows],
            "slowdowns": self.slowdowns,
        }

    def cells(self) -> Iterator[Sequence[object]]:
        columns = in_data(_COLUMNS)
        yield [column.key for column in columns]
        for row in self.rows:
            yield [column.value(row) for column in columns if column.value is not None]


def _results(source: ViewSource) -> list[tuple[ProbeResult, Stalls]]:
    """Return the newest result of each group of the kernel. Raises TraceError for none that can be read."""
    kernel = next((own for own in source.trace.kernels if own.index == source.kernel.index), None)
    newest = []
    for probed in kernel.by_probe() if kernel else (source.kernel,):
        if analysis_name(probed) in GROUPS and probed.result_rows:
            result = probe_results.read_result(ViewSource(source.trace, probed))
            newest.append((result, analyse(result.result, result.sites, result.kernel.folder)))
    if not newest:
        raise TraceError(f"{source.trace.directory}: there is no result of {GROUPS[0]}")
    return newest


STALLS_VIEW: Final = probe_view(
    "stalls",
    "Stalls",
    "SASS instructions at which warps wait, for how long, and for which earlier instruction",
    StallsView,
    explanation=(
        "One row per SASS instruction at which warps wait, by its share of warp life: the cycles from entry to exit"
        " summed over all warps. The producer is the earlier instruction whose result, barrier or copies the"
        " warp needs.",
        "Each launch measures eight of the instructions, so the shares of different rows are from different launches.",
    ),
    order=15,
)
