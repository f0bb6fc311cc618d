"""Charts as lines of text: small columns, stacked bars, and distributions with percentiles and cumulative shares.

Functions that need NumPy import it themselves: the first frame of a screen draws bars only.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

from tui_probe.draw.printable import printable
from tui_probe.draw.shorten import cut_middle
from tui_probe.draw.spans import Line, clip, clip_line, pad, to_ascii, width
from tui_probe.draw.units import NOT_MEASURED
from tui_probe.draw.view import Drawing

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from numpy.typing import NDArray

_EIGHTHS = " ▁▂▃▄▅▆▇█"
_ASCII = " .:-=+*%#"
_SIGNS: Final = "█▒░▌▄"
"""Fills of parts, distinct without colour."""
_MAX_LABEL_CELLS: Final = 32
"""Cells of the label of a bar at most."""
_MIN_BAR_CELLS: Final = 10
"""Cells of the longest bar at least."""
SHARES: Final = (0, 50, 90, 99, 100)
"""Percentiles of a line of a distribution."""
TITLES: Final = ("min", "median", "90 %", "99 %", "max")
_LABEL_CELLS: Final = 16
_VALUE_CELLS: Final = 9
_HISTOGRAM_BINS: Final = 16
"""Columns of a histogram, a cell each."""
_MARKER: Final = "•"
"""One that has a sign in ASCII."""
_CURVE_POINTS: Final = 400
"""Points of a curve: more than the dots of a wide terminal."""
_AXIS_LABELS: Final = 5
"""Labels of the axis of values."""
_PLOTEXT_LOCK: Final = threading.Lock()
"""plotext draws on one value of the whole process."""


def column_chart(
    values: Sequence[float | None], width: int, height: int = 1, *, maximum: float, ascii_only: bool = False
) -> list[str]:
    """Return the last ``width`` values as columns, newest at the right, in ``height`` rows of text, top row first.

    A column reaches from 0 to its value on a scale that ends at ``maximum`` (same unit as the values); a value of 0
    still shows its lowest mark, so that it differs from None, which stays blank.
    """
    ramp = _ASCII if ascii_only else _EIGHTHS
    steps = len(ramp) - 1
    levels = [_level(value, maximum, height * steps) for value in values[-width:]]
    rows = []
    for row in range(height - 1, -1, -1):
        marks = "".join(ramp[max(0, min(steps, level - row * steps))] for level in levels)
        rows.append(marks.rjust(width))
    return rows


def _level(value: float | None, maximum: float, levels: int) -> int:
    if value is None:
        return 0
    if maximum <= 0:
        return 1
    return max(1, min(levels, round(value / maximum * levels)))


def row_bar(share: float, cells: int) -> str:
    """Return a part of 1 as a bar in ``cells`` cells, in halves; a value above 0 has at least half a cell."""
    halves = max(1, round(2 * cells * min(share, 1.0))) if share > 0 else 0
    return ("█" * (halves // 2) + "▌" * (halves % 2)).ljust(cells)


@dataclass(frozen=True, slots=True)
class Bar:
    """``parts`` lie one after another; None is not measured. ``words`` are behind the bar, "" for its sum.

    ``spread`` are the least and the most of repeated measurements, in the unit of the parts.
    """

    label: str
    parts: tuple[float | None, ...]
    words: str = ""
    spread: tuple[float, float] | None = None

    @property
    def total(self) -> float | None:
        """The sum of the parts that were measured; None if none was."""
        measured_parts = [part for part in self.parts if part is not None]
        return sum(measured_parts) if measured_parts else None

    @property
    def end(self) -> float:
        """The end of the bar, spread included."""
        return max(self.total or 0.0, self.spread[1] if self.spread else 0.0)


class BarChart(Drawing):
    """``parts`` are the names of the parts; ``unit`` what a length means; ``show`` makes words of a sum.

    ``keys`` are what data calls the parts, where that is not their names.
    """

    def __init__(
        self,
        title: str,
        bars: Sequence[Bar],
        parts: Sequence[str],
        unit: str,
        show: Callable[[float], str],
        keys: Sequence[str] = (),
    ) -> None:
        self.title, self.bars, self.parts, self.unit, self.show = title, bars, parts, unit, show
        self.keys = keys or parts
        self.first = 0

    def draw(self, width: int, height: int, *, ascii_only: bool = False) -> list[Line]:
        visible_count = max(height - 3, 1)
        self.first = max(min(self.first, len(self.bars) - visible_count), 0)
        visible_bars = self.bars[self.first : self.first + visible_count]
        title: Line = ((clip(self.title, width), "title"),)
        lines = [title, *self._bar_lines(visible_bars, width), (), ((self._legend(), "dim"),)]
        if ascii_only:
            lines = [tuple((to_ascii(text), role) for text, role in line) for line in lines]
        lines = [clip_line(line, width) for line in lines[:height]]
        return [*lines, *([()] * (height - len(lines)))]

    def _legend(self) -> str:
        names = (f"{sign} {name}" for sign, name in zip(_SIGNS, self.parts, strict=False))
        remaining = len(self.bars) - self.first
        start_text = f"   (from bar {self.first + 1})" if remaining < len(self.bars) else ""
        return f"{self.unit}: {'   '.join(names)}{start_text}"

    def _bar_lines(self, bars: Sequence[Bar], cells: int) -> Iterator[Line]:
        label_cells = min(max((width(bar.label) for bar in bars), default=0), _MAX_LABEL_CELLS)
        value_texts = [self._bar_text(bar) for bar in bars]
        text_cells = max(map(width, value_texts), default=0)
        bar_cells = max(cells - label_cells - text_cells - 3, _MIN_BAR_CELLS)
        scale_end = max((bar.end for bar in self.bars), default=0.0)
        for bar, value_text in zip(bars, value_texts, strict=True):
            bar_spans = self._bar_spans(bar, scale_end, bar_cells)
            drawn_cells = sum(width(text) for text, _ in bar_spans)
            yield (
                (pad(cut_middle(bar.label, label_cells), label_cells) + " ", ""),
                *bar_spans, (" " * (bar_cells - drawn_cells + 1), ""),
                (pad(clip(value_text, text_cells), text_cells, right=True), ""),
            )  # fmt: skip

    def _bar_text(self, bar: Bar) -> str:
        return bar.words or (NOT_MEASURED if bar.total is None else self.show(bar.total))

    def _bar_spans(self, bar: Bar, scale_end: float, cells: int) -> list[tuple[str, str]]:
        """Ends are rounded, not lengths, so that the bar is as long as its sum."""
        spans, total, begin = [], 0.0, 0
        for place, part in enumerate(bar.parts):
            total += part or 0.0
            end = round(total / scale_end * cells) if scale_end else 0
            spans.append((_SIGNS[place % len(_SIGNS)] * (end - begin), f"hue{place % 6}"))
            begin = end
        if bar.spread and scale_end:
            spread_end = round(bar.spread[1] / scale_end * cells)
            spans.append(("─" * max(spread_end - begin - 1, 0) + ("┤" if spread_end > begin else ""), "dim"))
        return spans

    def commands(self) -> Mapping[str, str]:
        return {"up": "previous bars", "down": "next bars"}

    def press(self, command: str) -> str | None:
        if command in ("up", "down"):
            self.first = max(0, self.first + (1 if command == "down" else -1))
        return None

    def record(self) -> Mapping[str, Any]:
        return {"title": self.title, "unit": self.unit, "bars": [self._row(bar) for bar in self.bars]}

    def _row(self, bar: Bar) -> dict[str, Any]:
        minimum, maximum = bar.spread or (None, None)
        return {"label": bar.label, **dict(zip(self.keys, bar.parts, strict=True)), "least": minimum, "most": maximum}

    def cells(self) -> Iterator[Sequence[object]]:
        yield ("label", *self.keys, "least", "most")
        yield from (tuple(self._row(bar).values()) for bar in self.bars)

    def plot(self, axes: Any) -> None:
        """Bars from the top down, with spreads as error bars."""
        places = list(range(len(self.bars)))
        bar_ends = [0.0] * len(self.bars)
        for number, name in enumerate(self.parts):
            lengths = [bar.parts[number] or 0.0 for bar in self.bars]
            axes.barh(places, lengths, left=bar_ends, label=name)
            bar_ends = [begin + length for begin, length in zip(bar_ends, lengths, strict=True)]
        for place, bar, end in zip(places, self.bars, bar_ends, strict=True):
            if bar.spread:
                minimum, maximum = bar.spread
                reach = [[max(end - minimum, 0.0)], [max(maximum - end, 0.0)]]
                axes.errorbar([end], [place], xerr=reach, color="black", capsize=3)
            axes.annotate(f" {self._bar_text(bar)}", (bar.end or end, place), va="center")
        axes.set_yticks(places, [bar.label for bar in self.bars])
        axes.invert_yaxis()
        axes.margins(x=0.15)
        axes.set_xlabel(self.unit)
        axes.set_title(self.title)
        if len(self.parts) > 1:
            axes.legend()


def percentiles(values: Sequence[float]) -> list[float] | None:
    """The values below which ``SHARES`` per cent of all lie, between neighbours linearly; None if there are none."""
    import numpy as np

    return np.percentile(np.asarray(values, dtype=np.float64), SHARES).tolist() if len(values) else None


def percentile_heading() -> Line:
    """Return the titles of the columns."""
    titles = "".join(pad(title, _VALUE_CELLS, right=True) for title in TITLES)
    return ((" " + pad("", _LABEL_CELLS), "dim"), (titles + "  shape", "head"))


def distribution_line(label: str, values: Sequence[float], format_value: Callable[[float], str]) -> Line:
    """Return one line: percentiles, and a histogram from the minimum to the maximum."""
    shares = percentiles(values) or []
    texts = "".join(pad(format_value(value), _VALUE_CELLS, right=True) for value in shares)
    return ((" " + pad(label, _LABEL_CELLS), "dim"), (texts, ""), (f"  {_histogram(values)}", "accent"))


def _histogram(values: Sequence[float]) -> str:
    import numpy as np

    data = np.asarray(values, dtype=np.float64)
    if data.min() == data.max():
        return "all equal"
    counts, _ = np.histogram(data, bins=_HISTOGRAM_BINS)
    return column_chart([int(n) if n else None for n in counts], _HISTOGRAM_BINS, maximum=float(counts.max()))[0]


def cdf_chart(values: NDArray[Any], cells: int, rows: int, label: str) -> list[str]:
    """Draw the share (%) of the values at or below each value, as ``rows`` lines of at most ``cells`` cells.

    ``values`` has shape (n,), any real dtype; ``label`` says what they are, and in which unit.
    """
    import numpy as np

    shares = np.linspace(0, 100, _CURVE_POINTS)
    points = np.percentile(values, shares, method="inverted_cdf")
    return list(_cdf_lines(tuple(points.tolist()), tuple(shares.tolist()), cells, rows, label))


@lru_cache(maxsize=16)
def _cdf_lines(x: tuple[float, ...], y: tuple[float, ...], cells: int, rows: int, label: str) -> tuple[str, ...]:
    """Remembered, since a page is drawn again whenever it is scrolled."""
    import numpy as np
    import plotext

    with _PLOTEXT_LOCK:
        plotext.clear_figure()
        plotext.limit_size(False, False)
        plotext.plotsize(cells, rows)
        plotext.theme("clear")
        plotext.plot(x, y, marker=_MARKER)
        plotext.yticks([0, 25, 50, 75, 100])
        marks = np.linspace(x[0], x[-1], _AXIS_LABELS).tolist() if x[-1] > x[0] else [x[0]]
        plotext.xticks(marks, [f"{mark:,.0f}".replace(",", " ") for mark in marks])
        plotext.xlabel(label)
        plotext.ylabel("% at or below the value")
        text: str = plotext.build()
    return tuple(printable(line).rstrip() for line in text.splitlines())
