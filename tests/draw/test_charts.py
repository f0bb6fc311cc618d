"""Bars and curves, in a terminal and as data."""

from __future__ import annotations

import numpy as np
import pytest

from tui_probe.draw.charts import Bar, BarChart
from tui_probe.draw.curve_chart import Curve, CurveChart
from tui_probe.draw.spans import plain, width

BARS = [Bar("one", (30.0, 10.0)), Bar("another", (10.0, None), spread=(8.0, 12.0)), Bar("none", (None, None))]


def drawn(chart: BarChart | CurveChart, cells: int, rows: int, *, ascii_only: bool = False) -> list[str]:
    return [plain(line) for line in chart.draw(cells, rows, ascii_only=ascii_only)]


def test_bars_are_as_long_as_their_sums() -> None:
    chart = BarChart("t", BARS, ("first", "second"), "cycles", lambda value: f"{value:.0f}")
    title, one, another, none, _, legend = drawn(chart, 54, 6)
    assert title == "t"
    assert (one.count("█"), one.count("▒"), one.split()[-1]) == (32, 10, "40")
    assert another.startswith("another ██████████──┤ ")
    assert none.split() == ["none", "–"]
    assert legend == "cycles: █ first   ▒ second"
    assert list(chart.cells())[2] == ("another", 10.0, None, 8.0, 12.0)


@pytest.mark.parametrize(("cells", "rows"), [(20, 3), (40, 5), (120, 40)])
@pytest.mark.parametrize("ascii_only", [False, True])
def test_a_chart_keeps_to_its_window(cells: int, rows: int, ascii_only: bool) -> None:
    many = [Curve(str(i), np.arange(9.0), np.arange(9.0) * i) for i in range(30)]
    bars = BarChart("t", BARS * 20, ("first", "second"), "cycles", str)
    for chart in (bars, CurveChart("t", many, "x", "y"), CurveChart("t", [], "x", "y")):
        lines = drawn(chart, cells, rows, ascii_only=ascii_only)
        assert len(lines) == rows
        assert max(map(width, lines)) <= cells
        assert not ascii_only or all(line.isascii() for line in lines)


def test_bars_scroll_to_the_last() -> None:
    chart = BarChart("t", [Bar(f"bar {i}", (1.0,)) for i in range(10)], ("p",), "u", str)
    for _ in range(20):
        chart.press("down")
        lines = drawn(chart, 60, 7)
    assert [line.split()[1] for line in lines[1:5]] == ["6", "7", "8", "9"]
    assert "from bar 7" in lines[-1]


def test_a_curve_rises_where_it_rises() -> None:
    chart = CurveChart("t", [Curve("c", np.array([0.0, 10.0]), np.array([0.0, 10.0]))], "x", "y")
    lines = drawn(chart, 49, 15, ascii_only=True)[2:12]
    columns = [line.rindex("a") for line in lines]
    assert columns == sorted(columns, reverse=True)
    assert columns[0] == 48


def test_a_window_zooms_and_stays_inside() -> None:
    chart = CurveChart("t", [Curve("c", np.arange(101.0), np.arange(101.0))], "x", "y")
    chart.press("zoom_in")
    assert chart.window == (25, 75)
    for _ in range(9):
        chart.press("right")
    assert chart.window == (50, 100)
    chart.press("fit")
    assert chart.window == (0, 100)


def test_both_as_pictures() -> None:
    matplotlib_figure = pytest.importorskip("matplotlib.figure")
    for chart in (
        BarChart("t", BARS, ("first", "second"), "cycles", str),
        CurveChart("t", [Curve("c", np.arange(3.0), np.arange(3.0))], "x", "y"),
    ):
        axes = matplotlib_figure.Figure().add_subplot()
        chart.plot(axes)
        assert axes.get_title() == "t"
