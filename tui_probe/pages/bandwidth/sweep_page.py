"""Memory to shared memory by blocks and bytes in flight: a table, its curves, and what they say."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from tui_probe.analysis.sweep import Sweep, bytes_on_card
from tui_probe.draw import units
from tui_probe.draw.canvas import Canvas
from tui_probe.draw.hanging import hanging
from tui_probe.draw.spans import pad, wrap
from tui_probe.draw.units import NOT_MEASURED
from tui_probe.draw.view import Document
from tui_probe.pages.bandwidth.explanations import SWEEP
from tui_probe.pages.bandwidth.findings import sweep_findings
from tui_probe.pages.bandwidth.table_page import device_record

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from tui_probe.bandwidth.figures import Card
    from tui_probe.draw.spans import Line

_CELL: Final = 9
_BAR: Final = 20
_CURVE_ROWS: Final = 12
_LEFT: Final = 11
_SIGNS: Final = "abcdefghijklmnopqrstuvwxyz"
_TOP: Final = 7
"""The last of the roles ramp0 … ramp7."""


class SweepPage(Document):
    """All that was tried, with the best of each row as a bar; then the same as curves over the number of blocks."""

    title = "Memory to shared memory, GB/s: blocks down, bytes in flight in each across"

    def __init__(self, sweep: Sweep, card: Card | None, *, explained: bool = False) -> None:
        self.sweep, self.card, self.explained = sweep, card, explained

    def lines(self, width: int) -> Sequence[Line]:
        lines: list[Line] = [((self.title, "title"),)]
        for finding in sweep_findings(self.sweep, self.card):
            lines += [((part, ""),) for part in hanging(finding, width)]
        lines += [(), *self._table(width), (), *self._curves(width)]
        for paragraph in SWEEP if self.explained else ():
            lines += [(), *(((part, ""),) for part in wrap(paragraph, width))]
        return lines

    def _table(self, cells: int) -> Iterator[Line]:
        sweep = self.sweep
        heading = "".join(pad(units.size(flight), _CELL, right=True) for flight in sweep.flights)
        yield ((f"{'blocks':>8}", "head"), (heading, "head"))
        wide = 8 + _CELL * len(sweep.flights) + 2 + _BAR <= cells
        for blocks in sweep.blocks:
            spans: list[tuple[str, str]] = [(f"{units.count(blocks):>8}", "head")]
            for flight in sweep.flights:
                rate = sweep.at(blocks, flight)
                text = NOT_MEASURED if rate is None else units.count(round(rate.bytes_per_second / 1e9))
                role = "dim" if rate is None else f"ramp{round(_TOP * sweep.share(rate))}"
                spans.append((pad(text, _CELL, right=True), role))
            best = sweep.best_of(blocks)
            if wide and best is not None:
                spans += [("  ", ""), ("█" * max(round(_BAR * sweep.share(best)), 1), "ramp6")]
            yield tuple(spans)

    def _curves(self, cells: int) -> Iterator[Line]:
        """Bandwidth up, the tried numbers of blocks across at equal steps, a letter for the bytes in flight.

        Where several letters meet, that of the fewest bytes is shown.
        """
        sweep, room = self.sweep, cells - _LEFT - 1
        top, rows = sweep.best.bytes_per_second, _CURVE_ROWS
        canvas = Canvas(cells, rows + 2)
        step = min(max(room // max(len(sweep.blocks), 1), 6), 16)
        for third in range(4):
            row = round(third / 3 * (rows - 1))
            canvas.text(0, row, f"{units.rate(top * (3 - third) / 3) if third < 3 else '0':>{_LEFT - 2}} ┤", "dim")
        for place, blocks in enumerate(sweep.blocks):
            column = _LEFT + place * step + step // 2
            canvas.text(column - len(units.count(blocks)) + 1, rows + 1, units.count(blocks), "dim")
            for sign, flight in reversed([*zip(_SIGNS, sweep.flights, strict=False)]):
                rate = sweep.at(blocks, flight)
                if rate is not None:
                    row = round((1 - rate.bytes_per_second / top) * (rows - 1))
                    canvas.text(column, row, sign, f"hue{_SIGNS.index(sign) % 6}")
        canvas.text(_LEFT, rows, "─" * min(step * len(sweep.blocks), room), "rule")
        yield from canvas.lines()
        signs = (
            f"{sign} {units.size(flight)}".replace(" ", "\u00a0")
            for sign, flight in zip(_SIGNS, sweep.flights, strict=False)
        )
        for part in wrap(f"across: blocks; in flight in each: {'   '.join(signs)}", cells):
            yield ((part, "dim"),)

    def record(self) -> Mapping[str, Any]:
        return {
            "page": "sweep",
            "device": device_record(self.card),
            "sweep": [dict(self._row(r)) for r in self._rates()],
        }

    def _rates(self) -> list[Any]:
        return sorted(self.sweep.rates, key=lambda rate: (rate.blocks, rate.in_flight))

    @staticmethod
    def _row(rate: Any) -> list[tuple[str, object]]:
        return [
            ("blocks", rate.blocks),
            ("bytes_in_flight_a_block", rate.in_flight),
            ("bytes_in_flight", bytes_on_card(rate)),
            ("bytes_per_second", rate.bytes_per_second),
        ]

    def cells(self) -> Iterator[Sequence[object]]:
        yield [name for name, _ in self._row(self.sweep.best)]
        yield from ([value for _, value in self._row(rate)] for rate in self._rates())
