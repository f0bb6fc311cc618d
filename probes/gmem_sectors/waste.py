"""What each line moves for nothing: the sectors beyond the fewest that its bytes fit into."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from tui_probe.analysis.access_lines import access_lines
from tui_probe.analysis.counts import ratio
from tui_probe.probekit.lines import Share

from .analysis import is_counted, requests_and_sectors

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from tui_probe.analysis.access_lines import AccessLine
    from tui_probe.analysis.by_line import LineSums

_IDEALS: Final = ("load_ideal", "store_ideal", "copy_ideal")


@dataclass(frozen=True, slots=True)
class Waste:
    """One line: its ``access`` in words, such as ``load 4 B``, and its sectors; None what is not known."""

    line: LineSums
    access: str | None
    requests: int
    sectors: int
    ideal: int | None

    @property
    def wasted(self) -> int | None:
        """Sectors that nobody asked for."""
        return None if self.ideal is None else self.sectors - self.ideal

    @property
    def share(self) -> Share | None:
        """The part of its sectors that is."""
        part = None if self.wasted is None else ratio(self.wasted, self.sectors)
        return None if part is None else Share(part)


def waste_of_lines(lines: Iterable[LineSums], folder: Path | None) -> list[Waste]:
    """The lines, what is wasted most first; those that are not counted last."""
    code = access_lines(folder) if folder else {}
    found = [_waste(line, code.get(line.line)) for line in lines]
    return sorted(found, key=lambda each: (not is_counted(each.line), -(each.wasted or 0), -each.sectors))


def _waste(line: LineSums, code: AccessLine | None) -> Waste:
    requests, sectors = requests_and_sectors(line)
    size = code.bytes if code else None
    access = None if code is None else code.kind + ("" if size is None else f" {size} B")
    return Waste(line, access, requests, sectors, _ideal(line, size, requests, sectors))


def _ideal(line: LineSums, size: int | None, requests: int, sectors: int) -> int | None:
    """As the probe told; else that of 32 lanes of ``size`` bytes."""
    if all(name in line.sums for name in _IDEALS):
        return line.total(*_IDEALS)
    return None if size is None else min(size * requests, sectors)


def worst_line(lines: Iterable[LineSums], folder: Path | None) -> Waste | None:
    """The line that wastes most sectors; None if none wastes any."""
    worst = next(iter(waste_of_lines(lines, folder)), None)
    return worst if worst is not None and worst.wasted and is_counted(worst.line) else None
