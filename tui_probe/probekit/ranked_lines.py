"""Lines by how much of something each has: what several probes tell of lines, and of the first of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tui_probe.draw import units
from tui_probe.probekit.finding import Finding, place, share
from tui_probe.probekit.lines import LineRow, share_text

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from tui_probe.analysis.by_line import LineSums
    from tui_probe.probekit.finding import Value


def ranked_rows(
    lines: Iterable[LineSums],
    amount: Callable[[LineSums], float],
    found: Callable[[LineSums], Mapping[str, Any]],
) -> list[LineRow]:
    """A row for each line, that with most first: its ``share`` of the amount of all, then what was ``found`` of it."""
    ranked = sorted(lines, key=lambda line: -amount(line))
    whole = sum(map(amount, ranked))
    return [
        LineRow(line.line, line.source, {"share": share_text(amount(line), whole), **found(line)}) for line in ranked
    ]


def longest_waits(
    key: str, label: str, line: LineSums, whole: int, per_wait: float | None, values: Mapping[str, Value]
) -> Finding:
    """The place where warps waited longest: its share of ``whole``, the cycles of all, and the cycles per wait."""
    words = f"{place(line.line, line.source, line.opcode)}, {share(line.sums['waited'], whole)} of all waiting, "
    words += f"{units.count(round(per_wait or 0))} cycles per wait"
    return Finding(key, label, words, "lines", line.line, values={"waited": line.sums["waited"], **values})
