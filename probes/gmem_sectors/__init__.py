"""Global memory sectors: the probe, its metrics, findings, lines and page."""

from __future__ import annotations

from dataclasses import replace
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Final

from tui_probe.draw import units
from tui_probe.draw.units import NOT_MEASURED, tenths
from tui_probe.probekit.finding import (
    SHARE,
    UNCOALESCED_ADVICE,
    Finding,
    Gain,
    brief_text,
    counted,
    derived,
    line_place,
    notable_lines,
)
from tui_probe.probekit.lines import IDEAL_SECTORS_NOTE, LineMeasure, LineRow, LineRows, LineSpec
from tui_probe.probekit.metric import Metric, metrics_by_line, show_known, show_never, show_nonzero
from tui_probe.probekit.probe import Probe, Question
from tui_probe.probekit.result_tables import count_kind
from tui_probe.records.copied_boxes import copies_text, read_copies
from tui_probe.records.counter_sums import ratio
from tui_probe.trace.launch_shape import SECTOR_BYTES

from .analysis import (
    analyse,
    analyse_copies,
    analyse_lines,
    is_counted,
    requests_and_sectors,
    waste_by_source,
    waste_of_lines,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tui_probe.probekit.finding import Evidence
    from tui_probe.probekit.lines import LineValue
    from tui_probe.probekit.probe_results import ProbeResult
    from tui_probe.records.counter_sums import CountsByLine, LineSums

    from .analysis import MemorySectors

_COALESCED: Final = 4
"""Sectors of a request whose 32 lanes take 4 bytes each, side by side: more may be waste."""
_FLAGGED_SHARE: Final = 0.1
"""The part of all sectors from which on what is wasted stands out."""
_SECTORS_SCALE: Final = (
    "coalesced accesses of 4, 8 or 16 bytes per lane touch 4, 8 or 16 sectors; the worst case is 32 sectors, one per"
    " lane"
)
SECTORS: Final = count_kind(
    "sectors",
    "Sectors",
    "global memory requests, and sectors per request",
    (
        "A request is one load or store that a warp executes with at least one active lane. A sector is 32 bytes. If"
        " each lane accesses 4 bytes, adjacent lanes need 4 sectors per request. If each lane accesses a different"
        " sector, a request needs 32 sectors. Nsight Compute counts in the same way.",
    ),
    order=80,
)


def _has_copies(sectors: MemorySectors, value: Any) -> bool:
    del value
    return bool(sectors.copy_requests)


def _wasted_percent(kind: str) -> Callable[[MemorySectors], float | None]:
    """Return the reader of the per cent of excessive sectors."""

    def excessive_percent(sectors: MemorySectors) -> float | None:
        share: float | None = getattr(sectors, f"wasted_of_{kind}")
        return None if share is None else 100 * share

    return excessive_percent


def _ideal_per_load(sectors: MemorySectors) -> float | None:
    return None if sectors.load_ideal is None else ratio(sectors.load_ideal, sectors.load_requests)


def _ideal_per_store(sectors: MemorySectors) -> float | None:
    return None if sectors.store_ideal is None else ratio(sectors.store_ideal, sectors.store_requests)


METRICS: Final = (
    Metric("load_requests", "load requests", better="lower", quantity="load requests", of_work=True),
    Metric("load_sectors", "load sectors", better="lower", quantity="load sectors", of_work=True,
           ideal=attrgetter("load_ideal")),
    Metric("sectors_per_load", "sectors per load", better="lower", over_launches="mean", of_work=True,
           ideal=_ideal_per_load),
    Metric("store_requests", "store requests", better="lower", quantity="store requests", of_work=True),
    Metric("store_sectors", "store sectors", better="lower", quantity="store sectors", of_work=True,
           ideal=attrgetter("store_ideal")),
    Metric("sectors_per_store", "sectors per store", better="lower", over_launches="mean", of_work=True,
           ideal=_ideal_per_store),
    Metric("load_ideal", "ideal load sectors", is_shown=show_never, standalone_title="ideal load sectors"),
    Metric(
        "wasted_of_loads",
        "excessive load sectors",
        "%",
        standalone_title="excessive load sectors",
        better="lower",
        over_launches="mean",
        read=_wasted_percent("loads"),
        ideal=lambda _: 0,
        is_shown=show_known,
    ),
    Metric("store_ideal", "ideal store sectors", is_shown=show_never, standalone_title="ideal store sectors"),
    Metric(
        "wasted_of_stores",
        "excessive store sectors",
        "%",
        standalone_title="excessive store sectors",
        better="lower",
        over_launches="mean",
        read=_wasted_percent("stores"),
        ideal=lambda _: 0,
        is_shown=show_known,
    ),
    Metric("copy_requests", "load requests by cp.async", better="lower", is_shown=_has_copies, of_work=True),
    Metric("copy_sectors", "load sectors by cp.async", better="lower", is_shown=_has_copies, of_work=True),
    Metric("sectors_per_copy", "sectors per cp.async", better="lower", over_launches="mean", is_shown=_has_copies,
           of_work=True),
    Metric("matrix_accesses", "uncounted wmma loads and stores", is_shown=show_nonzero),
    Metric("generic_accesses", "uncounted generic accesses, per thread", is_shown=show_nonzero),
    Metric("bulk_copies", "bulk copies", better="lower", is_shown=show_nonzero, of_work=True),
    Metric("bulk_load_sectors", "load sectors of bulk copies", better="lower", is_shown=show_nonzero, of_work=True),
    Metric("bulk_store_sectors", "store sectors of bulk copies", better="lower", is_shown=show_nonzero, of_work=True),
    Metric("unsized_copies", "tensor-map copies of unknown size", is_shown=show_nonzero),
)  # fmt: skip
BY_LINE: Final = metrics_by_line(METRICS, "most sectors per request")


def findings(probe_result: ProbeResult, sectors: MemorySectors) -> Iterator[Finding]:
    """Loads and stores; bulk copies where nothing else is recorded."""
    del probe_result
    if sectors.has_copies_only:
        yield _bulk_finding(sectors)
        return
    yield from _sector_findings(sectors, "coalescing")


def _bulk_finding(sectors: MemorySectors) -> Finding:
    loads, stores = sectors.bulk_load_sectors, sectors.bulk_store_sectors
    reason = copies_text(has_all=sectors.bulk_copies is not None)
    text = f"{units.count(loads)} sectors read, {units.count(stores)} written by bulk copies; {reason}"
    values = {"bulk_load_sectors": counted(loads), "bulk_store_sectors": counted(stores)}
    return Finding("bulk_sectors", "bulk copies", text, "sectors", values=values)


def findings_by_line(probe_result: ProbeResult, counts: CountsByLine[MemorySectors]) -> Iterator[Finding]:
    """The worst lines of source, then all accesses."""
    sectors = sum(requests_and_sectors(line)[1] for line in counts.lines)
    lines = waste_by_source(counts.lines, probe_result.kernel.folder)
    is_flagged = sum(line.sums["wasted"] for line in lines) > _FLAGGED_SHARE * sectors
    yield from notable_lines((_line_finding(line, sectors) for line in lines), has_large_loss=is_flagged)
    yield from _sector_findings(counts.analysis, "")


def _line_finding(line: LineSums, sectors: int) -> Finding:
    """``line`` is one of ``waste_by_source``; ``sectors`` are those of the kernel."""
    requests, sector_count, ideal, excess = (line.sums[name] for name in ("requests", "sectors", "ideal", "wasted"))
    mean, ideal_mean = ratio(sector_count, requests), ratio(ideal, requests) or 0.0
    text = f"{line_place(line)}, {mean or 0:.1f} sectors per request, ideal {tenths(ideal_mean)}"
    brief = brief_text(line.opcode, f"{tenths(mean or 0.0)} sectors, ideal {tenths(ideal_mean)}")
    values = {
        "sectors_per_request": derived(mean, "sectors", ideal_mean),
        "sectors_needed": derived(ideal_mean, "sectors"),
        "wasted_share": derived(excess / sectors, SHARE, 0),
    }
    is_flagged = excess > _FLAGGED_SHARE * sectors
    gain = Gain(SECTOR_BYTES * excess, SECTOR_BYTES * sectors, "B")
    return Finding("worst_access", "uncoalesced", text, "lines", line.line, is_flagged, values=values, gain=gain,
                   advice=UNCOALESCED_ADVICE, brief=brief)  # fmt: skip


def _sector_findings(counts: MemorySectors, question: str) -> Iterator[Finding]:
    """Yield the findings of loads and of stores, where both their requests and sectors are known.

    ``question`` is the question that uncoalesced accesses raise; "" where another finding has answered it.
    """
    for name, requests, sectors, ideal in (
        ("loads", counts.load_requests, counts.load_sectors, counts.load_ideal),
        ("stores", counts.store_requests, counts.store_sectors, counts.store_ideal),
    ):
        if not requests or sectors is None:
            continue
        if ideal is None:
            yield _sectors_without_ideal(name, requests, sectors, question)
        else:
            yield _sectors_with_ideal(name, requests, sectors, ideal, question)


def _sectors_without_ideal(name: str, requests: int, sectors: int, question: str) -> Finding:
    """Return the finding of a result that does not tell how many sectors the accesses need."""
    mean = sectors / requests
    return Finding(
        name,
        name,
        _mean_text(requests, sectors),
        "sectors",
        next_question=question if mean > _COALESCED else "",
        values=_sector_values(requests, sectors, None),
    )


def _sectors_with_ideal(name: str, requests: int, sectors: int, ideal: int, question: str) -> Finding:
    """Return the finding of accesses that need ``ideal`` sectors at least."""
    text, values = _mean_text(requests, sectors), _sector_values(requests, sectors, ideal)
    excess = sectors - ideal
    if not excess:
        return Finding(name, name, f"{text}, the minimum", "sectors", values=values)
    text += f", ideal {tenths(ideal / requests)}"
    if not question:
        return Finding(name, name, text, "sectors", values=values)
    is_flagged = excess > _FLAGGED_SHARE * sectors
    gain = Gain(SECTOR_BYTES * excess, SECTOR_BYTES * sectors, "B")
    raised_question = question if excess > 0 else ""
    return Finding(
        name, name, text, "sectors", stands_out=is_flagged, next_question=raised_question, values=values, gain=gain
    )


def _mean_text(requests: int, sectors: int) -> str:
    return f"{units.counted(requests, 'request')}, {sectors / requests:.1f} sectors each"


def _sector_values(requests: int, sectors: int, ideal: int | None) -> dict[str, Evidence]:
    return {
        "requests": counted(requests),
        "sectors": counted(sectors, ideal=ideal),
        "sectors_per_request": derived(sectors / requests, "sectors", None if ideal is None else ideal / requests),
        "ideal_sectors": counted(ideal),
    }


def _line_rows(probe_result: ProbeResult, counts: CountsByLine[MemorySectors]) -> LineRows:
    rows = []
    for waste in waste_of_lines(counts.lines, probe_result.kernel.folder):
        values: dict[str, LineValue] = {
            "wasted sectors": waste.wasted,
            "wasted": waste.share,
            "sectors": waste.sectors,
            "ideal": waste.ideal,
            "requests": waste.requests,
            "sectors per request": ratio(waste.sectors, waste.requests),
        }
        if not is_counted(waste.line):
            values = dict.fromkeys(values)
        rows.append(LineRow(waste.line.line, waste.line.source, {**values, "access": waste.access}))
    all_counted = all(map(is_counted, counts.lines))
    notes = [] if all_counted else [f"{NOT_MEASURED}: wmma and generic accesses are not counted"]
    return LineRows(rows, [IDEAL_SECTORS_NOTE, *notes])


LINES: Final = LineSpec(
    (
        LineMeasure("wasted sectors", "sum", title="excessive sectors"),
        LineMeasure("wasted", "share", ("wasted sectors", "sectors"), title="excessive"),
        LineMeasure("sectors", "sum"),
        LineMeasure("ideal", "sum"),
        LineMeasure("requests", "sum"),
        LineMeasure("sectors per request", "ratio", ("sectors", "requests")),
        LineMeasure("access", "first", better="neither"),
    ),
    "wasted sectors",
    _line_rows,
)


def notes(sectors: MemorySectors) -> list[str]:
    """Loads and stores of the newest launch, and what their numbers mean."""
    if sectors.has_copies_only:
        return [copies_text(has_all=sectors.bulk_copies is not None)]
    ratios = (("load", sectors.sectors_per_load), ("store", sectors.sectors_per_store))
    sentences = [f"a {name} touches {ratio:.2f} sectors on average" for name, ratio in ratios if ratio is not None]
    return [*sentences, _SECTORS_SCALE] if sentences else []


def _analyse(probe_result: ProbeResult) -> MemorySectors:
    copies = read_copies(
        probe_result.result, probe_result.kernel.folder, probe_result.kernel.trace, probe_result.launch
    )
    return (
        _without_older_copies(probe_result, analyse(probe_result.result)) if copies is None else analyse_copies(copies)
    )


def _analyse_lines(probe_result: ProbeResult) -> CountsByLine[MemorySectors]:
    counts = analyse_lines(probe_result.result, probe_result.sites, probe_result.kernel.folder)
    return replace(counts, analysis=_without_older_copies(probe_result, counts.analysis))


def _without_older_copies(probe_result: ProbeResult, sectors: MemorySectors) -> MemorySectors:
    """Return the sectors without those of bulk copies if a kernel in SASS has none: older versions left them out."""
    info = probe_result.kernel.read_info()
    if info is None or info.graft is None or sectors.bulk_copies or sectors.unsized_copies:
        return sectors
    return replace(sectors, bulk_copies=None, bulk_load_sectors=None, bulk_store_sectors=None, unsized_copies=None)


PROBES: Final = (
    Probe(
        name="gmem_sectors",
        analyse=_analyse,
        metrics=METRICS,
        findings=findings,
        views=(SECTORS,),
        notes=notes,
    ),
    Probe(
        name="gmem_sectors_by_line",
        analyse=_analyse_lines,
        metrics=BY_LINE,
        question=Question(
            "coalescing",
            "which loads and stores are uncoalesced?",
            10,
            r"\b(ld|st)\.[a-z.:]*global",
            "strided uncoalesced waste wasted traffic sectors lines",
        ),
        findings=findings_by_line,
        lines=LINES,
        views=(SECTORS,),
        notes=lambda counts: notes(counts.analysis),
    ),
)
