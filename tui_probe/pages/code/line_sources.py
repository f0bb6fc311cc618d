"""Probes of a kernel that measured lines, the one with the largest loss first, and lines with a flagged finding."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tui_probe.probekit.finding import NO_FINDING
from tui_probe.probekit.recognised import analysis_name
from tui_probe.probekit.registry import probe_names_where
from tui_probe.verdicts.findings import MAX_UNASKED_BYTES, launch_findings, result_bytes, unprobed_findings

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from tui_probe.draw.spans import Line
    from tui_probe.probekit.finding import Finding, FindingOrder
    from tui_probe.probekit.page_kinds import ViewSource

FINDING_MARK: Final = "!"
"""Sign of a line of code with a flagged finding."""


def line_sources(source: ViewSource) -> list[ViewSource]:
    """Return the kernel under each probe that has values by line, the one with the largest loss in a line first.

    Probes with a result of the launch at hand come before the others, whose nearest launch is taken.
    """
    telling = probe_names_where(lambda probe: probe.lines)
    measured = [
        of_probe
        for of_probe in source.of_all_probes()
        if of_probe.kernel.result_rows and (analysis_name(of_probe.kernel) or "") in telling
    ]
    return sorted(measured, key=lambda of_probe: (not _has_launch(of_probe, source), _rank_of_losses(of_probe)))


def _has_launch(of_probe: ViewSource, source: ViewSource) -> bool:
    """Return whether the probe has a result of the launch at hand; True if no launch was chosen."""
    if source.launch is None or of_probe.launch is None:
        return True
    return of_probe.launch.row == source.launch.row


def _rank_of_losses(source: ViewSource) -> tuple[bool, FindingOrder]:
    """The order of a probe next to others: by its largest loss in a line, as in the summary."""
    orders = [finding.order for finding in _findings_read(source) if finding.line is not None]
    return source.kernel.matched_nothing, min(orders, default=NO_FINDING)


def _findings_read(source: ViewSource) -> tuple[Finding, ...]:
    """The findings of one probe; none of a result that is too large to be read unasked."""
    read = launch_findings(source) if result_bytes(source) <= MAX_UNASKED_BYTES else None
    return () if read is None else read.findings


def flagged_lines(source: ViewSource) -> Mapping[int, str]:
    """Return the names of the flagged findings of all probes by their line of ``pruned.ptx``, or offset."""
    labels: dict[int, dict[str, None]] = {}
    for finding in _all_findings(source):
        if finding.stands_out and finding.line is not None:
            labels.setdefault(finding.line, {})[finding.label] = None
    return {line: ", ".join(of_line) for line, of_line in labels.items()}


def flag_spans(flag: str) -> Line:
    """The names of the findings of a line, for the end of its code."""
    return ((f"  {FINDING_MARK} {flag}", "warn"),) if flag else ()


def _all_findings(source: ViewSource) -> Iterator[Finding]:
    for of_probe in source.of_all_probes():
        yield from _findings_read(of_probe)
    for found in unprobed_findings(source.kernel.kernel):
        yield from found.findings
