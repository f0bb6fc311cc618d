"""Changes between baseline and candidate: sign, size, noise, and whether they are improvements."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from math import inf, isfinite, log2
from typing import TYPE_CHECKING, Final

from tui_probe.draw.shorten import shorten
from tui_probe.draw.table import Column
from tui_probe.draw.units import NOT_MEASURED
from tui_probe.verdicts.kernel_values import launch_values, probe_values

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tui_probe.draw.view import Progress
    from tui_probe.probekit.page_kinds import ViewSource
    from tui_probe.trace.launch_shape import Dim3
    from tui_probe.verdicts.finding_changes import FindingChange
    from tui_probe.verdicts.kernel_matching import KernelMatch
    from tui_probe.verdicts.kernel_values import KernelValue
    from tui_probe.verdicts.wait_changes import WaitComparison

_NOTABLE_SIZE: Final = log2(1.01)
"""Less than one per cent is not news: clocks by themselves differ by as much."""
_NAME_WIDTH: Final = 32
_REGISTERS, _OCCUPANCY = "registers", "occupancy"
TIME_KEY: Final = "time_ms"
"""Key of the metric that comes before all others in the judgement of a kernel."""


@dataclass(frozen=True, slots=True)
class ValueChange:
    """A value of both sides. ``kernel`` names it where several kernels are compared; ``grid`` is that of both."""

    baseline: KernelValue
    candidate: KernelValue
    kernel: str = ""
    grid: Dim3 | None = None
    block: Dim3 | None = None

    @property
    def change(self) -> float | None:
        """Return after minus before; None if one of them was not measured."""
        baseline_value, candidate_value = self.baseline.value, self.candidate.value
        return None if baseline_value is None or candidate_value is None else candidate_value - baseline_value

    @property
    def share(self) -> float | None:
        """The change in parts of the first; None where that is 0."""
        return None if self.change is None or not self.baseline.value else self.change / self.baseline.value

    @property
    def judged_values(self) -> tuple[float | None, float | None]:
        """The numbers that are judged: in parts of their ideals where both have one, else as they are."""
        excess = self.baseline.excess, self.candidate.excess
        return (self.baseline.value, self.candidate.value) if None in excess else excess

    @property
    def has_ideals(self) -> bool:
        """True if it is judged by its ideals."""
        return (
            None not in (self.baseline.excess, self.candidate.excess)
            or self.baseline.ideal == self.candidate.ideal == 0
        )

    @property
    def size(self) -> float:
        """Size in powers of two, alike for twice and half; infinite from or to 0, 0 if it is not known."""
        baseline_value, candidate_value = self.judged_values
        if baseline_value is None or candidate_value is None or baseline_value == candidate_value:
            return 0.0
        return abs(log2(candidate_value / baseline_value)) if baseline_value > 0 and candidate_value > 0 else inf

    @property
    def weight(self) -> float:
        """Size of the change for sorting: one from or to 0 has no ratio and counts as just notable."""
        return self.size if isfinite(self.size) else _NOTABLE_SIZE

    @property
    def is_within_noise(self) -> bool:
        """True if the middle halves of the launches of both sides overlap; False where too few show how they vary."""
        baseline_value, candidate_value = self.baseline, self.candidate
        if (
            baseline_value.low is None
            or baseline_value.high is None
            or candidate_value.low is None
            or candidate_value.high is None
        ):
            return False
        return (
            bool(self.change)
            and baseline_value.low <= candidate_value.high
            and candidate_value.low <= baseline_value.high
        )

    @property
    def is_of_one_launch(self) -> bool:
        """True if it is a time that differs and is of a single launch on one side, so that its noise is not known."""
        is_time = self.baseline.is_time or self.baseline.is_leading
        return is_time and bool(self.change) and 1 in (self.baseline.launches, self.candidate.launches)

    @property
    def direction(self) -> str:
        """``better`` or ``worse`` by the numbers alone; "" where neither is."""
        baseline_value, candidate_value = self.judged_values
        if baseline_value is None or candidate_value is None or baseline_value == candidate_value or not self.is_judged:
            return ""
        return "better" if (candidate_value < baseline_value) == (self.baseline.better == "lower") else "worse"

    @property
    def is_judged(self) -> bool:
        """True if it was measured on both sides, and less or more of it is better: of an amount of work neither."""
        has_direction = self.change is not None and "neither" not in (self.baseline.better, self.candidate.better)
        return has_direction and (self.has_ideals or not self.baseline.of_work)

    @property
    def verdict(self) -> str:
        """``better`` or ``worse``; "" where it is neither, or changed by no more than launches vary or may vary."""
        return "" if self.is_within_noise or self.is_of_one_launch else self.direction

    @property
    def is_notable(self) -> bool:
        """True if it says something about the program: for better or worse, by a per cent, and not the probe's cost."""
        return bool(self.verdict) and not self.baseline.of_probe and self.size >= _NOTABLE_SIZE

    @property
    def change_text(self) -> str:
        """``▼ -512 B``, ``▲ +1.1 pp`` of a share, with sign and arrow; ``same``; "" where nothing can be said."""
        if self.change is None:
            return ""
        if not self.change:
            return "same"
        size = self.baseline.format_value(abs(self.change))
        size = f"{size.removesuffix('%')} pp" if size.endswith("%") else size
        return f"▲ +{size}" if self.change > 0 else f"▼ -{size}"

    @property
    def share_text(self) -> str:
        """``-50.0%``."""
        return "" if not self.share else f"{100 * self.share:+.1f}%"

    @property
    def value_text(self) -> str:
        """``registers per thread 32 → 15 (-53.1%)``."""
        share = f" ({self.share_text})" if self.share_text else ""
        return f"{self.baseline.label} {self.baseline.text} → {self.candidate.text}{share}{self._ideal_suffix}"

    @property
    def ideal_text(self) -> str:
        """``4``, ``4 → 8`` where the ideals differ; "" if they are not known."""
        baseline_text, candidate_text = self.baseline.ideal_text, self.candidate.ideal_text
        return (
            baseline_text
            if baseline_text == candidate_text or not candidate_text
            else f"{baseline_text or NOT_MEASURED} → {candidate_text}"
        )

    @property
    def _ideal_suffix(self) -> str:
        return f", ideal {self.ideal_text}" if self.ideal_text else ""

    @property
    def text(self) -> str:
        """Return the change as text, with the kernel where several are compared."""
        return f"{shorten(self.kernel, _NAME_WIDTH)}: {self.value_text}" if self.kernel else self.value_text

    @property
    def sort_key(self) -> tuple[int, float]:
        """Sort key: first what counts, the largest change before the others; last what stayed the same."""
        if self.change == 0:
            return 4, 0.0
        if self.change is None:
            return 3, 0.0
        if self.baseline.is_leading and self.is_judged:
            return -1, -self.weight
        return (2 if self.baseline.of_probe else 0 if self.verdict else 1), -self.weight


@dataclass(frozen=True, slots=True)
class KernelPair:
    """A kernel, or the launches of one shape, on both sides, with all values that at least one of them has."""

    name: str
    """Heading of the pair, with its index; "" if it is the only one."""
    index: int
    """Index of the kernel on the first side."""
    kernel: str
    grid: Dim3 | None
    block: Dim3 | None
    changes: Sequence[ValueChange]
    shape_texts: tuple[str, str] = ("", "")
    """Grid and block in words, where they vary or differ too."""
    problems: tuple[str, ...] = ()
    """Reason why results have no values."""
    is_of_different_kernels: bool = False
    """True if the two are not the same kernel, so that neither is better."""
    sides: tuple[ViewSource, ViewSource] | None = field(default=None, repr=False, compare=False)
    """The kernel or launch of each side, to continue from."""
    findings: Sequence[FindingChange] = ()
    """The findings that are flagged on one side at least."""
    waits: WaitComparison | None = None
    """Waits by line."""

    @property
    def _program_changes(self) -> list[ValueChange]:
        """Changes, without the cost of the probe."""
        return [change for change in self.changes if change.change and not change.baseline.of_probe]

    @property
    def lead(self) -> ValueChange | None:
        """The change that it is judged by: time or cycles, else the largest that counts, else the largest."""
        leading = (
            change
            for change in sorted(self.changes, key=lambda change: change.baseline.key != TIME_KEY)
            if _is_leading(change)
        )
        return next(leading, None) or next(iter(self._program_changes), None)

    @property
    def sort_key(self) -> tuple[int, float, int, float]:
        """Sort key: the largest loss first, then the largest change."""
        losses = [change.loss_order[1] for change in self.findings if change.trend]
        return int(not losses), min(losses, default=0.0), *self.lead_sort_key

    @property
    def lead_sort_key(self) -> tuple[int, float]:
        """Sort key by the value that it is judged by."""
        lead = self.lead
        if lead is None or self.verdict == "same":
            return 3, 0.0
        return (0 if lead.is_notable and lead.baseline.is_leading else 1 if lead.is_notable else 2), -lead.weight

    @property
    def verdict(self) -> str:
        """``better`` or ``worse`` by its findings and its time, else by its other values; ``mixed`` where these
        disagree, or others change and time does not; ``differs``, ``about the same``, ``same``.
        """
        lead = self.lead
        has_time = lead is not None and _is_leading(lead)
        speed = lead.verdict if lead is not None and has_time and lead.is_notable else ""
        judging = (finding for finding in self.findings if not speed or finding.outcome in ("fixed", "new"))
        if verdicts := {speed, *(finding.trend for finding in judging)} - {""}:
            return "mixed" if len(verdicts) > 1 else next(iter(verdicts))
        if lead is None or not self._program_changes:
            return "same"
        verdicts = {change.verdict for change in self.changes if change.is_notable and not change.baseline.is_leading}
        if lead.is_of_one_launch and lead.size >= _NOTABLE_SIZE:
            return "mixed" if len(verdicts) > 1 else next(iter(verdicts), "differs")
        if has_time:
            return "mixed" if verdicts else "about the same"
        return "mixed" if len(verdicts) > 1 else next(iter(verdicts), "differs")


def _is_leading(change: ValueChange) -> bool:
    return change.baseline.is_leading and change.is_judged


CHANGE_COLUMNS: Final[tuple[Column[ValueChange], ...]] = (
    Column("kernel", lambda c: c.kernel or None),
    Column("grid", lambda c: c.grid),
    Column("block", lambda c: c.block),
    Column("figure", lambda c: c.baseline.key, "metric", lambda c: c.baseline.label, right=False, narrow=20),
    Column("before", lambda c: c.baseline.value, "A", lambda c: c.baseline.text),
    Column("after", lambda c: c.candidate.value, "B", lambda c: c.candidate.text),
    Column("change", lambda c: c.change, "change", lambda c: c.change_text, rank=1),  # A and B tell it, too
    Column("share", lambda c: c.share, "", lambda c: c.share_text),
    Column(
        "spread",
        lambda c: [c.baseline.spread, c.candidate.spread],
        "spread",
        lambda c: _spread_text(c),
        rank=2,
        nested=True,
    ),
    Column("launches", lambda c: [c.baseline.launches, c.candidate.launches], nested=True),
    Column("within_noise", lambda c: c.is_within_noise),
    Column("ideal", None, "ideal", lambda c: c.ideal_text, rank=3),
    Column("verdict", lambda c: c.verdict or None, "", lambda c: _verdict_text(c), right=False),
    Column("ideals", lambda c: [c.baseline.ideal, c.candidate.ideal], nested=True),
)
"""``share`` is the change in parts of the first; ``verdict`` is null where neither is better; ``ideals`` are the values
without any loss, by which a metric that has them is judged.
"""


def _verdict_text(change: ValueChange) -> str:
    """``noise``, ``1 launch`` for a time without a known spread, else the verdict."""
    if change.is_within_noise:
        return "noise"
    return "1 launch" if change.is_of_one_launch and change.direction else change.verdict


def _spread_text(change: ValueChange) -> str:
    """``±2%, ±3%``: half the distance of the quartiles on both sides; "" where too few launches tell."""
    if change.baseline.spread is None and change.candidate.spread is None:
        return ""
    return ", ".join(
        "–" if side.spread is None else f"±{100 * side.spread:.0f}%" for side in (change.baseline, change.candidate)
    )


def value_changes(
    match: KernelMatch, progress: Progress, problems: dict[str, None], kernel: str = ""
) -> list[ValueChange]:
    """The values that at least one of the two has, the largest change first; why results have none in ``problems``."""
    baseline_values = _values_by_key(match, match.baseline, lambda share: progress(share / 2), problems)
    candidate_values = _values_by_key(match, match.candidate, lambda share: progress(0.5 + share / 2), problems)
    changes = []
    for key in dict.fromkeys([*baseline_values, *candidate_values]):
        baseline, candidate = baseline_values.get(key), candidate_values.get(key)
        if baseline is None or candidate is None:
            baseline, candidate = (
                baseline or replace(candidate_values[key], value=None),
                candidate or replace(baseline_values[key], value=None),
            )
        if baseline.value is not None or candidate.value is not None:
            changes.append(ValueChange(baseline, candidate, kernel, match.grid, match.block))
    changes = [_unjudged_if_unfair(change, baseline_values, candidate_values, match) for change in changes]
    return sorted(changes, key=lambda change: change.sort_key)


def _unjudged_if_unfair(
    change: ValueChange,
    baseline_values: Mapping[str, KernelValue],
    candidate_values: Mapping[str, KernelValue],
    match: KernelMatch,
) -> ValueChange:
    """Return the change without a judgement where none is possible: different kernels, costs of different probes,
    and registers where as many warps fit.
    """
    occupancies = [
        value.value
        for side in (baseline_values, candidate_values)
        for value in side.values()
        if value.key == _OCCUPANCY
    ]
    same_occupancy = len(occupancies) == 2 and None not in occupancies and occupancies[0] == occupancies[1]
    differs_in_probe = change.baseline.of_probe and match.probes_differ
    if match.names_differ or differs_in_probe or (change.baseline.key == _REGISTERS and same_occupancy):
        unjudged = replace(change.baseline, better="neither"), replace(change.candidate, better="neither")
        return replace(change, baseline=unjudged[0], candidate=unjudged[1])
    return change


def _values_by_key(
    match: KernelMatch, source: ViewSource, progress: Progress, problems: dict[str, None]
) -> dict[str, KernelValue]:
    values: list[KernelValue] = []
    if match.shape is None:
        values += launch_values(source)
    if match.has_results:
        values += probe_values(source, progress, problems, match.shape)
    return {f"{value.key} {value.label}": value for value in values}
