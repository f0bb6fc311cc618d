"""Changes of findings between baseline and candidate: fixed, remaining or new, each against its ideal."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal

from tui_probe.draw import units
from tui_probe.draw.printable import printable
from tui_probe.draw.shorten import shorten
from tui_probe.draw.units import NOT_MEASURED
from tui_probe.probekit.finding import SHARE
from tui_probe.probekit.registry import probe_named
from tui_probe.probekit.timelines.launch import IDLE_SMS_KEY
from tui_probe.verdicts.findings import NO_PROBE, findings_by_probe
from tui_probe.verdicts.kernel_findings import findings_of_result
from tui_probe.verdicts.static_findings import GRID_KEY, SPILLS_KEY, grid_fills

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from tui_probe.probekit.finding import Evidence, FindingOrder
    from tui_probe.probekit.page_kinds import ViewSource
    from tui_probe.verdicts.kernel_findings import KernelFinding
    from tui_probe.verdicts.kernel_matching import KernelMatch

Outcome = Literal["fixed", "remaining", "new", "unknown"]
_FIXED_PART: Final = 0.5
"""Part of the loss up to which a finding that is not flagged any more is fixed: values vary about the flag's limit."""
_NEW_TIMES: Final = 1.5
"""Times the loss from which on a finding that was not flagged before is new."""
_HIDDEN_SHARE: Final = 0.1
"""Part of all of A up to which a loss at a line was not flagged there."""
_NOTABLE: Final = 0.01
_NAME_WIDTH: Final = 32


@dataclass(frozen=True, slots=True)
class FindingChange:
    """A finding of one kernel on both sides. ``baseline`` or ``candidate`` is None where that side has no such finding.

    ``unknown`` is the outcome where the probe of the finding has no result on the other side: absence is not a fix.
    ``kernel`` names it where several kernels are compared.
    """

    outcome: Outcome
    baseline: KernelFinding | None
    candidate: KernelFinding | None
    kernel: str = ""

    @property
    def latest(self) -> KernelFinding:
        """The finding as the candidate has it, else as the baseline had it."""
        finding = self.candidate or self.baseline
        assert finding is not None
        return finding

    @property
    def label(self) -> str:
        """The kind of the finding, of the side on which it is flagged."""
        return (self.latest if self.outcome == "new" else self.baseline or self.latest).finding.label

    @property
    def position(self) -> str:
        """``a.cu:4``, ``a.cu:4 → a.cu:6`` where the line moved; "" for the whole kernel."""
        places = [side.position for side in (self.baseline, self.candidate) if side is not None]
        return " → ".join(dict.fromkeys(filter(None, places)))

    @property
    def trend(self) -> str:
        """``better`` or ``worse``: of a remaining finding by its loss; "" if that is the same, or unknown."""
        if self.outcome != "remaining":
            return {"fixed": "better", "new": "worse"}.get(self.outcome, "")
        return "" if self.growth is None or abs(self.growth) < _NOTABLE else "worse" if self.growth > 0 else "better"

    @property
    def growth(self) -> float | None:
        """Growth of the loss in parts of the former loss; None where one of them is not known, or was 0.

        A faster kernel has larger shares of what stayed the same, a larger grid more of what each block loses: so both
        the share and the amount have to grow, or to shrink.
        """
        growths = [growth for loss in (_lost_share, _lost_amount) if (growth := self._growth_of(loss)) is not None]
        if not growths:
            return self._growth_of(_distance_from_ideal)
        return min(growths, key=abs) if min(growths) * max(growths) > 0 else 0.0

    def _growth_of(self, loss: Callable[[KernelFinding], float | None]) -> float | None:
        baseline_loss, candidate_loss = (
            None if side is None else loss(side) for side in (self.baseline, self.candidate)
        )
        return candidate_loss / baseline_loss - 1 if baseline_loss and candidate_loss is not None else None

    @property
    def metric_text(self) -> str:
        """``sectors per request 32.0 → 4.0 (ideal 4.0)``; "" if the finding has no number."""
        metric = self._metric
        baseline_evidence, candidate_evidence = (
            None if side is None else side.finding.evidence.get(metric) for side in (self.baseline, self.candidate)
        )
        evidence = baseline_evidence or candidate_evidence
        if evidence is None:
            return ""
        missing_text = NOT_MEASURED if self.outcome == "unknown" else "none"
        values = [
            missing_text if value is None else number_text(value.value, value.unit)
            for value in (baseline_evidence, candidate_evidence)
        ]
        ideals = dict.fromkeys(
            number_text(value.ideal, value.unit)
            for value in (baseline_evidence, candidate_evidence)
            if value is not None
        )
        ideal = f" (ideal {' → '.join(ideals)})" if evidence.ideal is not None else ""
        unit = (
            ""
            if evidence.unit in ("", SHARE, "B") or evidence.unit.lower() in metric.split("_")
            else f" {evidence.unit}"
        )
        last_index = 0 if candidate_evidence is None else 1
        values[last_index] += unit
        return f"{self._metric_name}{values[0]} → {values[1]}{ideal}"

    @property
    def _metric(self) -> str:
        """The key of the metric that the finding is about; "" for none."""
        return next((name for side in (self.baseline, self.candidate) if side and (name := _main_metric(side))), "")

    @property
    def _metric_name(self) -> str:
        """Return its name and a space; "" where the label says it: ``idle SMs 87 → none``."""
        name = self._metric.replace("_", " ")
        return "" if name == self.label.lower() else f"{name} "

    @property
    def text(self) -> str:
        """``matmul: uncoalesced at a.cu:4, sectors per request 32.0 → 4.0 (ideal 4.0)``."""
        kernel = f"{shorten(printable(self.kernel), _NAME_WIDTH)}: " if self.kernel else ""
        place = f" at {self.position}" if self.position else ""
        joint = ", " if self._metric_name or place else " "
        suffix = f"{joint}{self.metric_text}" if self.metric_text else ""
        return f"{kernel}{self.label}{place}{suffix}"

    @property
    def loss_order(self) -> FindingOrder:
        """Sort key: that of the worse side."""
        return min(side.order for side in (self.baseline, self.candidate) if side is not None)

    @property
    def order(self) -> tuple[bool, bool, FindingOrder]:
        """Sort key: what changed, then what remains, then what is not known, the largest loss first."""
        return self.outcome == "unknown", not self.trend, self.loss_order

    def record(self) -> dict[str, Any]:
        """Return the JSON record."""
        return {
            "outcome": self.outcome,
            "trend": self.trend or None,
            "kernel": self.kernel or None,
            "text": self.text,
            "growth": self.growth,
            "before": None if self.baseline is None else self.baseline.record(),
            "after": None if self.candidate is None else self.candidate.record(),
        }


def number_text(value: float | str | None, unit: str) -> str:
    """Return a number of evidence: ``32.0``, ``1 024``, ``50%``."""
    if value is None or isinstance(value, str):
        return value or NOT_MEASURED
    if unit == SHARE:
        return f"{value:.0%}"
    if unit == "B":
        return units.size(value)
    return units.count(round(value)) if float(value).is_integer() or abs(value) >= 100 else f"{value:.1f}"


def finding_changes(match: KernelMatch, kernel: str = "") -> list[FindingChange]:
    """Return the changes of the findings that are flagged on one side at least, the largest loss first.

    None of different kernels, and of the launches of one shape: findings are about the newest launch. Reads results.
    """
    if match.names_differ or match.shape is not None:
        return []
    baseline_side, candidate_side = _measured_findings(match.baseline), _measured_findings(match.candidate)
    changes = []
    for key in _finding_keys([*baseline_side.findings, *candidate_side.findings]):
        baseline, candidate = (_findings_of_key(side.findings, key) for side in (baseline_side, candidate_side))
        for baseline_finding, candidate_finding in _pairs(baseline, candidate):
            outcome = _outcome(
                baseline_finding,
                candidate_finding,
                baseline,
                known_before=key in baseline_side,
                known_after=key in candidate_side,
            )
            if outcome is not None:
                changes.append(FindingChange(outcome, baseline_finding, candidate_finding, kernel))
    return sorted(changes, key=lambda change: change.order)


def _finding_keys(findings: Sequence[KernelFinding]) -> list[tuple[str, str]]:
    """Return probe and key of the findings of both sides, each loss once: a line stands for its kernel, the grid for
    the SMs that it leaves idle.
    """
    flagged = [finding for finding in findings if finding.finding.stands_out]
    located_probes = {finding.probe for finding in flagged if finding.finding.line}
    has_grid_finding = any(finding.finding.key == GRID_KEY for finding in flagged)
    return list(dict.fromkeys(
        (finding.probe, finding.finding.key) for finding in findings
        if not (has_grid_finding and finding.finding.key == IDLE_SMS_KEY)
        and (finding.finding.line or finding.finding.wrong_result or finding.probe not in located_probes)
    ))  # fmt: skip


@dataclass(frozen=True, slots=True)
class _MeasuredSide:
    """Findings of one side, and the probes that have a readable result there."""

    source: ViewSource
    findings: list[KernelFinding]
    probes: frozenset[str]

    def __contains__(self, key: tuple[str, str]) -> bool:
        """True if the finding of this probe and key would be known on this side."""
        probe, name = key
        if probe:
            return probe in self.probes
        kernel = self.source.kernel
        is_known = {GRID_KEY: next(grid_fills(kernel), None) is not None, SPILLS_KEY: kernel.spills_pruned is not None}
        return is_known.get(name, True)


def _measured_findings(source: ViewSource) -> _MeasuredSide:
    results = [found for found in findings_by_probe(source) if not _measures_waits(found.probe)]
    probes = frozenset(result.probe for result in results if not result.problem and result.probe != NO_PROBE)
    return _MeasuredSide(
        source, [noted for result in results for noted in findings_of_result(source.kernel, result)], probes
    )


def _measures_waits(name: str) -> bool:
    """Return whether ``wait_changes`` compares what a probe found: a wait that one side did not measure is not gone."""
    probe = probe_named(name)
    return probe is not None and probe.measured_waits is not None


def _findings_of_key(findings: Sequence[KernelFinding], key: tuple[str, str]) -> list[KernelFinding]:
    return [finding for finding in findings if (finding.probe, finding.finding.key) == key]


def _pairs(
    baseline: Sequence[KernelFinding], candidates: Sequence[KernelFinding]
) -> Iterator[tuple[KernelFinding | None, KernelFinding | None]]:
    """Yield the findings of one key that are the same on both sides: those at one line, then those of one opcode in one
    file, since an edit moves lines, then those of whole kernels.
    """
    unmatched_candidates = list(candidates)
    unmatched = []
    for finding in baseline:
        match = next((candidate for candidate in unmatched_candidates if candidate.position == finding.position), None)
        if match is None:
            unmatched.append(finding)
        else:
            unmatched_candidates.remove(match)
            yield finding, match
    for finding in unmatched:
        moved_finding = next(
            (candidate for candidate in unmatched_candidates if _instruction(candidate) == _instruction(finding)), None
        )
        if moved_finding is not None:
            unmatched_candidates.remove(moved_finding)
        yield finding, moved_finding
    yield from ((None, candidate) for candidate in unmatched_candidates)


def _instruction(finding: KernelFinding) -> tuple[str, str]:
    """Return the file and the opcode of a finding about a line."""
    source = finding.source
    return source.file if source else "", finding.finding.words.partition(" ")[0]


def _outcome(
    baseline_finding: KernelFinding | None,
    candidate_finding: KernelFinding | None,
    baseline: Sequence[KernelFinding],
    *,
    known_before: bool,
    known_after: bool,
) -> Outcome | None:
    """Return the outcome of a finding; None if it is flagged on neither side. ``baseline`` are A's of its key.

    A side is known if it would have the finding: its probe has a result there.
    """
    was_flagged, is_flagged = (
        side is not None and side.finding.stands_out for side in (baseline_finding, candidate_finding)
    )
    if was_flagged and not is_flagged:
        if not known_after:
            return "unknown"
        part = (
            None
            if baseline_finding is None or candidate_finding is None
            else FindingChange("remaining", baseline_finding, candidate_finding).growth
        )
        return "remaining" if part is not None and 1 + part > _FIXED_PART else "fixed"
    if is_flagged and not was_flagged:
        if not known_before:
            return "unknown"
        growth = (
            None
            if baseline_finding is None or candidate_finding is None
            else FindingChange("remaining", baseline_finding, candidate_finding).growth
        )
        is_small = growth is not None and 1 + growth < _NEW_TIMES
        return (
            "remaining"
            if is_small or (candidate_finding is not None and _was_hidden(candidate_finding, baseline))
            else "new"
        )
    return "remaining" if was_flagged else None


def _was_hidden(candidate: KernelFinding, baseline: Sequence[KernelFinding]) -> bool:
    """Return whether a loss at a line is so small a part of all of A that A would not have flagged it."""
    gain = candidate.finding.gain
    if gain is None or candidate.finding.line is None:
        return False
    gains = (noted.finding.gain for noted in baseline if noted.finding.stands_out)
    totals = (flagged.total for flagged in gains if flagged is not None and flagged.total)
    return any(gain.amount <= _HIDDEN_SHARE * total for total in totals)


def _main_metric(finding: KernelFinding) -> str:
    """Return the first metric with an ideal and a number, else the first with a number; "" for none."""
    numbers = {
        name: evidence
        for name, evidence in finding.finding.evidence.items()
        if isinstance(evidence.value, (int, float))
    }
    return next((name for name, evidence in numbers.items() if evidence.ideal is not None), next(iter(numbers), ""))


def _lost_share(finding: KernelFinding) -> float | None:
    """Return the loss of a finding as a part of the whole; None if that is not known."""
    gain = finding.finding.gain
    return gain.share if gain is not None and gain.total else None


def _lost_amount(finding: KernelFinding) -> float | None:
    """Return the loss of a finding in its unit."""
    return None if finding.finding.gain is None else finding.finding.gain.amount


def _distance_from_ideal(finding: KernelFinding) -> float | None:
    """Return the distance of the main number of a finding from its ideal; None without one."""
    main: Evidence | None = finding.finding.evidence.get(_main_metric(finding))
    if main is None or main.ideal is None or not isinstance(main.value, (int, float)):
        return None
    return abs(main.value - main.ideal)
