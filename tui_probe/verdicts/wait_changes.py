"""Waits of warps in baseline and candidate, by source line and class, whatever the offsets of the instructions are.

A wait is the same on both sides if its source line and its class are; without source lines, if its instruction and its
class are. Several instructions of one line and class are added up.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

from tui_probe.draw.table import Column
from tui_probe.draw.units import NOT_MEASURED
from tui_probe.probekit.lines import ShareValue
from tui_probe.probekit.measured import analyse_result, known_probe

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from tui_probe.probekit.probe import MeasuredWait
    from tui_probe.trace.model import KernelFacts
    from tui_probe.verdicts.kernel_matching import KernelMatch

_NOTABLE: Final = 0.01
"""Part of warp life from which on a wait is compared."""


@dataclass(frozen=True, slots=True)
class WaitChange:
    """Waits at a line for one class. None where a side did not measure it."""

    before: MeasuredWait | None
    after: MeasuredWait | None
    kernel: str = ""

    @property
    def shown(self) -> MeasuredWait:
        """The wait of the candidate, else of the baseline."""
        wait = self.after or self.before
        assert wait is not None
        return wait

    @property
    def producers(self) -> str:
        """``LDG a.cu:4``, or ``LDG a.cu:4 → LDS a.cu:7`` where another instruction is awaited now."""
        names = [side.producer for side in (self.before, self.after) if side is not None]
        return " → ".join(dict.fromkeys(filter(None, names)))

    @property
    def difference(self) -> float | None:
        """Growth of the share of warp life."""
        return None if self.before is None or self.after is None else self.after.share - self.before.share


def wait_changes(match: KernelMatch, kernel: str = "") -> list[WaitChange]:
    """Return the waits that take a notable part of warp life on one side, the largest first.

    Each probe of waits measures some instructions of a kernel: only probes that both sides have are compared.
    """
    results = [_newest_results(side.kernel) for side in (match.one, match.other)]
    probes = results[0].keys() & results[1].keys()
    before, after = (_waits(side, probes) for side in results)
    changes = [WaitChange(before.get(key), after.get(key), kernel) for key in {**before, **after}]
    notable = [change for change in changes if _largest(change) >= _NOTABLE]
    return sorted(notable, key=_largest, reverse=True)


def _largest(change: WaitChange) -> float:
    return max(side.share for side in (change.before, change.after) if side is not None)


def _waits(results: Mapping[str, list[MeasuredWait]], probes: Collection[str]) -> dict[tuple[str, str], MeasuredWait]:
    """Return the sums of the waits by line and class."""
    waits: dict[tuple[str, str], MeasuredWait] = {}
    for wait in (wait for probe in sorted(probes) for wait in results[probe]):
        key = wait.place, wait.kind
        known = waits.get(key)
        waits[key] = wait if known is None else replace(known, share=known.share + wait.share)
    return waits


def _newest_results(kernel: KernelFacts) -> dict[str, list[MeasuredWait]]:
    """Return the waits in the newest result of each probe that measures some, by its name."""
    results = {}
    for probed in kernel.by_probe():
        probe, newest = known_probe(probed), probed.find_newest_result()
        if probe.measured_waits is None or newest is None:
            continue
        result = analyse_result(probed.trace, probed, newest)
        if result.analysis is not None:
            results[probe.name] = [*probe.measured_waits(result.analysis)]
    return results


def _share_text(wait: MeasuredWait | None) -> str:
    return NOT_MEASURED if wait is None else ShareValue(wait.share).text


def _share(wait: MeasuredWait | None) -> float | None:
    return None if wait is None else wait.share


WAIT_COLUMNS: Final[tuple[Column[WaitChange], ...]] = (
    Column("kernel", lambda row: row.kernel or None),
    Column("line", lambda row: row.shown.place, "waits at", lambda row: row.shown.place, False),
    Column("waits_for", lambda row: row.shown.kind or None, "for", lambda row: row.shown.kind or NOT_MEASURED, False),
    Column("producer", lambda row: row.producers or None, "producer", lambda row: row.producers or "", False, 1, 12),
    Column("before", lambda row: _share(row.before), "A", lambda row: _share_text(row.before)),
    Column("after", lambda row: _share(row.after), "B", lambda row: _share_text(row.after)),
    Column("difference", lambda row: row.difference),
)


def wait_records(changes: list[WaitChange]) -> list[dict[str, Any]]:
    """Return the JSON records."""
    columns = [column for column in WAIT_COLUMNS if column.value is not None]
    return [{column.key: column.value(change) for column in columns if column.value} for change in changes]
