"""Findings of a kernel: those of each probe in the result of a launch, and those that need no probe."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import chain
from pathlib import PurePath
from typing import TYPE_CHECKING, Any, Final

from tui_probe.draw import units
from tui_probe.draw.printable import printable
from tui_probe.draw.units import NOT_MEASURED
from tui_probe.errors import TraceError
from tui_probe.probekit.finding import Finding, counted
from tui_probe.probekit.measured import extent_text, first_value, line_range_probe
from tui_probe.probekit.probe_view import unknown_probe_advice
from tui_probe.probekit.recognised import analysis_name
from tui_probe.probekit.record_counts import record_counts_text, sampled_blocks_text
from tui_probe.probekit.registry import is_drawn, kernel_page_names, probe_named
from tui_probe.probekit.shown_results import (
    find_shown_result,
    joined_name,
    joined_sources,
    read_joined_rows,
    unjoined_sources,
)
from tui_probe.trace.sites import source_lines
from tui_probe.verdicts.simulator_findings import simulator_findings
from tui_probe.verdicts.static_findings import static_findings

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from tui_probe.probekit.page_kinds import ViewSource
    from tui_probe.probekit.probe_results import ProbeResult
    from tui_probe.trace.model import KernelFacts, ProbedKernel

_CACHE_SIZE: Final = 64
"""Results whose findings are remembered."""
NO_PROBE: Final = "(no probe)"
"""Name of the source of findings from launches and the assembler's log."""
UNMATCHED_KEY: Final = "unmatched"
"""The finding of a probe without an instruction in the kernel: it found no fault, and could find none."""
_UNCHECKED_KEY: Final = "unchecked_results"
_SAMPLE_KEY: Final = "sample"
"""The finding that names the blocks that all others are about."""
MAX_UNASKED_BYTES: Final = 32 << 20
"""Bytes of a result up to which it is read for a line in a table, unasked."""
FLAG: Final = "! "
"""Precedes the text of a finding that costs time."""
NEGLIGIBLE_SHARE: Final = 0.01
"""The part of the program's GPU time below which a possible gain is not flagged."""


_cache: dict[tuple[tuple[tuple[str, int], ...], int], ResultFindings] = {}
"""Last findings, by the files of the results, their times, and how many launches had been timed."""


@dataclass(frozen=True, slots=True)
class ResultFindings:
    """The findings of one result, or of probes that measure parts of one thing, what stands out first; or the
    ``problem`` for which there are none.

    ``launch`` is its number, None where the log does not say.
    """

    probe: str
    launch: int | None
    simulated: bool
    findings: tuple[Finding, ...] = ()
    problem: str | None = None
    unread: bool = False
    """True if the result itself could not be read."""
    launches: tuple[int, ...] = ()
    """Numbers of all launches that the findings are of; ``launch`` is the newest."""

    def record(self) -> dict[str, Any]:
        """Return the JSON record."""
        return {
            "probe": None if self.probe == NO_PROBE else self.probe,
            "launch": self.launch,
            "simulated": self.simulated,
            "problem": self.problem,
            "findings": [finding.record() for finding in self.findings],
        }

    @property
    def is_sampled(self) -> bool:
        """True if it is of some blocks only."""
        return any(finding.key == _SAMPLE_KEY for finding in self.findings)

    def of_blocks(self, finding: Finding) -> Finding:
        """Return one of the findings for use by itself: its text names the measured blocks, if not all were."""
        sample = next((other.numbers for other in self.findings if other.key == _SAMPLE_KEY), None)
        if sample is None or finding.key == _SAMPLE_KEY:
            return finding
        blocks, measured_blocks = (sample[name] for name in ("blocks", "blocks_measured"))
        assert isinstance(blocks, int)
        assert isinstance(measured_blocks, int)
        return replace(finding, words=f"{finding.words} (measured in {extent_text((measured_blocks, blocks))})")

    @property
    def worst(self) -> Finding | None:
        """The first finding with a page: a flagged one, else one at a line, else one on a drawing; None without."""
        page_findings = [finding for finding in self.findings if finding.page]
        groups = (
            (finding for finding in page_findings if finding.stands_out),
            (finding for finding in page_findings if finding.line),
        )
        return next(chain(*groups, (finding for finding in page_findings if is_drawn(finding.page))), None)


def launch_findings(source: ViewSource) -> ResultFindings | None:
    """Return the findings of the launch at hand, else of the result to show; None if there is none.

    Those of probes that measure parts of one thing are of all parts. Reads the results, which may take a moment for one
    of hundreds of megabytes; the last ones are remembered.
    """
    shown_result = find_shown_result(source)
    if shown_result.row is None or source.kernel.status != "probed":
        return None
    kernel = source.kernel.kernel_of_result(shown_result.row)
    parts = _joined_parts(replace(source, kernel=kernel), shown_result.row)
    launches = _launch_numbers(parts)
    result = ResultFindings(
        analysis_name(kernel) or line_range_probe(kernel) if len(parts) == 1 else joined_name(kernel),
        max(launches, default=None),
        source.trace.state.simulated,
        launches=launches,
    )
    try:
        result_findings = _with_findings(result, kernel, parts)
        named_findings = _with_other_launches(result_findings, kernel, shown_result.unchecked)
        return _unflag_negligible(_without_replaced(named_findings, source.kernel), kernel.time_share)
    except (TraceError, OSError) as error:
        problem = str(error).replace(f"{source.trace.directory}/", "")
        return replace(result, problem=problem, unread=True)


def _with_findings(
    result: ResultFindings, kernel: ProbedKernel, parts: Sequence[tuple[ViewSource, int | None]]
) -> ResultFindings:
    """Return the result with its findings: the remembered ones, else read. Raises TraceError and OSError."""
    key = (tuple(map(_result_state, parts)), len(kernel.times.originals_ms))
    if key not in _cache:
        findings = tuple(_read_findings(parts))
        _cache[key] = replace(result, findings=findings, problem=unknown_probe_advice(kernel))
        for oldest_key in list(_cache)[:-_CACHE_SIZE]:
            _cache.pop(oldest_key, None)  # another thread may have removed it
    return _cache[key]


def _joined_parts(source: ViewSource, row: int) -> list[tuple[ViewSource, int | None]]:
    """Return ``joined_sources`` with the row of the result to read of each; ``row`` is that of ``source``."""
    parts = joined_sources(source)
    if parts == [source]:
        return [(source, row)]
    return [(part, find_shown_result(part).row) for part in parts]


def _with_other_launches(result: ResultFindings, kernel: ProbedKernel, unchecked: int) -> ResultFindings:
    """Name the launch of a fault where another launch was measured, and the number of results that were not checked."""
    probe = probe_named(result.probe)
    if probe is None or not probe.fault_in_any_launch or len(kernel.result_rows) == 1:
        return result
    findings = [
        replace(finding, words=f"{finding.words}, in launch {result.launch}")
        if finding.wrong_result and result.launch is not None
        else finding
        for finding in result.findings
    ]
    if unchecked:
        text = (
            f"{units.counted(unchecked, 'result')} of other launches were not read; to read the result of a launch:"
            " tui-probe show lines TRACE@LAUNCH"
        )
        findings.append(Finding(_UNCHECKED_KEY, "not checked", text, values={"results": counted(unchecked)}))
    return replace(result, findings=tuple(findings))


def _launch_numbers(parts: Iterable[tuple[ViewSource, int | None]]) -> tuple[int, ...]:
    """Return the numbers of the launches whose results are read, if the log names them."""
    rows = ((source, row) for source, row in parts if row is not None)
    launch_rows = ((source, launch) for source, row in rows if (launch := source.trace.results.launch(row)) is not None)
    numbers = (source.trace.launches[launch].number for source, launch in launch_rows)
    return tuple(sorted(number for number in numbers if number is not None))


def _result_state(part: tuple[ViewSource, int | None]) -> tuple[str, int]:
    """Return the path of the result that is read, and the time at which it was written."""
    source, row = part
    path = None if row is None else source.trace.results.path(row)
    return str(path), path.stat().st_mtime_ns if path is not None and path.is_file() else 0


def findings_by_probe(source: ViewSource) -> list[ResultFindings]:
    """Return the findings of each probe for the launch at hand, or the nearest that had it; without one, of the newest.

    Probes that measure parts of one thing count as one. None where there is no result. Last come those that need no
    probe, if any.
    """
    results = map(launch_findings, unjoined_sources(source))
    return [*(result for result in results if result is not None), *unprobed_findings(source.kernel)]


def unprobed_findings(kernel: KernelFacts) -> Iterator[ResultFindings]:
    """Yield the findings that need no probe, if there are any."""
    findings = tuple(static_findings(kernel))
    if findings:
        yield _unflag_negligible(ResultFindings(NO_PROBE, None, False, findings), kernel.time_share)


def _without_replaced(result: ResultFindings, kernel: KernelFacts) -> ResultFindings:
    """Leave out what checks of the simulated GPU know better: both would describe one access, in different words."""
    if not any(finding.replaced_by for finding in result.findings):
        return result
    faults = [(fault.key, fault.line) for fault in simulator_findings(kernel) if fault.values["space"] == "global"]
    findings = (
        finding
        for finding in result.findings
        if not any(key in finding.replaced_by and finding.line in (line, None) for key, line in faults)
    )
    return replace(result, findings=tuple(findings))


def _unflag_negligible(result: ResultFindings, share: float | None) -> ResultFindings:
    """Unflag findings whose possible gain is negligible for a program; the kernel takes ``share`` of it.

    Only measured times decide: programs for the simulated GPU are scaled down, so their shares say little.
    """
    if share is None or not any(_is_negligible(finding, share) for finding in result.findings):
        return result
    findings = [replace(f, stands_out=f.stands_out and not _is_negligible(f, share)) for f in result.findings]
    return replace(result, findings=tuple(sorted(findings, key=lambda finding: finding.order)))


def _is_negligible(finding: Finding, share: float) -> bool:
    return finding.stands_out and not finding.wrong_result and share * finding.part < NEGLIGIBLE_SHARE


def _read_findings(parts: Sequence[tuple[ViewSource, int | None]]) -> list[Finding]:
    """Return the findings of results that are analysed together, in their order. Raises TraceError and OSError.

    A probe without findings has the first of its values, and the number of its records.
    """
    joined_result = read_joined_rows(parts)
    result = joined_result.results[0]
    if result.kernel.matched_nothing:
        return [Finding(UNMATCHED_KEY, "not measured", _unmatched_text(result.kernel.reason or ""))]
    probe = probe_named(result.probe)
    if probe is not None and probe.findings is not None:
        findings = list(probe.findings(result, joined_result.analysis))
        _check_pages(result, findings)
        return [*sorted(findings, key=lambda finding: finding.order), *_sample_finding(result)]
    notes = (("first_value", "values", first_value(result)), ("kept", "records", record_counts_text(result.result)))
    return [Finding(key, label, printable(text)) for key, label, text in notes if text]


def _unmatched_text(reason: str) -> str:
    """``the kernel has no global store``, from the reason of a probe that matched nothing."""
    _, _, missing_part = reason.partition(", which has ")
    return printable(f"the kernel has {missing_part}" if missing_part else reason or NOT_MEASURED)


def _check_pages(result: ProbeResult, findings: Iterable[Finding]) -> None:
    """Raise TraceError if a finding names a page that does not exist, as one of a probe from elsewhere may."""
    for finding in findings:
        if finding.page and finding.page not in kernel_page_names():
            raise TraceError(
                f"probe {result.probe}: finding {finding.key!r} is on page {finding.page!r}, which does not exist"
            )


def _sample_finding(result: ProbeResult) -> Iterator[Finding]:
    """Yield the finding that only some blocks were measured, if so."""
    sample = result.result.sample
    if sample is not None and not sample.resident:
        values = {"blocks": counted(result.result.header.blocks), "blocks_measured": counted(len(sample.blocks))}
        yield Finding(
            _SAMPLE_KEY, "sample", f"{sampled_blocks_text(sample)}: findings cover only these blocks", values=values
        )


def best_findings(result: ResultFindings) -> list[Finding]:
    """Return the flagged findings of a result, else the first."""
    best = [finding for finding in result.findings if finding.stands_out] or list(result.findings[:1])
    return [result.of_blocks(finding) for finding in best]


def finding_text(kernel: KernelFacts, finding: Finding) -> str:
    """Return the text of a finding, and the line of source unless the text has it."""
    source = source_lines(kernel.folder).program_line(finding.line) if finding.line else None
    name = f"{PurePath(source.file).name}:{source.line}" if source else ""
    return printable(finding.words + (f", {name}" if name and name not in finding.words else ""))


def result_bytes(source: ViewSource) -> int:
    """Bytes of the result of its launch, or of the one to show of its kernel; 0 where there is none."""
    row = find_shown_result(source).row
    path = None if row is None else source.trace.results.path(row)
    try:
        return 0 if path is None else path.stat().st_size
    except OSError:
        return 0
