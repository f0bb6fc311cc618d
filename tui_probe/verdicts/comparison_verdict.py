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
_CHANGED: Final[tuple[Outcome, ...]] = ("fixed", "new")
_UNCHANGED: Final[tuple[Outcome, ...]] = ("remaining", "unknown")


def measured_on_both(change: ValueChange) -> bool:
    """Return whether a run measured it on both sides."""
    return _is_measured(change.before) and _is_measured(change.after)


def unmeasured(pairs: Sequence[KernelPair]) -> str:
    """The letters of the sides on which nothing was measured: ``""``, ``A``, ``B``, ``AB``; "" without a pair."""
    changes = [change for pair in pairs for change in pair.changes]
    sides = {"A": [change.before for change in changes], "B": [change.after for change in changes]}
    of_waits = "".join(pair.waits.measured for pair in pairs if pair.waits)
    known = {letter for letter, values in sides.items() if letter in of_waits or any(map(_is_measured, values))}
    return "".join(letter for letter in sides if pairs and letter not in known)


def unmeasured_text(letters: str, unmatched: Collection[str], *, traces: bool, unread: bool) -> str:
    """``nothing was measured by either run``; "" without letters. ``unmatched``: the sides with kernels of their own.

    ``unread``: there are results that could not be read.
    """
    if not letters:
        return ""
    which = letters if len(letters) == 1 else "either run" if traces else "either"
    if unread:
        return f"no result of {which} could be read"
    of_both = " for the kernels in both" if set(letters) & set(unmatched) else ""
    return f"nothing was measured {'by' if traces else 'of'} {which}{of_both}"


def _is_measured(value: KernelValue) -> bool:
    return value.value is not None and not value.of_probe and value.key not in _KNOWN_UNPROBED


def pair_verdict(pair: KernelPair, unmeasured: str = "") -> str:
    """``B is faster: time 1.20 ms → 810 µs (-32.5 %); worse: registers per thread 32 → 40 (+25.0 %)``.

    ``unmeasured`` says, first, that a side measured nothing.
    """
    first = [unmeasured] if unmeasured else []
    texts = [_different_kernels_text(pair)] if pair.different else _same_kernel_texts(pair, unmeasured)
    unchanged = outcome_texts(pair.findings, _UNCHANGED)
    return "; ".join([*first, *outcome_texts(pair.findings, _CHANGED), *texts, *unchanged])


def outcome_texts(changes: Sequence[FindingChange], outcomes: Sequence[Outcome]) -> list[str]:
    """``fixed: idle SMs 87 → none, and 2 more``: each outcome with its largest finding; none without any."""
    texts = []
    for outcome in outcomes:
        same = [change for change in changes if change.outcome == outcome]
        if same and outcome == "unknown":
            texts.append(f"{units.counted(len(same), 'finding')} measured on one side only")
        elif same and outcome == "remaining":
            changed = f" ({same[0].trend}: {same[0].text})" if same[0].trend else ""
            texts.append(f"{units.counted(len(same), 'finding')} remaining{changed}")
        elif same:
            more = f", and {len(same) - 1} more" if len(same) > 1 else ""
            texts.append(f"{outcome}: {same[0].text}{more}")
    return texts


def _model_text(pair: KernelPair) -> str:
    """Return the change of the cycles of a model, which are no time and judge nothing; "" for none, or for time."""
    lead = next((change for change in pair.changes if change.before.leads and change.change), None)
    return "" if lead is None or lead.judged or pair.different else f"from the model: {lead.words}"


def _same_kernel_texts(pair: KernelPair, unmeasured: str) -> list[str]:
    lead = pair.lead
    timed = lead is not None and lead.before.leads and lead.judged
    parts = [f"{_speed_text(lead)}: {lead.words}"] if lead is not None and timed else []
    covered = {change.shown.finding.key for change in pair.findings}
    for verdict in ("better", "worse"):
        judged = [
            change
            for change in pair.changes
            if change.counts
            and change.verdict == verdict
            and change.before.key not in covered
            and not (timed and _is_part_of_time(change))
        ]
        if judged:
            parts.append(f"{'' if parts else 'B is '}{verdict}: {_changes_text(judged)}")
    if model := _model_text(pair):
        parts.append(model)
    if not parts and not unmeasured and not pair.findings:
        differ = sum(bool(change.change) for change in pair.changes)
        parts.append("no value got better or worse" + (f", {differ} differ" if differ else ""))
    launches = [change for change in pair.changes if change.before.key in _LAUNCHES_KEY and change.change]
    if launches:
        parts.append("launches differ: " + ", ".join(launch.words for launch in launches))
    return parts


def _different_kernels_text(pair: KernelPair) -> str:
    """Text about two kernels that are not the same: no judgement."""
    lead = next((change for change in pair.changes if change.before.leads and change.change is not None), None)
    return "the kernels differ, so there is no verdict" + (f": {lead.words}" if lead else "")


def _is_part_of_time(change: ValueChange) -> bool:
    """Return whether it is a part of the time or cycles that were named already."""
    return change.before.leads or change.before.is_time


def _speed_text(lead: ValueChange) -> str:
    if lead.within_noise:
        return "B is as fast as A: the difference is within launch-to-launch variation"
    if lead.is_of_one_launch and lead.direction and lead.size:
        return "no verdict on time (one launch, spread unknown)"
    if not lead.counts:
        return "B is as fast as A"
    return f"B is {'faster' if lead.verdict == 'better' else 'slower'}"


def _changes_text(changes: Sequence[ValueChange]) -> str:
    return units.listed([change.words for change in changes], _MAX_NAMED)


def traces_verdict(
    pairs: Sequence[KernelPair], kernels: int, only_before: int, only_after: int, *, unmeasured: str = ""
) -> str:
    """``3 kernels in both: 1 better, 2 the same; the largest change: …; 1 only in A``. ``pairs`` are sorted.

    ``unmeasured`` says, first, that a side measured nothing: then nothing is called the same.
    """
    findings = sorted((change for pair in pairs for change in pair.findings), key=lambda change: change.order)
    parts = [*([unmeasured] if unmeasured else []), *outcome_texts(findings, _CHANGED)]
    parts += [_matched_text(pairs, kernels, unmeasured), *outcome_texts(findings, _UNCHANGED)]
    largest = min(
        (pair for pair in pairs if pair.lead is not None and pair.lead.counts),
        key=lambda pair: pair.lead_place, default=None,
    )  # fmt: skip
    covered = set() if largest is None else {change.shown.finding.key for change in largest.findings}
    if largest is not None and largest.lead is not None and largest.lead.before.key not in covered:
        parts.append(f"the largest change: {shorten(largest.kernel, _NAME_WIDTH)}, {largest.lead.words}")
    elif model := next(filter(None, map(_model_text, pairs)), ""):
        parts.append(model)
    parts += [f"{count} only in {letter}" for letter, count in (("A", only_before), ("B", only_after)) if count]
    return "; ".join(parts)


def _matched_text(pairs: Sequence[KernelPair], kernels: int, unmeasured: str) -> str:
    if not pairs:
        return "no kernel is in both A and B"
    counts = Counter(pair.verdict for pair in pairs if not (unmeasured and pair.verdict == "same"))
    counted = ", ".join(_verdict_count_text(counts[verdict], verdict) for verdict in _VERDICT_ORDER if counts[verdict])
    shapes = f" in {units.counted(len(pairs), 'shape')}" if len(pairs) > kernels else ""
    return f"{units.counted(kernels, 'kernel')} in both{shapes}" + (f": {counted}" if counted else "")


def _verdict_count_text(count: int, verdict: str) -> str:
    return f"{count} {'differ' if verdict == 'differs' and count > 1 else verdict}"


def worse_findings(findings: Iterable[FindingChange], limit: float) -> list[FindingChange]:
    """Return new findings, and remaining ones whose loss grew by more than ``limit``, a share.

    Those that follow from the clock of a simulated GPU are none.
    """
    grown = (
        change for change in findings
        if change.outcome == "new" or (change.outcome == "remaining" and (change.growth or 0.0) > limit)
    )  # fmt: skip
    return [change for change in grown if change.trend == "worse" and not change.shown.is_simulated]


def worse_changes(changes: Iterable[ValueChange], limit: float) -> list[ValueChange]:
    """Return the values of the program that are worse by more than ``limit``, a share; from 0 anything is more."""
    regressions = (change for change in changes if change.verdict == "worse" and not change.before.of_probe)
    return [change for change in regressions if change.share is None or abs(change.share) > limit]


def unsure_changes(changes: Iterable[ValueChange], limit: float) -> list[ValueChange]:
    """Return the times of one launch that are worse by more than ``limit``, a share: launches may vary by as much."""
    return [
        change for change in changes
        if change.is_of_one_launch and change.direction == "worse" and not change.before.of_probe
        and (change.share is None or abs(change.share) > limit)
    ]  # fmt: skip


def worst_change(changes: Iterable[ValueChange]) -> ValueChange | None:
    """Return the value of the program that got worse by most; None where none did."""
    regressions = (change for change in worse_changes(changes, 0) if change.counts)
    return max(regressions, key=lambda change: change.size, default=None)
