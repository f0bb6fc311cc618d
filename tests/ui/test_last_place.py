"""A trace is opened where it was left."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.recorded import H200
from tests.trace.make import TraceWriter as TimedWriter
from tests.ui.conftest import on_stage
from tests.ui.synthetic import FakeTarget, TraceWriter, example
from tui_probe.trace import user_state
from tui_probe.trace.locate import Address
from tui_probe.trace.user_state import MAX_VIEWS, LastView, save_last_view
from tui_probe.ui.screens.kernel import KernelScreen
from tui_probe.ui.session import Session

TRACE = H200 / "attention_sectors"


async def test_kernel_page_and_order_are_as_they_were() -> None:
    async with on_stage(Session(traces=(TRACE,)), (120, 40)) as stage:
        assert stage.live.table.selected_index == 1  # the first that was probed
        await stage.press("s", "k", "r", "end", "enter", "8", "ctrl+q")
        left = stage.live.place
    async with on_stage(Session(traces=(TRACE,)), (120, 40)) as stage:
        assert isinstance(stage.app.screen, KernelScreen)
        assert stage.live.place == left
        assert (left.kernel_page, left.column, left.reverse) == ("launches", "demangled", True)
        await stage.press("escape", "0", "v", "ctrl+q")
    async with on_stage(Session(traces=(TRACE,)), (120, 40)) as stage:
        assert stage.app.screen is stage.live
        assert stage.live.current == "events"


async def test_empty_page_is_not_opened_again() -> None:
    async with on_stage(Session(traces=(TRACE,)), (120, 40)) as stage:
        await stage.press("0", "d")
        assert "run with -p dmat" in stage.text
        assert stage.live.place.page == "kernel"
        await stage.press("enter", "0", "d")
        assert "run with -p dmat" in stage.text
        await stage.press("ctrl+q")
    async with on_stage(Session(traces=(TRACE,)), (120, 40)) as stage:
        screen = stage.app.screen
        assert isinstance(screen, KernelScreen)
        assert screen.current == "summary"
        assert stage.live.current == "kernel"


async def test_the_line_is_as_it_was() -> None:
    async with on_stage(Session(traces=(TRACE,)), (120, 40)) as stage:
        await stage.press("enter", "3", "slash", *"ld.global", "enter", "escape", "4")
        screen = stage.app.screen
        assert isinstance(screen, KernelScreen)
        line = screen.line
        assert line is not None
        await stage.press("ctrl+q")
    async with on_stage(Session(traces=(TRACE,)), (120, 40)) as stage:
        screen = stage.app.screen
        assert isinstance(screen, KernelScreen)
        assert (screen.current, screen.view.spot().ptx) == ("diff", (line,))


async def test_without_a_remembered_place_it_is_the_kernel_with_the_largest_share(tmp_path: Path) -> None:
    trace = TimedWriter(tmp_path / "trace")
    trace.start()
    for index, nanoseconds in enumerate((10_000, 500_000, 20_000)):
        trace.kernel(index, f"kernel_{index}")
        trace.time(index, trace.launch(index), nanoseconds, probed=False)
    trace.exit()
    async with on_stage(Session(traces=(trace.directory,)), (120, 40)) as stage:
        await stage.refresh()
        assert stage.live.table.selected_index == 1


async def test_command_line_address_precedes_last_view() -> None:
    save_last_view(TRACE, LastView(4, "events", "summary"))
    at = Address(None, "flash_attention")
    async with on_stage(Session(traces=(TRACE,), address=at), (120, 40)) as stage:
        assert stage.live.place == LastView(1, "kernel", "summary")


async def test_a_kernel_that_is_gone_is_not_selected(tmp_path: Path) -> None:
    trace = example(tmp_path / "trace")
    trace.exit()
    save_last_view(trace.directory, LastView(99, "no such page", "summary", "no such column"))
    async with on_stage(Session(traces=(trace.directory,)), (120, 40)) as stage:
        assert stage.app.screen is stage.live
        assert stage.live.table.selected_index == 0


async def test_a_run_begins_anew(tmp_path: Path) -> None:
    trace = TraceWriter(tmp_path / "Nov21_101010_1")
    trace.kernel("add")
    trace.kernel("sub")
    save_last_view(trace.directory, LastView(1, "kernel", "summary"))
    async with on_stage(Session(target=FakeTarget(tmp_path, [trace.directory])), (120, 40)) as stage:
        assert stage.app.screen is stage.live
        assert stage.live.table.selected_index == 0


def test_nothing_is_written_into_the_trace() -> None:
    before = sorted(path.name for path in TRACE.iterdir())
    save_last_view(TRACE, LastView(1))
    assert sorted(path.name for path in TRACE.iterdir()) == before
    assert Path(os.environ["XDG_STATE_HOME"]) in user_state.state_file(user_state.VIEWS_FILE).parents


def test_the_traces_left_last_are_remembered(tmp_path: Path) -> None:
    for number in range(MAX_VIEWS + 1):
        save_last_view(tmp_path / str(number), LastView(number))
    assert user_state.last_view(tmp_path / "0") is None
    assert user_state.last_view(tmp_path / str(MAX_VIEWS)) == LastView(MAX_VIEWS)


def test_a_state_folder_that_cannot_be_written_is_no_matter(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", "/dev/null")
    save_last_view(TRACE, LastView(1))
    assert user_state.last_view(TRACE) is None


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["kernel", "page", "column"]), inner),
)


@given(JSON | st.fixed_dictionaries({str(TRACE): JSON}))
def test_any_json_is_a_place_or_none(found: object) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(user_state, "read_state", lambda _: json.dumps(found))
        place = user_state.last_view(TRACE)
    assert place is None or isinstance(place.kernel, int | None)
    assert place is None or isinstance(place.page + place.column, str)


@given(st.text())
def test_any_text_is_a_place_or_none(text: str) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(user_state, "read_state", lambda _: text)
        assert user_state.last_view(TRACE) is None
