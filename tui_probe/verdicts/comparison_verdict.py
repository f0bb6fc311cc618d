"""Verdict of a comparison in one sentence, what neither side measured, and what got worse."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final

from tui_probe.draw import units
from tui_probe.draw.shorten import shorten

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence

    from tui_probe.verdicts.changes import KernelPair, ValueChange
    from tui_probe.verdicts.finding_changes import FindingChange, Outcome
    from tui_probe.verdicts.kernel_values import KernelValue

_KNOWN_UNPROBED: Final = frozenset(
    ("launches", "blocks", "threads", "registers", "spills", "shared", "blocks_per_sm", "occupancy")
)
"""Figures of the launch and of the compiled kernel, which no run has to measure."""
_MAX_NAMED: Final = 2
"""Figures that are named; of more it is said how many."""
_VERDICT_ORDER: Final = ("better", "worse", "mixed", "differs", "about the same", "same")
_NAME_WIDTH: Final = 32
_LAUNCHES_KEY: Final = ("blocks", "threads")
_CHANGED_OUTCOMES: Final[tuple[Outcome, ...]] = ("fixed", "new")
_UNCHANGED_OUTCOMES: Final[tuple[Outcome, ...]] = ("remaining", "unknown")


def measured_on_both(change: ValueChange) -> bool:
    """Return whether a run measured it on both sides."""
    return _is_measured(change.baseline) and _is_measured(change.candidate)


def unmeasured_sides(pairs: Sequence[KernelPair]) -> str:
    """The letters of the sides on which nothing was measured: ``""``, ``A``, ``B``, ``AB``; "" without a pair."""
    changes = [change for pair in pairs for change in pair.changes]
    sides = {"A": [change.baseline for change in changes], "B": [change.candidate for change in changes]}
    wait_letters = "".join(pair.waits.measured_sides for pair in pairs if pair.waits)
    measured_letters = {
        letter for letter, values in sides.items() if letter in wait_letters or any(map(_is_measured, values))
    }
    return "".join(letter for letter in sides if pairs and letter not in measured_letters)


def unmeasured_text(letters: str, unmatched: Collection[str], *, traces: bool, unread: bool) -> str:
    """``nothing was measured by either run``; "" without letters. ``unmatched``: the sides with kernels of their own.

    ``unread``: there are results that could not be read.
    """
    if not letters:
        return ""
    subject = letters if len(letters) == 1 else "either run" if traces else "either"
    if unread:
        return f"no result of {subject} could be read"
    scope = " for the kernels in both" if set(letters) & set(unmatched) else ""
    return f"nothing was measured {'by' if traces else 'of'} {subject}{scope}"


def _is_measured(value: KernelValue) -> bool:
    return value.value is not None and not value.of_probe and value.key not in _KNOWN_UNPROBED


def pair_verdict(pair: KernelPair, unmeasured: str = "") -> str:
    """``B is faster: time 1.20 ms → 810 µs (-32.5 %); worse: registers per thread 32 → 40 (+25.0 %)``.

    ``unmeasured`` says, first, that a side measured nothing.
    """
    head = [unmeasured] if unmeasured else []
    texts = [_different_kernels_text(pair)] if pair.is_of_different_kernels else _same_kernel_texts(pair, unmeasured)
    unchanged = outcome_texts(pair.findings, _UNCHANGED_OUTCOMES)
    return "; ".join([*head, *outcome_texts(pair.findings, _CHANGED_OUTCOMES), *texts, *unchanged])


def outcome_texts(changes: Sequence[FindingChange], outcomes: Sequence[Outcome]) -> list[str]:
    """``fixed: idle SMs 87 → none, and 2 more``: each outcome with its largest finding; none without any."""
    texts = []
    for outcome in outcomes:
        outcome_changes = [change for change in changes if change.outcome == outcome]
        if outcome_changes and outcome == "unknown":
            texts.append(f"{units.counted(len(outcome_changes), 'finding')} measured on one side only")
        elif outcome_changes and outcome == "remaining":
            trend_text = f" ({outcome_changes[0].trend}: {outcome_changes[0].text})" if outcome_changes[0].trend else ""
            texts.append(f"{units.counted(len(outcome_changes), 'finding')} remaining{trend_text}")
        elif outcome_changes:
            rest_text = f", and {len(outcome_changes) - 1} more" if len(outcome_changes) > 1 else ""
            texts.append(f"{outcome}: {outcome_changes[0].text}{rest_text}")
    return texts


def _model_text(pair: KernelPair) -> str:
    """Return the change of the cycles of a model, which are no time and judge nothing; "" for none, or for time."""
    lead = next((change for change in pair.changes if change.baseline.is_leading and change.change), None)
    return (
        "" if lead is None or lead.is_judged or pair.is_of_different_kernels else f"from the model: {lead.value_text}"
    )


def _same_kernel_texts(pair: KernelPair, unmeasured: str) -> list[str]:
    lead = pair.lead
    has_time = lead is not None and lead.baseline.is_leading and lead.is_judged
    parts = [f"{_speed_text(lead)}: {lead.value_text}"] if lead is not None and has_time else []
    covered = {change.latest.finding.key for change in pair.findings}
    for verdict in ("better", "worse"):
        judged = [
            change
            for change in pair.changes
            if change.is_notable
            and change.verdict == verdict
            and change.baseline.key not in covered
            and not (has_time and _is_part_of_time(change))
        ]
        if judged:
            parts.append(f"{'' if parts else 'B is '}{verdict}: {_changes_text(judged)}")
    if model := _model_text(pair):
        parts.append(model)
    if not parts and not unmeasured and not pair.findings:
        different_count = sum(bool(change.change) for change in pair.changes)
        parts.append("no value got better or worse" + (f", {different_count} differ" if different_count else ""))
    launches = [change for change in pair.changes if change.baseline.key in _LAUNCHES_KEY and change.change]
    if launches:
        parts.append("launches differ: " + ", ".join(launch.value_text for launch in launches))
    return parts


def _different_kernels_text(pair: KernelPair) -> str:
    """Text about two kernels that are not the same: no judgement."""
    lead = next((change for change in pair.changes if change.baseline.is_leading and change.change is not None), None)
    return "the kernels differ, so there is no verdict" + (f": {lead.value_text}" if lead else "")


def _is_part_of_time(change: ValueChange) -> bool:
    """Return whether it is a part of the time or cycles that were named already."""
    return change.baseline.is_leading or change.baseline.is_time


def _speed_text(lead: ValueChange) -> str:
    if lead.is_within_noise:
        return "B is as fast as A: the difference is within launch-to-launch variation"
    if lead.is_of_one_launch and lead.direction and lead.size:
        return "no verdict on time (one launch, spread unknown)"
    if not lead.is_notable:
        return "B is as fast as A"
    return f"B is {'faster' if lead.verdict == 'better' else 'slower'}"


def _changes_text(changes: Sequence[ValueChange]) -> str:
    return units.listed([change.value_text for change in changes], _MAX_NAMED)


def traces_verdict(
    pairs: Sequence[KernelPair], kernels: int, only_before: int, only_after: int, *, unmeasured: str = ""
) -> str:
    """``3 kernels in both: 1 better, 2 the same; the largest change: …; 1 only in A``. ``pairs`` are sorted.

    ``unmeasured`` says, first, that a side measured nothing: then nothing is called the same.
    """
    findings = sorted((change for pair in pairs for change in pair.findings), key=lambda change: change.order)
    parts = [*([unmeasured] if unmeasured else []), *outcome_texts(findings, _CHANGED_OUTCOMES)]
    parts += [_matched_text(pairs, kernels, unmeasured), *outcome_texts(findings, _UNCHANGED_OUTCOMES)]
    largest_pair = min(
        (pair for pair in pairs if pair.lead is not None and pair.lead.is_notable),
        key=lambda pair: pair.lead_sort_key, default=None,
    )  # fmt: skip
    covered = set() if largest_pair is None else {change.latest.finding.key for change in largest_pair.findings}
    if largest_pair is not None and largest_pair.lead is not None and largest_pair.lead.baseline.key not in covered:
        parts.append(f"the largest change: {shorten(largest_pair.kernel, _NAME_WIDTH)}, {largest_pair.lead.value_text}")
    elif model := next(filter(None, map(_model_text, pairs)), ""):
        parts.append(model)
    parts += [f"{count} only in {letter}" for letter, count in (("A", only_before), ("B", only_after)) if count]
    return "; ".join(parts)


def _matched_text(pairs: Sequence[KernelPair], kernels: int, unmeasured: str) -> str:
    if not pairs:
        return "no kernel is in both A and B"
    counts = Counter(pair.verdict for pair in pairs if not (unmeasured and pair.verdict == "same"))
    verdict_counts = ", ".join(
        _verdict_count_text(counts[verdict], verdict) for verdict in _VERDICT_ORDER if counts[verdict]
    )
    shapes = f" in {units.counted(len(pairs), 'shape')}" if len(pairs) > kernels else ""
    return f"{units.counted(kernels, 'kernel')} in both{shapes}" + (f": {verdict_counts}" if verdict_counts else "")


def _verdict_count_text(count: int, verdict: str) -> str:
    return f"{count} {'differ' if verdict == 'differs' and count > 1 else verdict}"


def worse_findings(findings: Iterable[FindingChange], limit: float) -> list[FindingChange]:
    """Return new findings, and remaining ones whose loss grew by more than ``limit``, a share.

    Those that follow from the clock of a simulated GPU are none.
    """
    candidates = (
        change for change in findings
        if change.outcome == "new" or (change.outcome == "remaining" and (change.growth or 0.0) > limit)
    )  # fmt: skip
    return [change for change in candidates if change.trend == "worse" and not change.latest.is_simulated]


def worse_changes(changes: Iterable[ValueChange], limit: float) -> list[ValueChange]:
    """Return the values of the program that are worse by more than ``limit``, a share; from 0 anything is more."""
    regressions = (change for change in changes if change.verdict == "worse" and not change.baseline.of_probe)
    return [change for change in regressions if change.share is None or abs(change.share) > limit]


def unsure_changes(changes: Iterable[ValueChange], limit: float) -> list[ValueChange]:
    """Return the times of one launch that are worse by more than ``limit``, a share: launches may vary by as much."""
    return [
        change for change in changes
        if change.is_of_one_launch and change.direction == "worse" and not change.baseline.of_probe
        and (change.share is None or abs(change.share) > limit)
    ]  # fmt: skip


def worst_change(changes: Iterable[ValueChange]) -> ValueChange | None:
    """Return the value of the program that got worse by most; None where none did."""
    regressions = (change for change in worse_changes(changes, 0) if change.is_notable)
    return max(regressions, key=lambda change: change.size, default=None)
