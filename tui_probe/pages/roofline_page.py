"""Page of the roofline: chart with a cursor, chart as text, and table."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple

from tui_probe.draw import units
from tui_probe.draw.canvas import Canvas
from tui_probe.draw.printable import printable
from tui_probe.draw.shorten import shorten
from tui_probe.draw.spans import clip, hang_line, plain
from tui_probe.draw.table import Column
from tui_probe.draw.table_content import PageTexts
from tui_probe.draw.units import NOT_MEASURED
from tui_probe.draw.view import Drawing
from tui_probe.pages.table_page import TablePage
from tui_probe.probekit.measured import probe_measuring_all, probe_option_for
from tui_probe.probekit.page_kinds import LazyPage, PageSet
from tui_probe.verdicts.limiter import LIMITER_QUANTITIES

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from pathlib import Path

    from tui_probe.draw.spans import Line
    from tui_probe.verdicts.roofline import Roof, RooflinePoint

_AXIS_CELLS: Final = 9
"""Cells left of the plot: the labels of the vertical axis, and the axis."""
_MARGIN_DECADES: Final = 0.3
"""Powers of ten around what is shown."""
_FEW_DECADES: Final = 2.5
"""Powers of ten on an axis below which 2 and 5 times them are labelled, too."""
NO_CHART_NOTE: Final = (
    "No chart: a chart needs bytes, operations and time of a kernel, and both limits (--bandwidth, --peak)."
)
_MAX_EXPLAINED: Final = 20
"""Kernels whose verdicts are explained."""
_VERDICT_NAME_WIDTH: Final = 40
_SIGNS: Final = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
ROOFLINE_NOTE: Final = (
    "Bytes are the bytes that the kernel's instructions request, before caches; a kernel above the memory roof gets a"
    " part of its bytes from caches. Operations are counted at matrix instructions. In kernels without matrix"
    " instructions, fp32, fp64 and fp16 operations are counted. The peak is the dense half-precision rate of the"
    " tensor cores at the highest clock."
)
ROOFLINE_EXPLANATION: Final = (
    "A kernel is limited by the unit with at least 60 % utilization: memory, tensor cores, fp32, fp64 or fp16 pipes,"
    " or issue slots. If no unit reaches 60 %, there are three cases. First, the kernel is latency bound: warps wait"
    " for each other, for memory or for blocks. Second, the kernel is too small for the GPU. Third, the kernel is so"
    " short that the launch itself takes most of the time.",
    "Bytes are counted at instructions, before caches. The share of memory is therefore an upper bound (≤). The share"
    " exceeds 100 % if caches serve a part of the bytes. With --ncu FILE.csv, the page names the level (DRAM or L2)"
    " that ncu measured. Without this option, the page names L2 if the memory that the launch can touch fits in half"
    " of L2. The page names DRAM if this memory does not fit and the kernel requests each byte about once. The shares"
    " of other units are lower bounds.",
    "The roof is the limit of the GPU. To the left of the ridge, the roof is memory bandwidth × operations per byte."
    " To the right of the ridge, the roof is the tensor core peak. Below the slanted part, a kernel becomes faster"
    " only with fewer bytes per operation: larger tiles, fused kernels or smaller types. Kernels without operations"
    " are not in the chart.",
)
_NAME_WIDTH: Final = 48
_MOVES: Final[dict[str, tuple[str, Callable[[RooflineChart], str | None]]]] = {
    "left": ("go to the kernel with fewer operations per byte", lambda view: view.select_neighbour("intensity", -1)),
    "right": ("go to the kernel with more operations per byte", lambda view: view.select_neighbour("intensity", 1)),
    "up": ("go to the next faster kernel", lambda view: view.select_neighbour("rate", 1)),
    "down": ("go to the next slower kernel", lambda view: view.select_neighbour("rate", -1)),
    "next": ("go to the kernel with more operations per byte", lambda view: view.select_neighbour("intensity", 1)),
    "previous": (
        "go to the kernel with fewer operations per byte",
        lambda view: view.select_neighbour("intensity", -1),
    ),
    "start": ("go to the kernel with the fewest operations per byte", lambda view: view.select_end(0)),
    "end": ("go to the kernel with the most operations per byte", lambda view: view.select_end(-1)),
    "worst": ("go to the kernel furthest below its roof", lambda view: view.select_furthest()),
}


def roofline_columns(points: Sequence[RooflinePoint], roof: Roof) -> tuple[Column[RooflinePoint], ...]:
    """Return the table's columns; ``busy`` is how busy the unit is that limits."""
    signs = {id(point): sign for point, sign in zip(points, _SIGNS, strict=False)}
    return (
        Column("trace", lambda p: None if p.place is None else str(p.place[0])),
        Column("kernel", lambda p: None if p.place is None else p.place[1]),
        Column("sign", None, "", lambda p: signs.get(id(p), ""), right=False),
        Column("name", lambda p: p.name),
        Column("demangled", lambda p: p.demangled, "kernel", lambda p: p.demangled,
               right=False, narrow=16, shorten=shorten),
        Column("bytes", lambda p: p.size, "bytes", lambda p: units.size(p.size), rank=2),
        Column("operations", lambda p: p.operations, "operations", lambda p: scaled_text(p.operations), rank=3),
        Column("seconds", lambda p: p.seconds, "time", lambda p: units.duration(p.seconds), rank=3),
        Column("intensity", lambda p: p.intensity, "op/B", lambda p: _number(p.intensity)),
        Column("bytes_per_second", lambda p: p.bytes_per_second, "requested",
               lambda p: units.rate(p.bytes_per_second), rank=1),
        Column("operations_per_second", lambda p: p.operations_per_second, "op/s",
               lambda p: scaled_text(p.operations_per_second)),
        Column("share_of_roof", lambda p: p.share_of(roof)),
        Column("busy", lambda p: p.share, "busy", lambda p: _percent(p.share)),
        Column("bound", lambda p: p.limit, "limited by", lambda p: p.limit or NOT_MEASURED, right=False),
        Column("problem", lambda p: p.problem, "", lambda p: p.problem or "", right=False, rank=4),
    )  # fmt: skip


def roof_record(roof: Roof) -> dict[str, Any]:
    """Return the roof as JSON."""
    return {
        "page": "roofline",
        "peak_operations_per_second": roof.peak,
        "peak_fp32_operations_per_second": roof.fp32,
        "bytes_per_second": roof.bandwidth,
        "ridge": roof.ridge,
    }


def roof_lines(roof: Roof, cells: int) -> Iterator[str]:
    """Yield the roof in words."""
    ridge = NOT_MEASURED if roof.ridge is None else f"{roof.ridge:.0f} op/B"
    fp32 = "" if roof.fp32 is None else f", fp32 {scaled_text(roof.fp32)} op/s"
    text = f"memory {units.rate(roof.bandwidth)}, tensor cores {scaled_text(roof.peak)} op/s{fp32}, ridge at {ridge}"
    yield from hang_line(text, cells)


class PlacedPoint(NamedTuple):
    """A kernel with a place in the chart, and the letter that stands for it."""

    sign: str
    point: RooflinePoint
    intensity: float
    """Operations per requested byte."""
    rate: float
    """Operations per second."""


def placed_points(points: Sequence[RooflinePoint], roof: Roof) -> list[PlacedPoint]:
    """Return the points that have a place in the chart; none without a roof."""
    if roof.ridge is None:
        return []
    return [
        PlacedPoint(sign, point, point.intensity, point.operations_per_second)
        for sign, point in zip(_SIGNS, points, strict=False)
        if point.intensity and point.operations_per_second
    ]


def roofline_chart(
    points: Sequence[RooflinePoint],
    roof: Roof,
    cells: int,
    rows: int,
    selected_point: RooflinePoint | None = None,
    *,
    ascii_only: bool = False,
) -> list[Line]:
    """Intensity across, operations per second up, one letter per kernel as in the table; empty where there is nothing.

    Lines lead from ``selected_point`` up to its roof and down to the axis.
    """
    placed_kernels = placed_points(points, roof)
    if not placed_kernels or roof.ridge is None or roof.peak is None:
        return []
    min_x, max_x, min_y, max_y = _axis_limits(
        [placed.intensity for placed in placed_kernels],
        [placed.rate for placed in placed_kernels],
        roof.ridge,
        roof.peak,
    )
    canvas = Canvas(cells, rows)
    plot = _Plot(canvas, cells - _AXIS_CELLS, rows - 3, min_x, max_x, min_y, max_y)
    plot.draw_axes()
    for column in range(plot.cells):
        limit = roof.rate_at(10 ** plot.x_of(column))
        if limit:
            plot.draw_sign(column, math.log10(limit), "─" if limit == roof.peak else "∙", "rule")
    for _, point, x, _ in placed_kernels:
        if point is selected_point:
            plot.draw_drop_line(plot.column_of(math.log10(x)), math.log10(roof.rate_at(x) or roof.peak))
    for sign, point, x, y in placed_kernels:
        plot.draw_sign(
            plot.column_of(math.log10(x)), math.log10(y), sign, "select" if point is selected_point else "accent"
        )
    return canvas.lines(ascii_only=ascii_only)


class _Plot:
    """Logarithmic axes: powers of ten from ``min_x`` to ``max_x`` and from ``min_y`` to ``max_y``."""

    def __init__(
        self, canvas: Canvas, cells: int, rows: int, min_x: float, max_x: float, min_y: float, max_y: float
    ) -> None:
        self._canvas, self.cells, self._rows = canvas, cells, rows
        self._min_x, self._max_x, self._min_y, self._max_y = min_x, max_x, min_y, max_y

    def x_of(self, column: int) -> float:
        return self._min_x + column / max(1, self.cells - 1) * (self._max_x - self._min_x)

    def column_of(self, power: float) -> int:
        return round((power - self._min_x) / (self._max_x - self._min_x) * (self.cells - 1))

    def row_of(self, power: float) -> int:
        return round((self._max_y - power) / (self._max_y - self._min_y) * (self._rows - 1))

    def draw_drop_line(self, column: int, power: float) -> None:
        """A line from below a height down to the axis."""
        for row in range(max(self.row_of(power) + 1, 0), self._rows):
            self._canvas.text(_AXIS_CELLS + column, row, "│", "dim")

    def draw_sign(self, column: int, power: float, sign: str, role: str) -> None:
        row = self.row_of(power)
        if 0 <= row < self._rows:
            self._canvas.text(_AXIS_CELLS + column, row, sign, role)

    def draw_axes(self) -> None:
        for power in _tick_powers(self._min_y, self._max_y):
            row = self.row_of(power)
            self._canvas.text(0, row, scaled_text(10.0**power).rjust(_AXIS_CELLS - 2), "dim")
            self._canvas.text(_AXIS_CELLS - 1, row, "┤", "rule")
        self._canvas.text(_AXIS_CELLS, self._rows, "─" * self.cells, "rule")
        free_column = 0
        for power in _tick_powers(self._min_x, self._max_x):
            column, label = self.column_of(power), f"{10.0**power:g}"
            if free_column <= column <= self.cells - len(label):
                self._canvas.text(_AXIS_CELLS + column, self._rows, "┬", "rule")
                self._canvas.text(_AXIS_CELLS + column, self._rows + 1, label, "dim")
                free_column = column + len(label) + 1
        self._canvas.text(
            _AXIS_CELLS, self._rows + 2, "x axis: operations per requested byte, y axis: operations per second", "dim"
        )


def _tick_powers(minimum: float, maximum: float) -> list[float]:
    """Powers of ten to mark between two: whole ones, and where these are few, 2 and 5 times them."""
    steps = (1, 2, 5) if maximum - minimum < _FEW_DECADES else (1,)
    powers = (
        math.log10(step) + exponent for exponent in range(math.floor(minimum), math.ceil(maximum) + 1) for step in steps
    )
    return [power for power in powers if minimum <= power <= maximum]


def _axis_limits(
    intensities: Sequence[float], rates: Sequence[float], ridge: float, peak: float
) -> tuple[float, float, float, float]:
    """Powers of ten that hold all points, the ridge and the peak, with some room around: left, right, low, high."""
    min_x, max_x = (math.log10(edge) for edge in (min(*intensities, ridge), max(*intensities, ridge)))
    min_y, max_y = (math.log10(edge) for edge in (min(*rates, peak), max(*rates, peak)))
    return min_x - _MARGIN_DECADES, max_x + _MARGIN_DECADES, min_y - _MARGIN_DECADES, max_y + _MARGIN_DECADES / 2


def scaled_text(value: float | None) -> str:
    """Return ``989T``; three digits and a prefix."""
    if value is None:
        return NOT_MEASURED
    for suffix in ("", "k", "M", "G", "T", "P"):
        if value < 999.5:
            return f"{value:.3g}{suffix}"
        value /= 1000
    return f"{value:.3g}E"


def _number(value: float | None) -> str:
    return NOT_MEASURED if value is None else f"{value:.3g}"


def _percent(value: float | None) -> str:
    return NOT_MEASURED if value is None else f"{value:.0%}"


def roofline_text(points: Sequence[RooflinePoint], roof: Roof, cells: int, rows: int) -> Iterator[str]:
    """Yield the chart and what must be known to read it."""
    chart_lines = roofline_chart(points, roof, cells, rows)
    yield from (plain(line) for line in chart_lines)
    if not chart_lines:
        yield NO_CHART_NOTE
    yield from hang_line(ROOFLINE_NOTE, cells)


def verdict_lines(points: Sequence[RooflinePoint], cells: int) -> Iterator[str]:
    """Measures that led to the verdict of each kernel, and the run that adds missing ones."""
    for sign, point in zip(_SIGNS, points[:_MAX_EXPLAINED], strict=False):
        for number, text in enumerate(point.words):
            head = f"{sign} {shorten(printable(point.demangled), _VERDICT_NAME_WIDTH)}: " if not number else "    "
            yield from hang_line(head + text, cells)


def no_points_text() -> str:
    """Return what the user can do if no kernel has a point."""
    probe = probe_measuring_all(LIMITER_QUANTITIES)
    probes = (
        f"{probe_option_for('bytes read')}, and with {probe_option_for('tensor operations')}"
        if not probe
        else f"-p {probe}"
    )
    return f"No kernel has bytes or operations: run with {probes}."


def roofline_page(points: Sequence[RooflinePoint], roof: Roof) -> TablePage[RooflinePoint]:
    """Return the page with a row per kernel."""
    notes = [ROOFLINE_NOTE] if points else [no_points_text()]
    notes = [*verdict_lines(points, 1000), *notes]
    texts = PageTexts(findings=list(roof_lines(roof, 1000)), notes=notes, about=ROOFLINE_EXPLANATION)
    columns = roofline_columns(points, roof)
    return TablePage("roofline", "Roofline", columns, points, texts, roof_record(roof), kernel_of_row=_kernel_target)


def open_roofline(points: Sequence[RooflinePoint], roof: Roof, title: str) -> PageSet:
    """Return the chart and the table, for the screen; the table first where nothing has a place in the chart."""

    def table() -> TablePage[RooflinePoint]:
        page = roofline_page(points, roof)
        page.shows_explanation = True
        return page.prepare()

    pages = [
        LazyPage("chart", "Roofline", lambda: RooflineChart(points, roof), ROOFLINE_EXPLANATION),
        LazyPage("roofline", "Kernels", table, ROOFLINE_EXPLANATION),
    ]
    return PageSet(title, pages if placed_points(points, roof) or not points else pages[::-1])


def _kernel_target(point: RooflinePoint) -> tuple[Path, int] | None:
    return point.place


class RooflineChart(Drawing):
    """Kernels below the roof. The cursor is one of them: left and right by operations per byte, up and down by rate."""

    title = "Roofline"

    def __init__(self, points: Sequence[RooflinePoint], roof: Roof) -> None:
        self.points, self.roof = points, roof
        self.placed = placed_points(points, roof)
        self.selected: RooflinePoint | None = self.placed[0].point if self.placed else None

    def draw(self, width: int, height: int, *, ascii_only: bool = False) -> list[Line]:
        head = [((clip(part, width), "title"),) for part in roof_lines(self.roof, width)]
        if not self.placed:
            note = NO_CHART_NOTE if self.points else no_points_text()
            body: list[Line] = [((part, "dim"),) for part in hang_line(note, width)]
        else:
            body = roofline_chart(
                self.points, self.roof, width, max(height - len(head), 6), self.selected, ascii_only=ascii_only
            )
        lines = [*head, *body][:height]
        return [*lines, *([()] * (height - len(lines)))]

    def commands(self) -> Mapping[str, str]:
        return {name: text for name, (text, _) in _MOVES.items()} if self.placed else {}

    def press(self, command: str) -> str | None:
        move = _MOVES.get(command)
        return None if move is None or not self.placed else move[1](self)

    def select_neighbour(self, axis: Literal["intensity", "rate"], step: int) -> str | None:
        """Select the next kernel along an axis. Return the reason if there is none."""
        order = sorted(self.placed, key=lambda placed: placed.intensity if axis == "intensity" else placed.rate)
        place = next((i for i, placed in enumerate(order) if placed.point is self.selected), 0)
        if not 0 <= place + step < len(order):
            return "no further kernel in this direction"
        self.selected = order[place + step].point
        return None

    def select_end(self, place: int) -> str | None:
        """Select the kernel with the fewest (0) or most (-1) operations per byte."""
        self.selected = sorted(self.placed, key=lambda placed: placed.intensity)[place].point
        return None

    def select_furthest(self) -> str | None:
        """Select the kernel furthest below its roof. Return the text for the user."""
        points = [placed.point for placed in self.placed]
        shares = [(share, point) for point in points if (share := point.share_of(self.roof)) is not None]
        if not shares:
            return "the share of the roof is unknown for all kernels"
        share, self.selected = min(shares, key=lambda share_and_point: share_and_point[0])
        return f"furthest below its roof: at {share:.0%} of the roof"

    def target_view(self) -> str:
        return "kernel" if self.placed else ""

    def kernel_target(self) -> tuple[Path, int] | None:
        """Return the trace and index of the kernel under the cursor."""
        return None if self.selected is None else self.selected.place

    def status(self) -> list[str]:
        """Return the kernel under the cursor."""
        point = self.selected
        sign = next((placed.sign for placed in self.placed if placed.point is point), "")
        if point is None:
            return []
        parts = [
            f"{sign} {shorten(printable(point.demangled), _NAME_WIDTH)}",
            f"{point.intensity:.3g} op/B",
            f"{scaled_text(point.operations_per_second)} op/s",
        ]
        if point.seconds is not None:
            parts.append(units.duration(point.seconds))
        share = point.share_of(self.roof)
        return [*parts, *([] if share is None else [f"{share:.0%} of its roof"]), *point.words[:1]]

    def record(self) -> Mapping[str, Any]:
        page = roofline_page(self.points, self.roof)
        return {**page.fields(), "roofline": [*page.records()]}

    def cells(self) -> Iterator[Sequence[object]]:
        return roofline_page(self.points, self.roof).cells()

    def plot(self, axes: Any) -> None:
        """Logarithmic axes, the roof, and the kernels by their letters."""
        axes.set_xscale("log")
        axes.set_yscale("log")
        axes.set_xlabel("operations per requested byte")
        axes.set_ylabel("operations per second")
        if not self.placed or self.roof.ridge is None:
            return
        min_intensity = min(self.roof.ridge, *(placed.intensity for placed in self.placed)) / 4
        max_intensity = max(self.roof.ridge, *(placed.intensity for placed in self.placed)) * 4
        intensities = [min_intensity, self.roof.ridge, max_intensity]
        axes.plot(intensities, [self.roof.rate_at(x) for x in intensities])
        for sign, _, x, y in self.placed:
            axes.plot([x], [y], "o")
            axes.annotate(sign, (x, y))
