"""The roofline on the screen: a chart with a cursor that goes from kernel to kernel, and the table."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from tui_probe.draw import units
from tui_probe.draw.formats import as_record
from tui_probe.draw.hanging import hanging
from tui_probe.draw.shorten import shorten
from tui_probe.draw.spans import clip
from tui_probe.draw.table import in_data, safe
from tui_probe.draw.view import Drawing
from tui_probe.pages.imported import Imported, ImportedPage
from tui_probe.pages.limits import WANTED
from tui_probe.pages.roofline import (
    NO_CHART,
    NOTE,
    chart,
    columns,
    placed,
    roof_lines,
    roof_record,
    scaled,
    verdict_lines,
)
from tui_probe.pages.table_page import TablePage, Words
from tui_probe.probekit.quantities import measured_with, measuring_all

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from pathlib import Path

    from tui_probe.analysis.roofline import Point, Roof
    from tui_probe.draw.spans import Line

ABOUT: Final = (
    "What limits a kernel is the unit that is busy for 60 % of its time or more: memory, tensor cores, the pipes of"
    " fp32, fp64 or fp16, or the issue of instructions. Where none is, it is latency: its warps wait for each other,"
    " for memory, for blocks; or the launch is too small for the GPU, or so short that launching it takes as long.",
    "Counts are those of instructions, before caches. Memory’s share is therefore “at most” (≤), and more than 100 %"
    " where caches serve part. It is told to be DRAM or L2 where the memory that the launch can touch tells, or ncu"
    " does (--ncu FILE.csv); otherwise it is memory without a level. Other shares are at the least.",
    "The roof is the machine's limit: left of the ridge memory bandwidth × operations per byte, right of it the tensor"
    " cores. A kernel on the slanted part gets faster only with fewer bytes per operation: larger tiles, fused kernels,"
    " smaller types. A kernel without operations has no place in the chart.",
)
_NAME: Final = 48


def nothing() -> str:
    """What to do where no kernel has a place."""
    probe = measuring_all(WANTED)
    probes = (
        f"{measured_with('bytes read')}, and with {measured_with('tensor operations')}" if not probe else f"-p {probe}"
    )
    return f"No kernel has bytes or operations: run with {probes}."


def roofline_page(points: Sequence[Point], roof: Roof) -> TablePage[Point]:
    """One row per kernel."""
    notes = [NOTE] if points else [nothing()]
    notes = [*verdict_lines(points, 1000), *notes]
    words = Words(found=list(roof_lines(roof, 1000)), notes=notes, about=ABOUT)
    shown = columns(points, roof)
    return TablePage("roofline", "Roofline", shown, points, words, roof_record(roof), opens=_place)


def open_roofline(points: Sequence[Point], roof: Roof, title: str) -> Imported:
    """The chart and the table, for the screen; the table first where nothing has a place in the chart."""

    def table() -> TablePage[Point]:
        page = roofline_page(points, roof)
        page.explained = True
        return page.prepare()

    pages = [
        ImportedPage("chart", "Roofline", lambda: RooflineChart(points, roof), ABOUT),
        ImportedPage("roofline", "Kernels", table, ABOUT),
    ]
    return Imported(title, pages if placed(points, roof) or not points else pages[::-1])


def _place(point: Point) -> tuple[Path, int] | None:
    return point.place


class RooflineChart(Drawing):
    """Kernels below the roof. The cursor is one of them: left and right by operations per byte, up and down by rate."""

    title = "Roofline"

    def __init__(self, points: Sequence[Point], roof: Roof) -> None:
        self.points, self.roof = points, roof
        self.shown = placed(points, roof)
        self.chosen: Point | None = self.shown[0][1] if self.shown else None

    def draw(self, width: int, height: int, *, ascii_only: bool = False) -> list[Line]:
        head = [((clip(part, width), "title"),) for part in roof_lines(self.roof, width)]
        if not self.shown:
            said = NO_CHART if self.points else nothing()
            body: list[Line] = [((part, "dim"),) for part in hanging(said, width)]
        else:
            body = chart(self.points, self.roof, width, max(height - len(head), 6), self.chosen, ascii_only=ascii_only)
        lines = [*head, *body][:height]
        return [*lines, *([()] * (height - len(lines)))]

    def commands(self) -> Mapping[str, str]:
        return {name: words for name, (words, _) in _MOVES.items()} if self.shown else {}

    def press(self, command: str) -> str | None:
        move = _MOVES.get(command)
        return None if move is None or not self.shown else move[1](self)

    def step(self, axis: int, step: int) -> str | None:
        """To the next kernel by operations per byte (2) or by operations per second (3)."""
        order = sorted(self.shown, key=lambda each: float(each[axis]))  # type: ignore[arg-type]
        place = next((i for i, each in enumerate(order) if each[1] is self.chosen), 0)
        if not 0 <= place + step < len(order):
            return "no further kernel that way"
        self.chosen = order[place + step][1]
        return None

    def end(self, place: int) -> str | None:
        """To the kernel with the fewest (0) or most (-1) operations per byte."""
        self.chosen = sorted(self.shown, key=lambda each: each[2])[place][1]
        return None

    def furthest(self) -> str | None:
        """To the kernel furthest below its roof."""
        shares = [(share, each[1]) for each in self.shown if (share := each[1].share_of(self.roof)) is not None]
        if not shares:
            return "no kernel has a share of its roof"
        share, self.chosen = min(shares, key=lambda each: each[0])
        return f"furthest below its roof: {share:.0%} of it"

    def leads_to(self) -> str:
        return "kernel" if self.shown else ""

    def opened(self) -> tuple[Path, int] | None:
        """The trace and index of the kernel under the cursor."""
        return None if self.chosen is None else self.chosen.place

    def status(self) -> list[str]:
        """The kernel under the cursor."""
        point = self.chosen
        sign = next((each[0] for each in self.shown if each[1] is point), "")
        if point is None:
            return []
        parts = [
            f"{sign} {shorten(safe(point.demangled), _NAME)}",
            f"{point.intensity:.3g} op/B",
            f"{scaled(point.operations_per_second)} op/s",
        ]
        if point.seconds is not None:
            parts.append(units.duration(point.seconds))
        share = point.share_of(self.roof)
        return [*parts, *([] if share is None else [f"{share:.0%} of its roof"]), *point.words[:1]]

    def record(self) -> Mapping[str, Any]:
        shown = columns(self.points, self.roof)
        return {**roof_record(self.roof), "roofline": [as_record(shown, point) for point in self.points]}

    def cells(self) -> Iterator[Sequence[object]]:
        shown = in_data(columns(self.points, self.roof))
        yield [column.key for column in shown]
        for point in self.points:
            yield [column.value(point) for column in shown if column.value is not None]

    def plot(self, axes: Any) -> None:
        """Logarithmic axes, the roof, and the kernels by their letters."""
        axes.set_xscale("log")
        axes.set_yscale("log")
        axes.set_xlabel("operations per byte asked for")
        axes.set_ylabel("operations per second")
        if not self.shown or self.roof.ridge is None:
            return
        left = min(self.roof.ridge, *(each[2] for each in self.shown)) / 4
        right = max(self.roof.ridge, *(each[2] for each in self.shown)) * 4
        across = [left, self.roof.ridge, right]
        axes.plot(across, [self.roof.at(x) for x in across])
        for sign, _, x, y in self.shown:
            axes.plot([x], [y], "o")
            axes.annotate(sign, (x, y))


_MOVES: Final[dict[str, tuple[str, Callable[[RooflineChart], str | None]]]] = {
    "left": ("to the kernel with fewer operations per byte", lambda view: view.step(2, -1)),
    "right": ("to the kernel with more operations per byte", lambda view: view.step(2, 1)),
    "up": ("to the next faster kernel", lambda view: view.step(3, 1)),
    "down": ("to the next slower kernel", lambda view: view.step(3, -1)),
    "next": ("to the kernel with more operations per byte", lambda view: view.step(2, 1)),
    "previous": ("to the kernel with fewer operations per byte", lambda view: view.step(2, -1)),
    "start": ("to the kernel with the fewest operations per byte", lambda view: view.end(0)),
    "end": ("to the kernel with the most operations per byte", lambda view: view.end(-1)),
    "worst": ("to the kernel furthest below its roof", lambda view: view.furthest()),
}
