"""What a comparison comes to, in one sentence."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final

from tui_probe.draw import units
from tui_probe.draw.shorten import shorten

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tui_probe.pages.changes import Change, Pair

_NAMED: Final = 2
"""Figures that are named; of more it is said how many."""
_ORDER: Final = ("better", "worse", "mixed", "differs", "about the same", "same")
_NAME: Final = 32
_LAUNCHES: Final = ("blocks", "threads")


def of_pair(pair: Pair, unmeasured: str = "") -> str:
    """``B is faster: time 1.20 ms → 810 µs (-32.5 %); worse: registers per thread 32 → 40 (+25.0 %)``.

    ``unmeasured`` says, first, that a side measured nothing.
    """
    first = [unmeasured] if unmeasured else []
    return "; ".join([*first, *([_of_different(pair)] if pair.different else _of_same(pair, unmeasured))])


def _of_same(pair: Pair, unmeasured: str) -> list[str]:
    lead = pair.lead
    timed = lead is not None and lead.before.leads
    parts = [f"{_speed(lead)}: {lead.words}"] if lead is not None and timed else []
    for verdict in ("better", "worse"):
        found = [
            each for each in pair.changes if each.counts and each.verdict == verdict and not (timed and _is_part(each))
        ]
        if found:
            parts.append(f"{'' if parts else 'B is '}{verdict}: {_named(found)}")
    if not parts and not unmeasured:
        differ = sum(bool(each.change) for each in pair.changes)
        parts.append("no figure got better or worse" + (f", {differ} differ" if differ else ""))
    launches = [each for each in pair.changes if each.before.key in _LAUNCHES and each.change]
    if launches:
        parts.append("not the same launch: " + ", ".join(each.words for each in launches))
    return parts


def _of_different(pair: Pair) -> str:
    """What is told of two kernels that are not the same: no judgement."""
    told = next((change for change in pair.changes if change.before.leads and change.change is not None), None)
    return "different kernels, so neither is better" + (f": {told.words}" if told else "")


def _is_part(change: Change) -> bool:
    """Is it a part of the time or cycles that were named already?"""
    return change.before.leads or change.before.is_time


def _speed(lead: Change) -> str:
    if lead.within_noise:
        return "B is as fast as A, the difference is within what launches vary"
    if not lead.counts:
        return "B is as fast as A"
    return f"B is {'faster' if lead.verdict == 'better' else 'slower'}"


def _named(found: Sequence[Change]) -> str:
    more = f" and {units.count(len(found) - _NAMED)} more" if len(found) > _NAMED else ""
    return ", ".join(each.words for each in found[:_NAMED]) + more


def of_traces(pairs: Sequence[Pair], kernels: int, only_before: int, only_after: int, *, unmeasured: str = "") -> str:
    """``3 kernels in both: 1 better, 2 the same; the largest change: …; 1 only in A``. ``pairs`` are sorted.

    ``unmeasured`` says, first, that a side measured nothing: then nothing is called the same.
    """
    parts = [*([unmeasured] if unmeasured else []), _in_both(pairs, kernels, unmeasured)]
    if pairs and (lead := pairs[0].lead) is not None and lead.change:
        parts.append(f"the largest change: {shorten(pairs[0].kernel, _NAME)}, {lead.words}")
    parts += [f"{count} only in {letter}" for letter, count in (("A", only_before), ("B", only_after)) if count]
    return "; ".join(parts)


def _in_both(pairs: Sequence[Pair], kernels: int, unmeasured: str) -> str:
    if not pairs:
        return "no kernel is in both"
    counts = Counter(pair.verdict for pair in pairs if not (unmeasured and pair.verdict == "same"))
    words = ", ".join(_counted(counts[verdict], verdict) for verdict in _ORDER if counts[verdict])
    shapes = f" in {units.counted(len(pairs), 'shape')}" if len(pairs) > kernels else ""
    return f"{units.counted(kernels, 'kernel')} in both{shapes}" + (f": {words}" if words else "")


def _counted(count: int, verdict: str) -> str:
    return f"{count} {'differ' if verdict == 'differs' and count > 1 else verdict}"
