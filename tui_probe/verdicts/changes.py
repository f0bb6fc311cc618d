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

    before: KernelValue
    after: KernelValue
    kernel: str = ""
    grid: Dim3 | None = None
    block: Dim3 | None = None

    @property
    def change(self) -> float | None:
        """Return after minus before; None if one of them was not measured."""
        before, after = self.before.value, self.after.value
        return None if before is None or after is None else after - before

    @property
    def share(self) -> float | None:
        """The change in parts of the first; None where that is 0."""
        return None if self.change is None or not self.before.value else self.change / self.before.value

    @property
    def compared(self) -> tuple[float | None, float | None]:
        """The numbers that are judged: in parts of their ideals where both have one, else as they are."""
        excess = self.before.excess, self.after.excess
        return (self.before.value, self.after.value) if None in excess else excess

    @property
    def has_ideals(self) -> bool:
        """True if it is judged by its ideals."""
        return None not in (self.before.excess, self.after.excess) or self.before.ideal == self.after.ideal == 0

    @property
    def size(self) -> float:
        """Size in powers of two, alike for twice and half; infinite from or to 0, 0 if it is not known."""
        before, after = self.compared
        if before is None or after is None or before == after:
            return 0.0
        return abs(log2(after / before)) if before > 0 and after > 0 else inf

    @property
    def weight(self) -> float:
        """Size of the change for sorting: one from or to 0 has no ratio and counts as just notable."""
        return self.size if isfinite(self.size) else _NOTABLE_SIZE

    @property
    def within_noise(self) -> bool:
        """True if the middle halves of the launches of both sides overlap; False where too few show how they vary."""
        before, after = self.before, self.after
        if before.low is None or before.high is None or after.low is None or after.high is None:
            return False
        return bool(self.change) and before.low <= after.high and after.low <= before.high

    @property
    def is_of_one_launch(self) -> bool:
        """True if it is a time that differs and is of a single launch on one side, so that its noise is not known."""
        is_time = self.before.is_time or self.before.leads
        return is_time and bool(self.change) and 1 in (self.before.launches, self.after.launches)

    @property
    def direction(self) -> str:
        """``better`` or ``worse`` by the numbers alone; "" where neither is."""
        before, after = self.compared
        if before is None or after is None or before == after or not self.judged:
            return ""
        return "better" if (after < before) == (self.before.better == "lower") else "worse"

    @property
    def judged(self) -> bool:
        """True if it was measured on both sides, and less or more of it is better: of an amount of work neither."""
        known = self.change is not None and "neither" not in (self.before.better, self.after.better)
        return known and (self.has_ideals or not self.before.of_work)

    @property
    def verdict(self) -> str:
        """``better`` or ``worse``; "" where it is neither, or changed by no more than launches vary or may vary."""
        return "" if self.within_noise or self.is_of_one_launch else self.direction

    @property
    def counts(self) -> bool:
        """True if it says something about the program: for better or worse, by a per cent, and not the probe's cost."""
        return bool(self.verdict) and not self.before.of_probe and self.size >= _NOTABLE_SIZE

    @property
    def change_text(self) -> str:
        """``▼ -512 B``, ``▲ +1.1 pp`` of a share, with sign and arrow; ``same``; "" where nothing can be said."""
        if self.change is None:
            return ""
        if not self.change:
            return "same"
        size = self.before.show(abs(self.change))
        size = f"{size.removesuffix('%')} pp" if size.endswith("%") else size
        return f"▲ +{size}" if self.change > 0 else f"▼ -{size}"

    @property
    def share_text(self) -> str:
        """``-50.0%``."""
        return "" if not self.share else f"{100 * self.share:+.1f}%"

    @property
    def words(self) -> str:
        """``registers per thread 32 → 15 (-53.1%)``."""
        share = f" ({self.share_text})" if self.share_text else ""
        return f"{self.before.label} {self.before.text} → {self.after.text}{share}{self._ideal_words}"

    @property
    def ideal_text(self) -> str:
        """``4``, ``4 → 8`` where the ideals differ; "" if they are not known."""
        before, after = self.before.ideal_text, self.after.ideal_text
        return before if before == after or not after else f"{before or NOT_MEASURED} → {after}"

    @property
    def _ideal_words(self) -> str:
        return f", ideal {self.ideal_text}" if self.ideal_text else ""

    @property
    def text(self) -> str:
        """Return the change as text, with the kernel where several are compared."""
        return f"{shorten(self.kernel, _NAME_WIDTH)}: {self.words}" if self.kernel else self.words

    @property
    def place(self) -> tuple[int, float]:
        """Sort key: first what counts, the largest change before the others; last what stayed the same."""
        if self.change == 0:
            return 4, 0.0
        if self.change is None:
            return 3, 0.0
        if self.before.leads and self.judged:
            return -1, -self.weight
        return (2 if self.before.of_probe else 0 if self.verdict else 1), -self.weight


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
    launched: tuple[str, str] = ("", "")
    """Grid and block in words, where they vary or differ too."""
    problems: tuple[str, ...] = ()
    """Reason why results have no values."""
    different: bool = False
    """True if the two are not the same kernel, so that neither is better."""
    sides: tuple[ViewSource, ViewSource] | None = field(default=None, repr=False, compare=False)
    """The kernel or launch of each side, to continue from."""
    findings: Sequence[FindingChange] = ()
    """The findings that are flagged on one side at least."""
    waits: WaitComparison | None = None
    """Waits by line."""

    @property
    def _of_program(self) -> list[ValueChange]:
        """Changes, without the cost of the probe."""
        return [change for change in self.changes if change.change and not change.before.of_probe]

    @property
    def lead(self) -> ValueChange | None:
        """The change that it is judged by: time or cycles, else the largest that counts, else the largest."""
        timed = (
            change
            for change in sorted(self.changes, key=lambda change: change.before.key != TIME_KEY)
            if _is_leading(change)
        )
        return next(timed, None) or next(iter(self._of_program), None)

    @property
    def place(self) -> tuple[int, float, int, float]:
        """Sort key: the largest loss first, then the largest change."""
        losses = [change.loss_order[1] for change in self.findings if change.trend]
        return int(not losses), min(losses, default=0.0), *self.lead_place

    @property
    def lead_place(self) -> tuple[int, float]:
        """Sort key by the value that it is judged by."""
        lead = self.lead
        if lead is None or self.verdict == "same":
            return 3, 0.0
        return (0 if lead.counts and lead.before.leads else 1 if lead.counts else 2), -lead.weight

    @property
    def verdict(self) -> str:
        """``better`` or ``worse`` by its findings and its time, else by its other values; ``mixed`` where these
        disagree, or others change and time does not; ``differs``, ``about the same``, ``same``.
        """
        lead = self.lead
        timed = lead is not None and _is_leading(lead)
        speed = lead.verdict if lead is not None and timed and lead.counts else ""
        judging = (finding for finding in self.findings if not speed or finding.outcome in ("fixed", "new"))
        if verdicts := {speed, *(finding.trend for finding in judging)} - {""}:
            return "mixed" if len(verdicts) > 1 else next(iter(verdicts))
        if lead is None or not self._of_program:
            return "same"
        verdicts = {change.verdict for change in self.changes if change.counts and not change.before.leads}
        if lead.is_of_one_launch and lead.size >= _NOTABLE_SIZE:
            return "mixed" if len(verdicts) > 1 else next(iter(verdicts), "differs")
        if timed:
            return "mixed" if verdicts else "about the same"
        return "mixed" if len(verdicts) > 1 else next(iter(verdicts), "differs")


def _is_leading(change: ValueChange) -> bool:
    return change.before.leads and change.judged


CHANGE_COLUMNS: Final[tuple[Column[ValueChange], ...]] = (
    Column("kernel", lambda c: c.kernel or None),
    Column("grid", lambda c: c.grid),
    Column("block", lambda c: c.block),
    Column("figure", lambda c: c.before.key, "metric", lambda c: c.before.label, right=False, narrow=20),
    Column("before", lambda c: c.before.value, "A", lambda c: c.before.text),
    Column("after", lambda c: c.after.value, "B", lambda c: c.after.text),
    Column("change", lambda c: c.change, "change", lambda c: c.change_text, rank=1),  # A and B tell it, too
    Column("share", lambda c: c.share, "", lambda c: c.share_text),
    Column(
        "spread", lambda c: [c.before.spread, c.after.spread], "spread", lambda c: _spread_text(c), rank=2, nested=True
    ),
    Column("launches", lambda c: [c.before.launches, c.after.launches], nested=True),
    Column("within_noise", lambda c: c.within_noise),
    Column("ideal", None, "ideal", lambda c: c.ideal_text, rank=3),
    Column("verdict", lambda c: c.verdict or None, "", lambda c: _verdict_text(c), right=False),
    Column("ideals", lambda c: [c.before.ideal, c.after.ideal], nested=True),
)
"""``share`` is the change in parts of the first; ``verdict`` is null where neither is better; ``ideals`` are the values
without any loss, by which a metric that has them is judged.
"""


def _verdict_text(change: ValueChange) -> str:
    """``noise``, ``1 launch`` for a time without a known spread, else the verdict."""
    if change.within_noise:
        return "noise"
    return "1 launch" if change.is_of_one_launch and change.direction else change.verdict


def _spread_text(change: ValueChange) -> str:
    """``±2%, ±3%``: half the distance of the quartiles on both sides; "" where too few launches tell."""
    if change.before.spread is None and change.after.spread is None:
        return ""
    return ", ".join(
        "–" if side.spread is None else f"±{100 * side.spread:.0f}%" for side in (change.before, change.after)
    )


def value_changes(
    match: KernelMatch, progress: Progress, problems: dict[str, None], kernel: str = ""
) -> list[ValueChange]:
    """The values that at least one of the two has, the largest change first; why results have none in ``problems``."""
    before = _values_by_key(match, match.baseline, lambda share: progress(share / 2), problems)
    after = _values_by_key(match, match.candidate, lambda share: progress(0.5 + share / 2), problems)
    changes = []
    for key in dict.fromkeys([*before, *after]):
        baseline, candidate = before.get(key), after.get(key)
        if baseline is None or candidate is None:
            baseline, candidate = (
                baseline or replace(after[key], value=None),
                candidate or replace(before[key], value=None),
            )
        if baseline.value is not None or candidate.value is not None:
            changes.append(ValueChange(baseline, candidate, kernel, match.grid, match.block))
    changes = [_fair_change(change, before, after, match) for change in changes]
    return sorted(changes, key=lambda change: change.place)


def _fair_change(
    change: ValueChange, before: Mapping[str, KernelValue], after: Mapping[str, KernelValue], match: KernelMatch
) -> ValueChange:
    """Return the change without a judgement where none is possible: different kernels, costs of different probes,
    and registers where as many warps fit.
    """
    filled = [value.value for side in (before, after) for value in side.values() if value.key == _OCCUPANCY]
    as_full = len(filled) == 2 and None not in filled and filled[0] == filled[1]
    of_others = change.before.of_probe and match.probes_differ
    if match.names_differ or of_others or (change.before.key == _REGISTERS and as_full):
        neither = replace(change.before, better="neither"), replace(change.after, better="neither")
        return replace(change, before=neither[0], after=neither[1])
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
