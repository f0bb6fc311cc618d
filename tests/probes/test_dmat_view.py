"""Memory accesses over time, drawn: against pictures that were looked at, and against what is known of the accesses."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.cells import cell_len

from tests.golden import golden
from tests.pages.timelines.drawing import golden_view
from tests.probes import dmat_example
from tests.probes.dmat_example import BLOCKS, LOAD_A, STEPS, STORE_C, A, B, C, stream, write_dmat
from tests.probes.dmat_files import START
from tests.probes.dmat_view import drawn, opened, prepared
from tui_probe.draw.spans import to_ascii
from tui_probe.draw.view import Cancelled
from tui_probe.pages.view_output import run_commands
from tui_probe.probekit.page_kinds import ViewSource
from tui_probe.probes.dmat import DMAT, access_map
from tui_probe.probes.dmat.axes import Window
from tui_probe.probes.dmat.view import Dmat
from tui_probe.trace.follow import open_trace

ACCESSES = len(stream().points())


@pytest.fixture
def view(tmp_path: Path) -> Dmat:
    write_dmat(tmp_path / "trace")
    return opened(tmp_path / "trace")


def test_the_picture(view: Dmat) -> None:
    golden_view("dmat/sizes", view)


CASES: dict[str, tuple[dict[str, Any], list[str]]] = {
    "density": ({}, ["colour"]),
    "sectors": ({}, ["colour"] * 2),
    "kinds": ({}, ["colour"] * 3),
    "zoomed": ({}, ["zoom_in", "zoom_in", "zoom_in_rows", "left", "up"]),
    "block": ({}, ["level"]),
    "warp": ({}, ["level", "level"]),
    "overflow": ({"capacity": 20}, []),
    "compact": ({"compact": True}, ["colour", "colour"]),
    "no_log": ({"memory": False}, []),
    "time": ({"simulated": False}, ["unit"]),
}


@pytest.mark.parametrize("ascii_only", [False, True], ids=["unicode", "ascii"])
@pytest.mark.parametrize("name", list(CASES))
def test_other_pictures(name: str, ascii_only: bool, tmp_path: Path) -> None:
    options, commands = CASES[name]
    write_dmat(tmp_path / "trace", **options)
    view = opened(tmp_path / "trace")
    message = run_commands(view, commands, (80, 24))
    lines = drawn(view, 80, 24, ascii_only=ascii_only)
    below = [to_ascii(line) if ascii_only else line for line in (*message, *view.status())]  # as the screen does
    text = "".join(f"{line}\n" for line in [*lines, *below])
    golden("dmat/choices.txt", text, name, ascii_only=ascii_only)


def test_data(view: Dmat) -> None:
    prepared(view, 60, 20)
    record = json.loads(json.dumps(view.record(), allow_nan=False))
    assert record["kept"] == record["accesses"] == ACCESSES == sum(sum(row["accesses"]) for row in record["rows"])
    assert [band["name"] for band in record["bands"]] == ["param 0", "param 1", "param 2"]
    rows = list(view.cells())
    assert sum(row[5] for row in rows[1:]) == ACCESSES  # type: ignore[misc]
    golden("dmat/cells.csv", "".join(",".join("" if x is None else str(x) for x in row) + "\n" for row in rows))


def test_data_before_anything_was_drawn(view: Dmat) -> None:
    assert sum(sum(row["accesses"]) for row in view.record()["rows"]) == ACCESSES


# -- what is seen


def rows_of(view: Dmat, band: int) -> slice:
    """The rows of a band in the frame."""
    assert view.frame is not None
    at = 0
    for strip in view.frame.strips:
        if strip.band == band:
            return slice(at, at + strip.rows)
        at += strip.rows
    raise AssertionError(f"band {band} is out of sight")


def test_the_strided_access_stands_out(view: Dmat) -> None:
    run_commands(view, ["colour", "colour"], (120, 40))
    prepared(view)
    assert view.frame is not None
    assert view.frame.sectors is not None
    coalesced, strided = (view.frame.sectors[rows_of(view, band)] for band in (0, 2))
    assert set(coalesced[~np.isnan(coalesced)].tolist()) == {4.0}
    assert set(strided[~np.isnan(strided)].tolist()) == {32.0}
    lines = drawn(view)
    assert any("9" in line[12:] for line in lines[1:33]), "28 of 32 sectors are wasted"
    view.address, view.time = C + 1, float(view.map.end - 1)
    view.press("previous")
    assert "st.global.f32 PTX:16 stream.cu:11 · 32.0 sectors per request, 12% used" in drawn(view)[-1]


def test_the_worst_place_is_the_strided_access(view: Dmat) -> None:
    drawn(view)
    run_commands(view, ["worst"], (120, 40))
    lines = drawn(view)
    assert view.colouring == "sectors"
    assert not view.goes_to_worst
    assert "st.global.f32 PTX:16 stream.cu:11 · 32.0 sectors per request, 12% used" in lines[-1]


def test_without_instructions_the_worst_place_has_most_sectors_per_request(tmp_path: Path) -> None:
    write_dmat(tmp_path / "trace", compact=True)
    view = opened(tmp_path / "trace")
    run_commands(view, ["worst"], (120, 40))
    assert "32.0 sectors per request" in drawn(view)[-1]


def test_absence_of_waste_is_reported(view: Dmat) -> None:
    run_commands(view, ["zoom_in_rows"] * 2, (120, 40))  # the first band only
    view.address = A
    run_commands(view, ["fit"], (120, 40))
    view.window = Window(0, view.end, 0.0, 0.2)
    before = view.time, view.address
    run_commands(view, ["worst"], (120, 40))
    drawn(view)
    assert "no visible access has excessive sectors" in view.status()
    assert (view.time, view.address) == before


@pytest.mark.parametrize("width", [80, 100, 120, 200])
def test_nothing_essential_under_the_cursor_is_cut(view: Dmat, width: int) -> None:
    run_commands(view, ["worst"], (width, 24))
    text = "\n".join(drawn(view, width, 24)[-3:])
    instruction, sectors = "st.global.f32 PTX:16 stream.cu:11", "32.0 sectors per request, 12% used"
    assert all(words in text for words in ("param 2 +0x", instruction, sectors, "stores", "block "))
    assert "…" not in text


def test_loads_are_distinguished_from_stores(view: Dmat) -> None:
    run_commands(view, ["colour"] * 3, (120, 40))
    prepared(view)
    assert view.frame is not None
    assert view.frame.loads is not None
    assert view.frame.stores is not None
    threads = stream().blocks * stream().threads
    assert (view.frame.loads.sum(), view.frame.stores.sum()) == (2 * STEPS * threads, threads)
    assert view.frame.stores[rows_of(view, 2)].sum() == threads
    assert view.frame.loads[rows_of(view, 2)].sum() == 0
    assert re.search(r"[sS]{2}", "".join(drawn(view)[23:33]))


def test_overflow_is_reported(tmp_path: Path) -> None:
    write_dmat(tmp_path / "trace", capacity=20)
    assert f"kept {40_960:,} of {ACCESSES:,} accesses".replace(",", " ") in drawn(opened(tmp_path / "trace"))[0]


def test_access_under_the_cursor(view: Dmat) -> None:
    drawn(view)
    view.time, view.address = 40.0, A
    where, who = drawn(view)[-2:]
    assert where.startswith(f"param 0 +0x0 · {A:#x} · cycle 40 · ")
    assert who.startswith("ld.global.f32 PTX:12 stream.cu:7 · 4.0 sectors per request, 100% used · ")
    assert "loads · block 0 warp" in who


def test_a_tensor_gives_indices(tmp_path: Path) -> None:
    write_dmat(tmp_path / "trace")
    (tmp_path / "trace" / "tensor.trace").write_text(
        f"[call]  torch.float32  torch.Size([32, 512])  65536  {A}  query\n"
        f"[ret]  torch.float32  torch.Size([32, 16, 128])  262144  {C}  out\n"
    )
    view = opened(tmp_path / "trace")
    assert [band.name for band in view.map.bands] == ["query", "param 1", "out"]
    assert view.press("unit") == "cycles and indices"
    drawn(view)
    view.time, view.address = float(view.map.end - 1), view.map.bands[2].end - 1
    view.press("previous")
    lines = drawn(view)
    assert any("[16,0,0]" in line for line in lines)
    assert re.match(r"out \+0x[0-9a-f]+ \[\d+, \d+, \d+\] of \(32, 16, 128\) · ", lines[-2])


def test_the_index_under_the_cursor(tmp_path: Path) -> None:
    """Variables of a transposed tensor, of another launch's, and of a part that the kernel has a pointer to."""
    write_dmat(tmp_path / "trace")
    time_ns = open_trace(tmp_path / "trace").launches[0].time_ns
    assert time_ns is not None
    before, after = time_ns - 5, time_ns + 5
    (tmp_path / "trace" / "tensor.trace").write_text(
        f"[call]  {before}  torch.Size([8])  16  {A}  stale  f  a.py:1\n"
        f"[call]  {before}  torch.Size([128, 128])  65536  {A}  turned  f  a.py:2  torch.float32  4  (1, 128)  {A}\n"
        f"[call]  {after}  torch.Size([16384])  65536  {A}  later  f  a.py:3  torch.float32  4  (1,)  {A}\n"
        f"[call]  {before}  torch.Size([1, 98304])  393216  {B - 4096}  whole  f  a.py:4\n"
    )
    view = opened(tmp_path / "trace")
    assert [band.name for band in view.map.bands] == ["turned", "whole", "param 2"]
    drawn(view)
    view.time, view.address = 40.0, A + 4 * (3 * 128 + 5)
    assert "turned +" in (where := drawn(view)[-2])
    assert "of (128, 128) float32 · " in where
    record = view.record()
    address, index = record["cursor"]["address"], record["cursor"]["index"]
    assert (address - A) // 4 == index[1] * 128 + index[0]
    assert record["bands"][0] | {"start": 0, "end": 0} == {
        "name": "turned", "start": 0, "end": 0, "origin": A, "shape": [128, 128], "dtype": "torch.float32",
        "strides": [1, 128], "function": "f", "place": "a.py:2", "total": 24_576,
    }  # fmt: skip
    assert any(line.startswith("(128, 128) float32 ") for line in drawn(view))


def test_gaps_of_the_address_space_take_a_row(view: Dmat) -> None:
    assert any("68.7 GB apart" in line for line in drawn(view))


def test_a_block_has_its_own_accesses(view: Dmat) -> None:
    prepared(view)
    view.press("level")
    prepared(view)
    assert view.frame is not None
    assert view.frame.counts.sum() == ACCESSES // BLOCKS
    block = view.selection.block
    assert block is not None
    view.press("select")
    assert view.selection_text() == f"block {block + 1}"
    view.press("level")
    prepared(view)
    assert view.frame.counts.sum() == ACCESSES // BLOCKS // 2
    assert view.press("level") == "the whole grid"


def test_marks_measure(view: Dmat) -> None:
    prepared(view)
    view.time, view.address = 100.0, B
    assert view.press("mark") == "first mark set; the second mark shows the distance"
    view.time, view.address = 1100.0, B + 2048
    assert view.press("mark") == "1 000 cycles, 2.05 kB between the marks"


def test_a_click_puts_the_cursor_where_it_was_clicked(view: Dmat) -> None:
    drawn(view, 100, 30)
    assert view.frame is not None
    line = 1 + view.frame.strips[1].top + 1
    view.click(view.gutter + 10, line)
    shown = drawn(view, 100, 30)
    assert (shown[line][view.gutter - 1], shown[24][view.gutter + 10]) == ("▌", "▲")
    view.click(0, line + 1)
    shown = drawn(view, 100, 30)
    assert (shown[line + 1][view.gutter - 1], shown[24][view.gutter + 10]) == ("▌", "▲")


def test_in_a_launch_of_fewer_cycles_than_dots_the_cursor_goes_a_column_a_key(view: Dmat) -> None:
    view.window = Window(0, 60)
    prepared(view)
    view.press("start")
    for column in range(1, 6):
        view.press("right")
        prepared(view)
        assert view.frame is not None
        assert view.frame.column_at(view.time) == column
    view.press("left")
    assert view.frame.column_at(view.time) == 4
    assert view.press("zoom_in") == "zoom limit reached", "a column of dots is a cycle already"


@pytest.mark.parametrize("commands", [["next"], ["previous"], ["end", "previous"], ["start", "next"]])
def test_steps_stop_at_accesses(view: Dmat, commands: list[str]) -> None:
    prepared(view)
    view.address = B + 64
    for command in commands:
        view.press(command)
    prepared(view)
    assert view.frame is not None
    assert view.read_out(view.frame).accesses > 0 or "nothing more" in (view.press(commands[-1]) or "")


def test_every_command_does_something_or_says_why_not(view: Dmat) -> None:
    for command in list(view.commands()):
        prepared(view)
        before = (view.window, view.time, view.address, view.selection, view.colouring, view.unit, len(view.marks))
        message = view.press(command)
        after = (view.window, view.time, view.address, view.selection, view.colouring, view.unit, len(view.marks))
        assert message or before != after or command in ("fit", "up", "down", "left", "right", "start", "end"), command


MOVES = st.sampled_from(["left", "right", "up", "down", "next", "mark", "zoom_in", "zoom_in_rows"])


@settings(max_examples=50)
@given(st.lists(MOVES, max_size=12))
def test_zooming_in_and_out_is_where_one_was(shared_view: Dmat, commands: list[str]) -> None:
    view = shared_view
    view.press("fit")
    for command in commands:
        view.press(command)
        prepared(view, 60, 20)
    for there, back in (("zoom_in", "zoom_out"), ("zoom_in_rows", "zoom_out_rows")):
        before = view.window
        if view.press(there) is None:
            view.press(back)
        assert (view.window.start, view.window.end) == pytest.approx((before.start, before.end), abs=1e-6)
        assert (view.window.top, view.window.bottom) == pytest.approx((before.top, before.bottom), abs=1e-9)


@cache
def _points() -> np.ndarray:
    """Cycle and address of all accesses of ``stream``."""
    return np.array([point[:2] for point in stream().points()])


@settings(max_examples=50)
@given(st.floats(0, 0.9), st.floats(0.01, 1), st.floats(0, 0.9), st.floats(0.01, 1))
def test_a_picture_counts_what_is_in_its_window(
    shared_view: Dmat, start: float, cycles: float, low: float, memory: float
) -> None:
    view, end = shared_view, shared_view.map.end
    view.window = Window(start * end, start * end + cycles * end, low, low + memory).clamped(end)
    prepared(view, 70, 20)
    frame = view.frame
    assert frame is not None
    grid = frame.grid
    points = _points()
    inside = (points[:, 0] >= grid.start) & (points[:, 0] < grid.end)
    row = np.searchsorted(grid.row_starts, points[:, 1].astype(np.uint64), side="right") - 1
    inside &= (row >= 0) & (points[:, 1].astype(np.uint64) < grid.row_ends[np.maximum(row, 0)])
    assert frame.counts.sum() == inside.sum()


@pytest.fixture(scope="module")
def shared_view(tmp_path_factory: pytest.TempPathFactory) -> Dmat:
    directory = tmp_path_factory.mktemp("dmat") / "trace"
    write_dmat(directory)
    return opened(directory)


# -- large results


@pytest.fixture
def large(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Dmat:
    """The same, treated as a result that is too large to be counted for each picture."""
    monkeypatch.setattr(access_map, "MAX_RECOUNTED_RECORDS", 0)
    write_dmat(tmp_path / "trace")
    return opened(tmp_path / "trace")


def test_a_large_result_is_shown_at_once_and_then_exactly(large: Dmat) -> None:
    work = large.prepare(200, 50)
    assert large.frame is not None
    assert not large.frame.is_exact
    assert "coarse" in large.status()
    assert large.frame.counts.any()
    assert work is not None
    work()
    assert large.frame.is_exact
    assert large.frame.counts.sum() == ACCESSES
    assert "coarse" not in large.status()


def test_work_that_is_no_longer_wanted_stops(large: Dmat) -> None:
    for _ in range(2):
        large.press("zoom_in")
    prepared(large)
    large.press("zoom_in")
    work = large.prepare(120, 40)
    large.press("zoom_out")
    large.prepare(120, 40)
    before = large.frame
    assert work is not None
    work()
    assert large.frame is before


def test_whoever_goes_elsewhere_stops_the_reading(tmp_path: Path) -> None:
    write_dmat(tmp_path / "trace")
    trace = open_trace(tmp_path / "trace")

    def gone(share: float) -> None:
        if share > 0:
            raise Cancelled

    with pytest.raises(Cancelled):
        DMAT.open(ViewSource(trace, trace.kernels[0]), gone)


class Axes:
    """Stand-in that records calls to matplotlib's axes."""

    def __init__(self) -> None:
        self.done: list[tuple[str, Any, Any]] = []

    def __getattr__(self, name: str) -> Any:
        return lambda *words, **options: self.done.append((name, words, options))


def test_a_plot_has_a_picture_for_each_band(view: Dmat) -> None:
    axes = Axes()
    view.plot(axes)
    pictures = [(words[0], options) for name, words, options in axes.done if name == "imshow"]
    assert sum(int(np.expm1(picture.filled(0)).round().sum()) for picture, _ in pictures) == ACCESSES
    assert [options["cmap"] for _, options in pictures] == ["Blues", "Oranges", "Greens"]
    done = {name: words for name, words, _ in axes.done}
    assert [label for label in done["set_yticks"][1] if not label.endswith("B")] == ["param 0", "param 1", "param 2"]
    assert done["set_xlabel"] == ("cycles, simulated",)


def test_another_launch_keeps_window_and_colouring(view: Dmat, tmp_path: Path) -> None:
    write_dmat(tmp_path / "other")
    other = opened(tmp_path / "other")
    run_commands(view, ["zoom_in", "colour"], (120, 40))
    other.take_over(view)
    assert (other.window, other.colouring) == (view.window, view.colouring)
    assert (other.time, other.address) == pytest.approx((view.time, view.address), abs=4)


def test_another_launch_keeps_the_cursor_and_the_unit(tmp_path: Path) -> None:
    for name in ("one", "other"):
        write_dmat(tmp_path / name, simulated=False)
    view, other = opened(tmp_path / "one"), opened(tmp_path / "other")
    run_commands(view, ["worst", "unit"], (120, 40))
    prepared(view)
    other.take_over(view)
    assert drawn(other)[-2:] == drawn(view)[-2:]
    assert other.unit == view.unit == "time and bytes"


@pytest.mark.parametrize("size", [(39, 24), (80, 9), (5, 2), (40, 10), (300, 100)])
def test_any_size_is_filled_and_not_overrun(view: Dmat, size: tuple[int, int]) -> None:
    lines = drawn(view, *size)
    assert len(lines) == size[1]
    assert all(cell_len(line) <= size[0] for line in lines)


def test_nothing_recorded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    empty = replace(stream(), accesses={}).content(32)
    monkeypatch.setattr(dmat_example, "_content", lambda *_, **__: empty)
    write_dmat(tmp_path / "trace")
    view = opened(tmp_path / "trace")
    assert drawn(view)[0] == "no access to global memory was recorded"
    assert view.record()["rows"] == []
    assert view.press("zoom_in") is None


def test_without_a_result_it_says_what_to_do(tmp_path: Path) -> None:
    write_dmat(tmp_path / "trace")
    trace = open_trace(tmp_path / "trace")
    (info,) = (tmp_path / "trace" / "kernel").glob("*/kernel.info")
    info.write_text("stream\n4\n1\n1,16\ncallback block_sched\n")
    missing = DMAT.missing_reason(ViewSource(trace, trace.kernels[0]))
    assert missing == "the kernel was probed with block_sched: run with -p dmat or -p dmat_compact"


def test_lines_of_the_example_are_what_they_are_called() -> None:
    text = dmat_example.PTX.splitlines()
    assert (text[LOAD_A - 1].split()[0], text[STORE_C - 1].split()[0]) == ("ld.global.f32", "st.global.f32")
    assert START > 1 << 32
