"""Hotspot: the place to look at first in a launch."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from tui_probe.draw.view import Document, Spot
from tui_probe.errors import ProbeError
from tui_probe.pages.findings_page import open_questions
from tui_probe.pages.views import kind_of, kinds
from tui_probe.probekit.page_kinds import ViewSource
from tui_probe.probekit.registry import probe_names_where
from tui_probe.verdicts.finding_summary import ranked_losses, ranked_results
from tui_probe.verdicts.findings import NO_PROBE, best_findings, findings_by_probe, launch_findings

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tui_probe.probekit.finding import Finding
    from tui_probe.verdicts.findings import ResultFindings

_PAGE_WIDTH: Final = 80
_CODE_PAGE: Final = "ptx"
_MARKING_PAGES: Final = ("source", _CODE_PAGE)
"""The pages that mark the line with most, the one to show first."""


@dataclass(frozen=True, slots=True)
class PageSpot:
    """A place on a page of the kernel, and what is there."""

    page: str
    spot: Spot
    text: str
    is_flagged: bool = True
    """False for a finding that costs little: the marked line of the visible page matters more."""


@dataclass(frozen=True, slots=True)
class Hotspot:
    """``worst`` is where to look first, and ``line`` the first line that anything was found of; None for none.

    ``marked_line`` is the line with most, where nothing was found that has a place. ``reason`` says why there is none
    of them, and ``option`` is the option of a run that would tell, "" for none.
    """

    worst: PageSpot | None = None
    line: PageSpot | None = None
    marked_line: PageSpot | None = None
    reason: str = ""
    option: str = ""


def find_hotspot(source: ViewSource) -> Hotspot:
    """Find the hotspot of the selected launch, or of the newest with a result, by the findings of all its probes.

    A source under one probe is a page of that probe: its flagged findings come first. Reads results.
    """
    findings = _findings_of_probes(source)
    unread_result = next((of_probe for of_probe in findings if of_probe.unread), None)
    first_loss = None if source.kernel.probe else _first_loss(findings)
    worst = first_loss or _first_flagged([(of_probe, of_probe.worst) for of_probe in findings])
    lines = [(of_probe, _first_line_finding(of_probe)) for of_probe in findings]
    line = _first_flagged(lines)
    if worst is not None or line is not None:
        return Hotspot(worst or line, line)
    if unread_result is not None:
        return Hotspot(reason=f"the result could not be read: {unread_result.problem}")
    marked_spot = _marked_spot(source) if findings else None
    return Hotspot(marked_line=marked_spot) if marked_spot is not None else _no_hotspot(source, findings)


def _findings_of_probes(source: ViewSource) -> list[ResultFindings]:
    """Findings of each probe, once: of a source under one probe this one, then by their largest loss."""
    page_findings = launch_findings(source) if source.kernel.probe else None
    probe_findings = findings_by_probe(ViewSource(source.trace, source.kernel.kernel, source.launch))
    ranked = ranked_results(probe_findings)
    if page_findings is None:
        return ranked
    return [page_findings, *(result for result in ranked if result.probe != page_findings.probe)]


def _first_loss(results: Sequence[ResultFindings]) -> PageSpot | None:
    """Return the first flagged loss of the report that has a place."""
    for loss in ranked_losses(results):
        if loss.stands_out and (loss.page or loss.line):
            return _spot_of_finding(next(result for result in results if loss in best_findings(result)), loss)
    return None


def _first_line_finding(result: ResultFindings) -> Finding | None:
    return next((finding for finding in result.findings if finding.line), None)


def _first_flagged(results: Sequence[tuple[ResultFindings, Finding | None]]) -> PageSpot | None:
    """Return the spot of the first flagged finding, else of the first."""
    located = [(of_probe, finding) for of_probe, finding in results if finding is not None]
    flagged = (pair for pair in located if pair[1].stands_out)
    leading = next(flagged, located[0] if located else None)
    return None if leading is None else _spot_of_finding(*leading)


def _spot_of_finding(result: ResultFindings, finding: Finding) -> PageSpot:
    """Findings that name no page are about a line, and the code shows that."""
    spot = replace(finding.spot, probe="" if result.probe == NO_PROBE else result.probe)
    return PageSpot(finding.page or _CODE_PAGE, spot, f"{finding.label}: {finding.words}", finding.stands_out)


def _marked_spot(source: ViewSource) -> PageSpot | None:
    """Return the mark of the first page that has one. A page that cannot be opened has none."""
    for name in _MARKING_PAGES:
        kind = kind_of(name)
        try:
            view = kind.open(source, lambda _: None) if kind.missing_reason(source) is None else None
        except (ProbeError, OSError):
            continue
        line_and_text = view.marked_line() if isinstance(view, Document) else None
        if line_and_text is not None and isinstance(view, Document):
            return PageSpot(name, _spot_of_line(view, line_and_text[0]), line_and_text[1])
    return None


def _spot_of_line(view: Document, line: int) -> Spot:
    """Value of the whole row of a line of PTX: other pages may have another line of it only."""
    row = view.place_of(line, _PAGE_WIDTH)
    return Spot.of_line(line) if row is None else view.spot(row, _PAGE_WIDTH)


def _no_hotspot(source: ViewSource, results: Sequence[ResultFindings]) -> Hotspot:
    """Return why there is no hotspot."""
    kernel = source.kernel
    if kernel.status != "probed":
        return Hotspot(reason="the kernel was not probed, so there are no values; see page 1 for the reason")
    if all(result.probe == NO_PROBE for result in results):
        return Hotspot(reason="this launch has no result")
    locating_probes = _probes_with_places()
    if any(result.probe in locating_probes for result in results):
        return Hotspot(reason="no hotspot in this launch")
    results = [result for result in results if result.probe != NO_PROBE]
    probes = " and ".join(f"-p {result.probe}" for result in results if result.probe) or "this result"
    questions = open_questions(kernel, results)
    option = next((question.option for question in questions if locating_probes.intersection(question.probes)), "")
    return Hotspot(reason=f"{probes} does not report lines or times", option=option)


def _probes_with_places() -> frozenset[str]:
    """Return the probes that report lines, or have a drawing."""
    drawing_probes = (name for kind in kinds() if kind.is_drawing for name in kind.probes)
    return frozenset((*probe_names_where(lambda probe: probe.lines), *drawing_probes))
