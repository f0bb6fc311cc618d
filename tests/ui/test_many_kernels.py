"""A trace of many kernels: a table immediately, their folders afterwards, and no key lost meanwhile."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from tests.patience import HANG
from tests.trace.make import TraceWriter as TimedWriter
from tests.ui.conftest import no_gpu, on_stage
from tests.ui.synthetic import TraceWriter
from tui_probe.trace.follow import TraceFollower, open_trace
from tui_probe.ui.app import ProbeApp
from tui_probe.ui.live.feed import Feed
from tui_probe.ui.live.kernel_columns import COLUMNS
from tui_probe.ui.live.kernel_rows import RowOrder
from tui_probe.ui.live.snapshots import FOLDERS_PER_UPDATE, KernelSnapshots
from tui_probe.ui.session import Session

KERNELS = 3 * FOLDERS_PER_UPDATE
FAR = KERNELS - 1
ONE = lambda: True  # noqa: E731 - enough after one


@pytest.fixture(scope="module")
def many(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Probed kernels of different register counts; every tenth was skipped."""
    directory = tmp_path_factory.mktemp("many") / "Nov21_101010_4242"
    writer = TraceWriter(directory)
    for number in range(KERNELS):
        if number % 10 == 9:
            writer.kernel(f"skipped_{number}", "skipped", "no PTX in image")
        else:
            writer.kernel(f"kernel_{number}", registers=(10, 20 + number % 90))
    return directory


def test_rows_that_are_read_later_are_those_that_are_read_at_once(many: Path) -> None:
    trace = open_trace(many)
    rows = KernelSnapshots()
    rows.update(trace, range(KERNELS))
    first = rows.all_rows()
    assert [row.index for row in first] == list(range(KERNELS))
    assert all(row.read for row in first[:FOLDERS_PER_UPDATE])
    assert {row.status for row in first if row.read and row.index > 2 * FOLDERS_PER_UPDATE} == {"skipped"}
    unread = next(row for row in first if not row.read)
    assert (unread.name, unread.status, unread.registers_pruned) == (f"kernel_{unread.index}", "probed", None)
    while rows.read_folders(trace, (), ONE):
        pass
    assert rows.complete
    at_once = KernelSnapshots()
    for number in range(KERNELS):
        at_once.update(trace, [number])
    assert rows.all_rows() == at_once.all_rows()


def test_the_share_of_a_kernel_that_rests_falls_while_another_runs(tmp_path: Path) -> None:
    writer = TimedWriter(tmp_path / "timed")
    writer.start()
    for index in range(2):
        writer.kernel(index, f"kernel_{index}")
        writer.time(index, writer.launch(index), 10_000, probed=False)
    follower, rows = TraceFollower(writer.directory), KernelSnapshots()
    follower.poll()
    rows.update(follower.trace, follower.changed_kernels)
    assert [row.time_share for row in rows.all_rows()] == [0.5, 0.5]
    writer.time(1, writer.launch(1), 30_000, probed=False)
    follower.poll()
    assert set(follower.changed_kernels) == {1}
    rows.update(follower.trace, follower.changed_kernels)
    assert [row.time_share for row in rows.all_rows()] == pytest.approx([0.2, 0.8], abs=1e-3)


def test_wanted_folders_are_read_first(many: Path) -> None:
    trace = open_trace(many)
    rows = KernelSnapshots()
    rows.update(trace, range(KERNELS))
    wanted = (FAR - 1, FAR - 2)
    assert rows.read_folders(trace, wanted, ONE)
    assert rows.read_folders(trace, wanted, ONE)
    assert [row.index for row in rows.all_rows()[FOLDERS_PER_UPDATE + 20 :] if row.read and row.status == "probed"] == [
        *sorted(wanted)
    ]


def test_a_row_that_was_read_stays_so_when_its_kernel_is_launched_again(many: Path) -> None:
    trace = open_trace(many)
    rows = KernelSnapshots()
    rows.update(trace, range(KERNELS))
    assert rows.read_folders(trace, (FAR - 1,), ONE)
    rows.update(trace, range(KERNELS))
    assert rows.all_rows()[FAR - 1].read


def test_the_thread_reads_all_folders(many: Path) -> None:
    seen = []
    feed = Feed(Session(traces=(many,)))
    feed.on_loaded = lambda: seen.append(feed.latest)
    feed.start()
    end = time.monotonic() + HANG
    while not feed.latest.processes or not all(row.read for row in feed.latest.processes[0].kernels):
        assert time.monotonic() < end
        time.sleep(0.01)
    feed.stop()
    (first,) = seen
    assert len(first.processes[0].kernels) == KERNELS
    assert feed.failure is None


async def test_the_table_stands_before_folders_are_read_and_says_so(many: Path) -> None:
    async with on_stage(Session(traces=(many,)), (160, 40)) as stage:
        assert "kernel_3 " in stage.text
        assert "10→23" in stage.text
        table = stage.live.table
        known = sum(row.read for row in table.kernels.all_rows)
        assert f"{known} of {KERNELS} kernels read" in stage.text
        await stage.press("G", "k")
        assert f"kernel_{FAR - 1} " in stage.text
        assert "…" in next(line for line in stage.text.splitlines() if f" kernel_{FAR - 1} " in line)
        assert "reading the kernel's directory" in stage.text
        stage.live.refresh_frame()
        assert FAR - 1 in stage.app.feed.wanted
        while stage.app.feed.read_rows():
            pass
        stage.live.refresh_frame()
        await stage.settle()
        assert "…" not in next(line for line in stage.text.splitlines() if f" kernel_{FAR - 1} " in line)
        assert "kernels read" not in stage.text
        assert stage.app.feed.wanted == ()


async def test_sorting_by_registers_is_right_when_all_are_read(many: Path) -> None:
    async with on_stage(Session(traces=(many,)), (160, 40)) as stage:
        table = stage.live.table
        registers = [column.key for column in COLUMNS].index("registers")
        table.kernels.order = RowOrder(column=registers)
        await stage.press("r")
        assert "sorted by registers, reversed" in " ".join(table.status())
        while stage.app.feed.read_rows():
            pass
        stage.live.refresh_frame()
        await stage.settle()
        added = [
            (row.registers_probed or 0) - (row.registers_pruned or 0)
            for row in table.shown_rows
            if row.status == "probed"
        ]
        assert added == sorted(added, reverse=True)
        assert len(set(added)) > 1


async def test_keys_that_come_before_the_table_are_pressed_on_it(many: Path) -> None:
    app = ProbeApp(Session(traces=(many,)), gpu=no_gpu())
    app.feed.start = lambda: None  # type: ignore[method-assign]
    async with app.run_test(size=(120, 40)) as pilot:
        assert "reading the trace" in app.live.table._empty_text
        await pilot.press("j", "j", "j", "0", "v")
        assert (app.live.current, app.live.in_table, app.live.table.selected_index) == ("kernel", True, None)
        app.feed.poll()
        app.live.refresh_frame()
        while app.live.current != "events" or not app.live.in_table:
            await pilot.pause(0.001)
        assert app.live.table.selected_index == 3
        await pilot.press("k")
        assert app.live.table.selected_index == 2


async def test_a_filter_that_is_typed_before_there_is_a_table(many: Path) -> None:
    app = ProbeApp(Session(traces=(many,)), gpu=no_gpu())
    app.feed.start = lambda: None  # type: ignore[method-assign]
    async with app.run_test(size=(120, 40)) as pilot:
        await pilot.press("ampersand", *"kernel_12", "enter", "down", "enter")
        app.feed.poll()
        app.live.refresh_frame()
        while app.screen is app.live or len(app.live.table.shown_rows) != 10:
            await pilot.pause(0.001)
        assert app.live.table.filter_text == "kernel_12"


async def test_a_key_that_works_everywhere_does_not_wait(many: Path) -> None:
    app = ProbeApp(Session(traces=(many,)), gpu=no_gpu())
    app.feed.start = lambda: None  # type: ignore[method-assign]
    async with app.run_test(size=(120, 40)) as pilot:
        await pilot.press("j", "question_mark")
        assert app.screen is not app.live


async def test_keys_for_a_trace_without_kernels_do_not_wait_for_ever(tmp_path: Path) -> None:
    TraceWriter(tmp_path / "Nov21_101010_4242")
    app = ProbeApp(Session(traces=(tmp_path / "Nov21_101010_4242",)), gpu=no_gpu())
    app.feed.start = lambda: None  # type: ignore[method-assign]
    async with app.run_test(size=(120, 40)) as pilot:
        await pilot.press("j", "0", "v")
        app.feed.poll()
        app.live.refresh_frame()
        while app.live.current != "events":
            await pilot.pause(0.001)


async def test_after_a_key_folders_rest(many: Path) -> None:
    async with on_stage(Session(traces=(many,)), (120, 40)) as stage:
        feed = stage.app.feed
        before = sum(row.read for row in feed.latest.processes[0].kernels)
        feed._rest_until = float("inf")
        assert feed.read_rows()
        assert sum(row.read for row in feed.latest.processes[0].kernels) == before + 1
