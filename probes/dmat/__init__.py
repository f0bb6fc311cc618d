"""Memory accesses over time: the probe, its metrics, findings and lines.

The compact variant takes half the memory and names no instruction.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from tui_probe.draw import units
from tui_probe.draw.shorten import view_heading
from tui_probe.probekit.finding import SHARE, UNCOALESCED_ADVICE, Finding, Gain, brief_text, counted, derived, place
from tui_probe.probekit.lines import IDEAL_SECTORS_NOTE, LineMeasure, LineRow, LineRows, LineSpec, ShareValue
from tui_probe.probekit.metric import Metric, metric_values, show_known, show_nonzero
from tui_probe.probekit.probe import Probe, Question, Stamps
from tui_probe.probekit.probe_view import probe_view
from tui_probe.records.copied_boxes import ONLY_COPIES_TEXT
from tui_probe.records.counter_sums import ratio
from tui_probe.trace.launch_shape import SECTOR_BYTES

from .accesses import COMPACT_NAME, accesses_of, first_start_ns
from .boxes import UNKNOWN_SIZE_TEXT
from .coalescing import AccessCount, AccessTable, by_line, table_or_count, worst_access

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tui_probe.draw.view import Progress, View
    from tui_probe.probekit.metric import MetricValue
    from tui_probe.probekit.page_kinds import ViewSource
    from tui_probe.probekit.probe_results import ProbeResult

    from .coalescing import LineAccesses, LineCopies

_FLAGGED_SHARE: Final = 0.1
"""The part of all sectors from which on what is wasted stands out."""


def _sectors_per_request(table: AccessTable) -> float | None:
    return ratio(table.sectors, table.requests)


def _ideal_per_request(table: AccessTable) -> float | None:
    """The fewest sectors per request; None where a row does not tell."""
    ideals = [row.ideal for row in table.rows]
    known_ideals = [ideal for ideal in ideals if ideal is not None]
    return ratio(sum(known_ideals), table.requests) if len(known_ideals) == len(ideals) else None


def _worst_line_ideal(table: AccessTable) -> float | None:
    worst = table.worst
    return None if worst is None or worst.ideal is None else ratio(worst.ideal, worst.requests)


def _worst_line(table: AccessTable) -> int | None:
    return table.worst.line if table.worst else None


def _worst_line_sectors(table: AccessTable) -> float | None:
    return table.worst.sectors_per_request if table.worst else None


def _accesses_per_thread(count: AccessCount) -> float | None:
    return None if count.accesses is None else ratio(count.accesses, count.threads)


def _is_incomplete(table: AccessTable, value: Any) -> bool:
    del value
    return table.kept != table.accesses


_TABLE_METRICS: Final = (
    Metric("accesses", "accesses", standalone_title="accesses of threads"),
    Metric("kept", "kept", is_shown=_is_incomplete, standalone_title="accesses kept"),
    Metric("requests", "requests", better="lower", of_work=True, standalone_title="requests of loads and stores"),
    Metric("sectors", "sectors", better="lower", of_work=True, standalone_title="sectors of loads and stores"),
    Metric(
        "sectors_per_request", "sectors per request", better="lower", over_launches="mean", read=_sectors_per_request,
        of_work=True, ideal=_ideal_per_request,
    ),
    Metric("footprint", "touched", "B", over_launches="mean", quantity="footprint", is_shown=show_known, page="dmat"),
    Metric(
        "worst_line", "most sectors per request at PTX line", place=True, over_launches="none", read=_worst_line,
        is_shown=show_known,
    ),
    Metric(
        "worst_sectors_per_request", "sectors per request at this line", better="lower", over_launches="largest",
        read=_worst_line_sectors, is_shown=show_known, of_work=True, ideal=_worst_line_ideal,
        standalone_title="max sectors per request of a line",
    ),
    Metric("box_copies", "bulk copies", is_shown=show_nonzero, of_work=True),
    Metric(
        "box_bytes", "by bulk copies", "B", better="lower", is_shown=show_nonzero, of_work=True,
        standalone_title="bytes of bulk copies",
    ),
    Metric("unsized_copies", "bulk copies of unknown size", is_shown=show_nonzero),
)  # fmt: skip
_COUNT_METRICS: Final = (
    Metric("accesses", "accesses", standalone_title="accesses of threads"),
    Metric("accesses_per_thread", "per thread", over_launches="mean", read=_accesses_per_thread),
    Metric("capacity", "records per thread", over_launches="largest"),
)
METRICS: Final = (*_TABLE_METRICS, *_COUNT_METRICS[1:])


def dmat_metrics(analysis: AccessTable | AccessCount) -> tuple[MetricValue, ...]:
    """Metrics of a table or a count, those that it has."""
    return metric_values(_TABLE_METRICS if isinstance(analysis, AccessTable) else _COUNT_METRICS, analysis)


def findings(probe_result: ProbeResult, analysis: AccessTable | AccessCount) -> Iterator[Finding]:
    """Yield the findings of the table, or of the count."""
    del probe_result
    if isinstance(analysis, AccessCount):
        yield _access_count_finding(analysis, "")
    elif analysis.requests is None or analysis.sectors is None:
        yield _bulk_copies_finding(analysis)
    else:
        yield from _worst_access_findings(analysis, analysis.sectors)
        yield _all_accesses_finding(analysis, analysis.requests, analysis.sectors)


def findings_of_compact(probe_result: ProbeResult, analysis: AccessTable | AccessCount) -> Iterator[Finding]:
    """Yield the number of accesses; compact records do not show which are uncoalesced."""
    del probe_result
    if isinstance(analysis, AccessCount):
        yield _access_count_finding(analysis, "coalescing")


def _access_count_finding(count: AccessCount, question: str) -> Finding:
    text = f"{units.count(count.accesses)}, at most {units.count(count.capacity)} kept per thread"
    return Finding(
        "accesses", "accesses", text, "dmat", next_question=question, values={"accesses": counted(count.accesses)}
    )


def _bulk_copies_finding(table: AccessTable) -> Finding:
    text = f"{units.counted(table.box_copies, 'bulk copy')}, {units.size(table.box_bytes)}"
    values = {"copies": counted(table.box_copies), "bytes": counted(table.box_bytes, "B")}
    return Finding("bulk_copies", "bulk copies", f"{text}; {ONLY_COPIES_TEXT}", "dmat", values=values)


def _worst_access_findings(table: AccessTable, sectors: int) -> Iterator[Finding]:
    worst_with_waste = worst_access(table.rows)
    if worst_with_waste is None:
        if sectors and all(row.used_share is not None for row in table.rows):
            yield Finding("coalesced", "coalesced", "no load or store moves more sectors than its bytes need", "lines")
        return
    worst, excess = worst_with_waste
    ideal_sectors = ((worst.ideal or 0) / worst.requests) if worst.requests else 0.0
    text = f"{_position(worst)}, {worst.sectors_per_request or 0:.1f} sectors per request"
    text += f", ideal {units.tenths(ideal_sectors)}"
    opcode = worst.code.opcode if worst.code else None
    brief = brief_text(
        opcode, f"{units.tenths(worst.sectors_per_request or 0.0)} sectors, ideal {units.tenths(ideal_sectors)}"
    )
    values = {
        "sectors_per_request": derived(worst.sectors_per_request, "sectors", ideal_sectors),
        "used": derived(worst.used_share, SHARE, 1),
        "sectors_needed": derived(ideal_sectors, "sectors"),
        "wasted_share": derived(excess / sectors, SHARE, 0),
    }
    gain = Gain(SECTOR_BYTES * excess, SECTOR_BYTES * sectors, "B")
    is_flagged = excess > _FLAGGED_SHARE * sectors
    yield Finding("worst_access", "uncoalesced", text, "lines", worst.line, is_flagged, values=values, gain=gain,
                  advice=UNCOALESCED_ADVICE, brief=brief)  # fmt: skip


def _position(row: LineAccesses) -> str:
    return place(row.line, row.code.source if row.code else None, row.code.opcode if row.code else None)


def _all_accesses_finding(table: AccessTable, requests: int, sectors: int) -> Finding:
    text = units.count(table.accesses) if table.accesses is not None else f"{units.count(table.kept)} kept"
    text += f" in {units.counted(requests, 'request')}"
    if requests:
        text += f", {sectors / requests:.1f} sectors per request"
    if table.kept != table.accesses:
        text += (
            f"; recorded: the first {units.count(table.capacity)} accesses of each thread, {units.count(table.kept)}"
            " in total"
        )
    if table.copies:
        text += f"; {units.count(table.box_copies)} bulk copies, {units.size(table.box_bytes)}"
    numbers = {"accesses": table.accesses, "kept": table.kept, "requests": requests, "sectors": sectors}
    values = {name: counted(number) for name, number in numbers.items()}
    return Finding("accesses", "accesses", text, "dmat", values=values)


def _line_rows(probe_result: ProbeResult, analysis: AccessTable | AccessCount) -> LineRows:
    """Read the table of a launch; a large result takes a while."""
    table = (
        by_line(accesses_of(probe_result), probe_result.kernel.folder)
        if isinstance(analysis, AccessCount)
        else analysis
    )
    rows = [
        LineRow(
            row.line,
            row.code.source if row.code else None,
            {
                "wasted sectors": row.excessive_sectors,
                "wasted": _excessive_share(row),
                "sectors": row.sectors,
                "ideal": row.ideal,
                "requests": row.requests,
                "sectors per request": row.sectors_per_request,
                "access": _access_text(row),
                "accesses": row.accesses,
                "bytes": row.bytes,
            },
        )
        for row in sorted(table.rows, key=lambda row: (-(row.excessive_sectors or 0), -row.sectors, row.line))
    ]
    rows += [_copies_row(row) for row in table.copies]
    notes = [IDEAL_SECTORS_NOTE if table.kept is not None else ONLY_COPIES_TEXT]
    if table.unsized_copies:
        notes.append(UNKNOWN_SIZE_TEXT)
    if table.kept != table.accesses:
        notes.append(f"counts cover only the first {table.capacity} accesses of each thread")
    return LineRows(rows, notes, table.silent)


def _copies_row(row: LineCopies) -> LineRow:
    """A copy is a request; its rows are not judged, since it moves what its box has."""
    is_known = not row.unknown
    values = {
        "wasted sectors": None,
        "wasted": None,
        "sectors": row.sectors if is_known else None,
        "ideal": None,
        "requests": row.copies,
        "sectors per request": ratio(row.sectors, row.copies) if is_known else None,
        "access": row.text,
        "accesses": row.copies,
        "bytes": row.bytes if is_known else None,
    }
    return LineRow(row.line, row.code.source if row.code else None, values)


def _excessive_share(row: LineAccesses) -> ShareValue | None:
    return None if row.excessive_sectors is None or not row.sectors else ShareValue(row.excessive_sectors / row.sectors)


def _access_text(row: LineAccesses) -> str | None:
    """``load 4 B``."""
    if row.code is None:
        return None
    return row.code.kind + ("" if row.code.bytes is None else f" {row.code.bytes} B")


LINES: Final = LineSpec(
    (
        LineMeasure("wasted sectors", "sum", title="excessive sectors"),
        LineMeasure("wasted", "share", ("wasted sectors", "sectors"), title="excessive"),
        LineMeasure("sectors", "sum"),
        LineMeasure("ideal", "sum"),
        LineMeasure("requests", "sum"),
        LineMeasure("sectors per request", "ratio", ("sectors", "requests")),
        LineMeasure("access", "first", better="neither"),
        LineMeasure("accesses", "sum", better="neither"),
        LineMeasure("bytes", "sum"),
    ),
    "wasted sectors",
    _line_rows,
)


def _analyse(probe_result: ProbeResult) -> AccessTable | AccessCount:
    return table_or_count(accesses_of(probe_result), probe_result.kernel.folder)


_EXPLANATION: Final = (
    "Time runs to the right, addresses run down. Each tensor or allocation is a band; “range 0” is memory outside of"
    " all tensors and allocations. The line below the name of a band shows the number of accesses in the band, and"
    " their share of all accesses. Memory between bands is not drawn. A cell covers a range of cycles and bytes:"
    " more dots, or a stronger shade, mean more accesses.",
    "Sectors per request: a warp's load or store moves whole 32-byte sectors. If each lane accesses 4 bytes, 32"
    " adjacent lanes touch 4 sectors, and 32 scattered lanes touch 32 sectors. “used” is requested bytes divided by"
    " moved bytes. Sectors above the minimum for the requested bytes are excessive; the page Lines counts them. If"
    " 32 adjacent lanes access 16 bytes each, they touch 16 sectors, and none of these is excessive. A sector is"
    " always moved whole, so some bytes can be unused even without excessive sectors. One of the colour schemes"
    " shows the share of excessive sectors in steps of 10 %.",
    "A bulk copy (TMA) counts as one access per 32-byte sector of its box, if the sector is inside the tensor. The"
    " time of these accesses is the start of the copy. A copy to several blocks of a cluster (multicast) counts"
    " once. A copy with a reduction also counts once.",
    "Horizontal line: the same memory is accessed repeatedly. Diagonal line: the addresses increase or decrease with"
    " time. Vertical line: many addresses are accessed at the same time. The lines below the picture describe the cell"
    " under the cursor.",
)


def _open_view(source: ViewSource, progress: Progress) -> View:
    from .view import open_view  # brings the drawing, which reports do not need

    return open_view(source, progress, view_heading(DMAT.title, DMAT.description))


DMAT: Final = probe_view(
    "dmat",
    "DMAT",
    "memory accesses by time and address, a density map",
    _open_view,
    explanation=_EXPLANATION,
    order=10,
    is_drawing=True,
)


PROBES: Final = (
    Probe(
        name="dmat",
        analyse=_analyse,
        metrics=METRICS,
        question=Question("accesses", "which warps access which addresses, and when?", 90),
        answers=("coalescing",),
        findings=findings,
        lines=LINES,
        views=(DMAT,),
        values_of=dmat_metrics,
        stamps=lambda probe_result: Stamps(first_start_ns(probe_result.result)),
    ),
    Probe(
        name=COMPACT_NAME,
        analyse=_analyse,
        metrics=METRICS,
        answers=("accesses",),
        findings=findings_of_compact,
        views=(DMAT,),
        values_of=dmat_metrics,
    ),
)
