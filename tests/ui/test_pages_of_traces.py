"""Screens of a saved bandwidth result, of the roofline, and of a profile next to traces; rows lead to kernels."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.bandwidth.made_up import write_result
from tests.importers.export import call, kernel, tables, write_export
from tests.pages.test_roofline import write_trace
from tests.trace.make import TraceWriter
from tests.ui.pages_stage import SIZE, check_pages, showing
from tui_probe.draw.spans import plain
from tui_probe.nsight.pages.opening import open_imported
from tui_probe.pages.roofline_page import open_roofline
from tui_probe.trace.follow import open_trace
from tui_probe.ui.screens.help import HelpScreen
from tui_probe.ui.screens.kernel import KernelScreen
from tui_probe.ui.screens.ready_pages import ImportedScreen
from tui_probe.verdicts.roofline import Roof, RooflinePoint, roofline_points

ROOF = Roof(peak=989e12, bandwidth=4.6e12)
POINTS = [
    RooflinePoint("attn", "flash_attention", 142.6e6, 17.2e9, 49.5e-6, None),
    RooflinePoint("gemm", "void gemm<128, 64>(float*, int)", 403e6, 137e9, 213e-6, None),
    RooflinePoint("small", "void small_gemm<16, 16>(float*, int)", 8e6, 0.4e9, 22e-6, None),
    RooflinePoint("copy", "copy_kernel(float*, int)", 1.07e9, 0, 252e-6, None),
    RooflinePoint(
        "norm", "layer_norm", 67e6, None, None, "not measured: operations (-p tensorop_count), time (--benchmark)"
    ),
]
both = pytest.mark.parametrize("ascii_only", [False, True], ids=["unicode", "ascii"])


@both
async def test_a_saved_bandwidth_result(tmp_path: Path, ascii_only: bool) -> None:
    imported = open_imported([write_result(tmp_path / "bw.json")])
    async with showing(imported, SIZE, ascii_only=ascii_only) as stage:
        pages = {"figures": "1", "bars": "b", "blocks": "l"}
        await check_pages(stage, "bandwidth", pages)


async def test_keys_of_a_bandwidth_result(tmp_path: Path) -> None:
    async with showing(open_imported([write_result(tmp_path / "bw.json")]), (100, 30)) as stage:
        await stage.press("greater_than_sign", "greater_than_sign", "G")
        assert "needs few bytes in flight per block" in " ".join(stage.inside.split())
        await stage.press("g", "slash", *"1 056", "enter")
        assert "1 056" in stage.text
        await stage.press("1", "ampersand", *"host", "enter")
        assert "host to device" in stage.text
        assert "L2, read" not in stage.text
        await stage.press("0", "l", "e", "c")
        (written,) = list((tmp_path / "cwd").iterdir())
        assert written.read_text().startswith("blocks,bytes_in_flight_a_block,bytes_in_flight,bytes_per_second")
        await stage.press("question_mark")
        assert isinstance(stage.app.screen, HelpScreen)
        assert "Bandwidth grows with blocks" in " ".join(map(plain, stage.app.screen.view.lines))
        await stage.press("question_mark", "enter")
        assert "no line of this page opens a kernel" in stage.text
        await stage.press("q", "q")
        assert "Ctrl-Q quits" in stage.text
        await stage.press("ctrl+q")
        assert not stage.app.is_running


@both
async def test_a_roofline(ascii_only: bool) -> None:
    async with showing(open_roofline(POINTS, ROOF, "roofline of a, b"), SIZE, ascii_only=ascii_only) as stage:
        await check_pages(stage, "roofline", {"chart": "1", "kernels": "k"})


async def test_the_cursor_of_a_roofline_goes_from_kernel_to_kernel() -> None:
    async with showing(open_roofline(POINTS, ROOF, "roofline of a, b"), (100, 30)) as stage:
        assert "a flash_attention · 121 op/B · 347T op/s" in stage.text
        assert "63% of its roof" in stage.text
        await stage.press("right")
        assert "b void gemm<128, 64>(float*, int) · 340 op/B" in stage.text
        assert "65% of its roof" in stage.text
        await stage.press("right")
        assert "no further kernel in this direction" in stage.text
        await stage.press("comma", "left")
        assert "c void small_gemm" in stage.text
        await stage.press("k")
        assert "a flash_attention" in stage.text
        await stage.press("G")
        assert "b void gemm" in stage.text
        await stage.press("g")
        assert "c void small_gemm" in stage.text
        await stage.press("question_mark")
        assert isinstance(stage.app.screen, HelpScreen)
        assert "The roof is the limit of the GPU" in " ".join(map(plain, stage.app.screen.view.lines))


async def test_the_worst_kernel_of_a_roofline_is_furthest_below_it() -> None:
    async with showing(open_roofline(POINTS, ROOF, "roofline of a, b"), (100, 30)) as stage:
        assert "! finding" in stage.text.split("\n")[-1]
        await stage.press("exclamation_mark")
        assert "furthest below its roof: at 8% of the roof" in stage.text
        assert "c void small_gemm" in stage.text
        await stage.press("0", "k", "exclamation_mark")
        assert "this page has no hotspot" in stage.text


async def test_without_operations_there_is_no_chart() -> None:
    async with showing(open_roofline(POINTS[3:], ROOF, "roofline of a"), (80, 24)) as stage:
        assert "copy_kernel" in stage.text, "the table comes first"
        await stage.press("0", "r", "right")
        assert "No chart: a chart needs bytes, operations and time of a kernel" in stage.text
    async with showing(open_roofline([], ROOF, "roofline of a"), (80, 24)) as stage:
        assert "No kernel has bytes or operations" in stage.text


async def test_a_kernel_of_the_roofline_opens_in_its_trace(tmp_path: Path) -> None:
    traces = [write_trace(tmp_path / "bytes", "gmem_bytes", time_ms=0.006)]
    traces.append(write_trace(tmp_path / "operations", "tensorop_count"))
    opened = [open_trace(path) for path in traces]
    imported = open_roofline(roofline_points(opened), ROOF, "roofline")
    async with showing(imported, (100, 30), traces=traces) as stage:
        await stage.press("enter")
        assert isinstance(stage.app.screen, KernelScreen)
        assert "#0 matmul" in stage.text
        await stage.press("q")
        assert isinstance(stage.app.screen, ImportedScreen)
        await stage.press("0", "k", "g", "enter")
        assert "this line does not open a kernel" in stage.text
        await stage.press("slash", *"matmul", "enter", "enter")
        assert isinstance(stage.app.screen, KernelScreen)


@pytest.fixture
def adjacent(tmp_path: Path) -> tuple[Path, Path, Path]:
    """A profile with the kernels f and g, and two traces, in the second of which f was probed."""
    profile = write_export(
        tmp_path / "x.sqlite",
        tables([kernel(100, 1100, 1), kernel(2000, 3000, 2, name=4)], [call(10, 12, 1), call(20, 22, 2)], []),
    )
    directories = []
    for number, status in enumerate(("skipped", "probed")):
        writer = TraceWriter(tmp_path / f"Nov21_10101{number}_42")
        writer.start()
        writer.kernel(0, "_Z5otheri")
        writer.kernel(1, "_Z1fi", status)  # type: ignore[arg-type]
        writer.exit()
        directories.append(writer.directory)
    return profile, directories[0], directories[1]


@both
async def test_profile_opened_with_traces(adjacent: tuple[Path, Path, Path], ascii_only: bool) -> None:
    profile, *directories = adjacent
    imported = open_imported([profile], traces=[open_trace(path) for path in directories])
    async with showing(imported, SIZE, ascii_only=ascii_only, traces=directories) as stage:
        await check_pages(stage, "imported-nsys-traced", {"kernels": "1"})


async def test_a_kernel_of_a_profile_opens_in_the_trace_that_probed_it(adjacent: tuple[Path, Path, Path]) -> None:
    profile, *directories = adjacent
    imported = open_imported([profile], traces=[open_trace(path) for path in directories])
    async with showing(imported, (120, 30), traces=directories) as stage:
        await stage.press("0", "k")
        assert "1 of 2 kernels found in the traces" in stage.text
        assert "Nov21_101011_42 #1 probed" in stage.text
        await stage.press("slash", *"f(int)", "enter", "enter")
        screen = stage.app.screen
        assert isinstance(screen, KernelScreen)
        assert stage.live.process is not None
        assert stage.live.process.directory.name == "Nov21_101011_42"
        assert "#1 f(int)" in stage.text
        await stage.press("q", "j", "enter")
        assert "this line does not open a kernel" in stage.text


async def test_a_trace_that_is_still_being_read(adjacent: tuple[Path, Path, Path]) -> None:
    profile, *directories = adjacent
    imported = open_imported([profile], traces=[open_trace(path) for path in directories])
    async with showing(imported, (120, 30), traces=directories[:1]) as stage:
        await stage.press("0", "k")
        await stage.press("slash", *"f(int)", "enter", "enter")
        assert "Nov21_101011_42 is still being read" in stage.text
        assert isinstance(stage.app.screen, ImportedScreen)
