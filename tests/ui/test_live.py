"""The live screen: what it does while things happen."""

from __future__ import annotations

import json
import os
import threading
from typing import TYPE_CHECKING

import pytest

from tests.patience import HANG
from tests.recorded import H200, unpacked
from tests.ui.conftest import no_gpu, on_stage
from tui_probe.draw.shorten import fitted_command
from tui_probe.ui import Appearance
from tui_probe.ui.app import ProbeApp
from tui_probe.ui.layout import MIN_SIZE, arrangement
from tui_probe.ui.live.feed import is_full
from tui_probe.ui.live.kernel_rows import ArrangedRows
from tui_probe.ui.session import Session

if TYPE_CHECKING:
    from pathlib import Path

    from tests.ui.synthetic import FakeTarget, TraceWriter


async def test_kernels_appear_as_the_log_grows_in_odd_chunks(
    session: Session, trace: TraceWriter, target: FakeTarget
) -> None:
    async with on_stage(session) as stage:
        assert "6 kernels (3 probed) · 6 of 10 launches probed" in stage.text
        line = "[kernel] 6 skipped registers 20 local 0 shared 0 blocks 8 name späte_Küche reason no PTX\n".encode()
        for start in range(0, len(line), 7):
            trace.raw(line[start : start + 7])
            await stage.refresh()
        assert "7 kernels (3 probed)" in stage.text
        trace.launch(0)
        await stage.refresh()
        assert "11 launches" in stage.text
        assert target.signals == []


@pytest.mark.parametrize(
    ("command", "cells", "shown"),
    [
        ("/usr/bin/python lib/demo.py --repeat 6", 80, "python lib/demo.py --repeat 6"),
        ("/usr/bin/python lib/demo.py --data=a/b out/", 20, "python demo.py --data=a/b out/"),
        ("./a.out 3 / 4", 80, "./a.out 3 / 4"),
    ],
)
def test_fitted_command_omits_directories_before_names(command: str, cells: int, shown: str) -> None:
    assert fitted_command(command, cells) == shown


async def test_a_target_without_a_trace_says_what_it_waits_for(tmp_path: Path, target: FakeTarget) -> None:
    traces, target.traces = target.traces, []
    async with on_stage(Session(target=target)) as stage:
        assert "waiting for the first kernel" in stage.text
        assert "running" in stage.text
        target.status = 3
        await stage.refresh()
        assert "no kernel was launched; press 0, then o or e" in stage.text
        target.status = None
        target.traces = traces
        await stage.refresh()
        assert "zero_fill" in stage.text
    target.traces, target.status = [], 3
    async with on_stage(Session(target=target)) as stage:
        assert "no kernel was launched; press 0, then o or e" in stage.text
        assert "✘ exit 3" in stage.text
        assert tmp_path.exists()


async def test_trace_with_an_empty_log_names_the_damage(tmp_path: Path) -> None:
    trace = unpacked(H200 / "demo", tmp_path)
    (trace / "event.log").write_bytes(b"")
    async with on_stage(Session(traces=(trace,))) as stage:
        assert "no kernel can be shown: event.log is truncated" in stage.text
        assert "no kernel is selected" in stage.text
        assert "reading the trace" not in stage.text


NO_NVRTC = """Traceback (most recent call last):
  File "/home/me/train.py", line 12, in <module>
    import cupy
OSError: libnvrtc.so.12: cannot open shared object file: No such file or directory
"""


async def test_failure_of_program_is_shown_first(target: FakeTarget) -> None:
    target.stderr_path.write_text(NO_NVRTC)
    async with on_stage(Session(target=target), (120, 40)) as stage:
        assert "libnvrtc" not in stage.text, "the program runs"
        target.status = 1
        await stage.refresh()
        first = next(line for line in stage.inside.split("\n") if "libnvrtc" in line)
        assert first.strip().startswith("✘ exit 1: the program's environment is broken at /home/me/train.py:12")
        assert "usual fix: install NVRTC" in " ".join(stage.inside.split())
    target.traces = []
    target.stderr_path.write_text("loading\nRuntimeError: no data\n")
    async with on_stage(Session(target=target)) as stage:
        assert "no kernel was launched; ✘ exit 1: RuntimeError: no data; press 0, then e, to see stderr" in stage.text


@pytest.mark.parametrize(
    ("status", "words"), [(0, "✔ exit 0"), (3, "✘ exit 3"), (-15, "✘ killed by signal 15 (SIGTERM)")]
)
async def test_end_of_run_is_reported(session: Session, target: FakeTarget, status: int, words: str) -> None:
    async with on_stage(session) as stage:
        assert "● running" in stage.text
        target.status = status
        await stage.refresh()
        assert words in stage.text
        assert "Ctrl-C" not in stage.text
        await stage.press("ctrl+c")
        assert target.signals == []
        await stage.pilot.press("ctrl+q")
        assert not stage.app.is_running


async def test_unsorted_kernels_are_not_reported_as_filtered(session: Session) -> None:
    async with on_stage(session) as stage:
        table = stage.live.table
        rows, table.kernels.all_rows = table.kernels.all_rows, ()
        table._take(ArrangedRows((), {}, frozenset()))
        table.kernels.all_rows = rows
        assert "reading the trace" in "".join(text for line in table.draw(100, 10) for text, _ in line)
        table._arrange()
        await stage.settle()
        await stage.press("ampersand", "z", "z", "enter")
        assert "no kernel passes the filter" in stage.text


async def test_loading_trace_is_not_reported_as_empty(trace: TraceWriter, monkeypatch: pytest.MonkeyPatch) -> None:
    app = ProbeApp(Session(traces=(trace.directory,)), gpu=no_gpu())
    drawn: list[str] = []
    app.feed.start = lambda: None  # type: ignore[method-assign]

    def text() -> str:
        return "".join(text for line in app.live.table.draw(100, 10) for text, _ in line)

    async with app.run_test(size=(120, 40)) as pilot:
        monkeypatch.setattr(app.live, "redraw", lambda _: drawn.append(text()))
        app.feed.poll()
        app.live.refresh_frame()
        assert app.live.table.is_waiting
        assert "reading the trace" in text()
        monkeypatch.undo()
        await pilot.pause()
    assert drawn
    assert not any("no kernel was launched" in frame for frame in drawn)


async def test_full_disk_is_reported_during_and_after(
    session: Session, target: FakeTarget, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert not is_full(target.stdout_path.parent / "missing")
    async with on_stage(session, (80, 24)) as stage:
        room = os.statvfs_result((4096, 4096, 100, 3, 3, 100, 9, 9, 0, 255))
        monkeypatch.setattr("tui_probe.ui.live.feed.os.statvfs", lambda _: room)
        await stage.refresh()
        assert "disk full" in stage.text
        monkeypatch.undo()
        target.status = 0
        await stage.refresh()
        assert "✔ exit 0" in stage.text
        assert "disk full" in stage.text


async def test_simulated_runs_are_labelled(session: Session, target: FakeTarget) -> None:
    target.simulated = True
    async with on_stage(session, (60, 20)) as stage:
        assert "[simulated]" in stage.text.splitlines()[-2]


async def test_interrupt_and_quit(session: Session, target: FakeTarget) -> None:
    async with on_stage(session) as stage:
        await stage.press("ctrl+q")
        await stage.pilot.press("i")
        assert target.signals == ["interrupt"]
        assert not stage.app.is_running


async def test_target_question_is_withdrawn_at_its_end(session: Session, target: FakeTarget) -> None:
    async with on_stage(session) as stage:
        await stage.press("ctrl+q")
        assert "Still running:" in stage.text
        target.status = 0
        await stage.refresh()
        assert "Still running:" not in stage.text
        assert "the program has ended" in stage.text
        await stage.press("i")
        assert target.signals == []


@pytest.mark.parametrize("size", [(80, 24), (60, 16)])
async def test_target_question_is_never_cut(session: Session, size: tuple[int, int]) -> None:
    async with on_stage(session, size) as stage:
        await stage.press("ctrl+q")
        assert stage.text.split("\n")[-1].endswith("l leave it running, quit  i interrupt it, quit  c cancel")
        await stage.press("c", "ctrl+c", "ctrl+c")
        assert stage.text.split("\n")[-1].endswith("t terminate it  K kill it; its results are lost  c cancel")


@pytest.mark.parametrize("key", ["", "question_mark"])
async def test_ending_hint_disappears_at_end(session: Session, target: FakeTarget, key: str) -> None:
    async with on_stage(session) as stage:
        await stage.press(*([key] if key else []), "ctrl+c")
        assert "Ctrl-C again within 2 s, then t" in stage.text
        target.status = 0
        await stage.refresh()
        assert "Ctrl-C again" not in stage.text


async def test_ending_hint_stays_while_valid(session: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tui_probe.ui.ending.SECOND_INTERRUPT_SECONDS", 0.01)
    async with on_stage(session) as stage:
        await stage.press("ctrl+c")
        await stage.until(lambda: "Ctrl-C again" not in stage.text, "it is still said")


async def test_a_second_interrupt_after_a_while_only_interrupts_again(
    session: Session, target: FakeTarget, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tui_probe.ui.ending.SECOND_INTERRUPT_SECONDS", 0.0)
    async with on_stage(session) as stage:
        await stage.press("ctrl+c", "ctrl+c")
        assert target.signals == ["interrupt", "interrupt"]


async def test_killing_needs_a_capital_letter(session: Session, target: FakeTarget) -> None:
    async with on_stage(session) as stage:
        await stage.press("ctrl+c", "ctrl+c", "k")
        assert target.signals == ["interrupt"]
        await stage.press("K")
        assert target.signals == ["interrupt", "kill"]


async def test_keys_are_text_while_a_prompt_asks(session: Session) -> None:
    async with on_stage(session) as stage:
        await stage.press("slash", "q", "j", "space", "3", "?", "backspace")
        assert "search: qj 3" in stage.text.splitlines()[-1]
        assert stage.live.current == "kernel"
        await stage.press("left", "left", "x", "home", "delete", "ctrl+w")
        assert "search: jx 3" in stage.text.splitlines()[-1]
        await stage.press("escape")
        assert "Ctrl-Q" in stage.text.splitlines()[-1]
        assert stage.live.table.search_text == ""


async def test_process_log_follows_the_selection(session: Session) -> None:
    async with on_stage(session) as stage:
        await stage.press("9")
        assert "Compiling entry function '_Z9zero_fillPfi'" in stage.text
        await stage.press("right_square_bracket")
        assert "Compiling entry function '_ZN2at6native" in stage.text
        await stage.press("right_square_bracket", "right_square_bracket")
        assert "this kernel was not sent to the probe engine" in stage.text


async def test_why_and_what_to_do_are_on_the_kernel_page(session: Session) -> None:
    async with on_stage(session, (160, 50)) as stage:
        stage.live.table.select(3)
        await stage.settle()
        assert "no PTX in image" in stage.text
        assert "TORCH_CUDA_ARCH_LIST" in stage.text


async def test_results_are_analysed_when_they_come_and_bad_ones_say_why(session: Session, trace: TraceWriter) -> None:
    async with on_stage(session) as stage:
        await stage.press("0", "r")
        assert stage.text.count("64 blocks, cycles per slot: 16 000 running, 1 500 in gaps") == 5
        trace.result(0, trace.launch(0))
        trace.result(1, trace.launch(1)).write_bytes(b"cut")
        await stage.refresh()
        assert stage.text.count("64 blocks, cycles per slot: ") == 6
        assert stage.text.count(".bin") == 1


async def test_resizing_divides_anew_and_says_when_there_is_too_little(session: Session) -> None:
    async with on_stage(session, (120, 40)) as stage:
        for size in ((80, 24), (300, 60), (60, 15), (200, 50)):
            await stage.resize(*size)
            lines = stage.text.splitlines()
            assert len(lines) == size[1]
            assert max(map(len, lines)) <= size[0]
            assert "zero_fill" in stage.text
            assert "Ctrl-Q" in lines[-1]
        await stage.resize(40, 10)
        assert stage.text.split("\n")[0] == " 40×10 is too small: 60×15 needed"
        assert "zero_fill" not in stage.text
        await stage.resize(80, 24)
        assert "zero_fill" in stage.text


@pytest.mark.parametrize(("width", "height"), [MIN_SIZE, (80, 24), (120, 40), (239, 50), (240, 50), (300, 100)])
def test_table_and_page_both_have_room(width: int, height: int) -> None:
    division = arrangement(width, height)
    assert division is not None
    if division.adjacent:
        assert min(division.table_cells, width - division.table_cells) >= 100
    else:
        assert division.table_cells >= 5
        assert height - 4 - division.table_cells >= 6


def test_less_than_the_smallest_is_too_small() -> None:
    assert arrangement(MIN_SIZE[0] - 1, MIN_SIZE[1]) is None
    assert arrangement(MIN_SIZE[0], MIN_SIZE[1] - 1) is None


async def test_keys_act_while_a_file_is_read(session: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    gate, entered = threading.Event(), threading.Event()
    from tui_probe.ui.views.log import LogReader

    read = LogReader.page

    def slow(self: LogReader, *arguments: object) -> object:
        entered.set()
        assert threading.current_thread() is not threading.main_thread()
        assert gate.wait(HANG)
        return read(self, *arguments)  # type: ignore[arg-type]

    async with on_stage(session) as stage:
        monkeypatch.setattr(LogReader, "page", slow)
        await stage.press("0")
        await stage.pilot.press("v")
        await stage.until(entered.is_set, "no page was asked for")
        await stage.pilot.press("j", "j")
        assert stage.live.table.selected_index == 2
        assert stage.live.view.name == "kernels"
        gate.set()
        await stage.settle()
        assert "[exec]" in stage.text


async def test_keys_act_while_results_are_analysed(session: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    gate, entered = threading.Event(), threading.Event()
    from tui_probe.ui.live import results

    def slow(*_: object, **__: object) -> dict[int, list[str]]:
        entered.set()
        assert gate.wait(HANG)
        return {}

    monkeypatch.setattr(results, "next_kernels", slow)
    async with on_stage(session) as stage:
        await stage.press("0")
        await stage.pilot.press("r")
        await stage.until(entered.is_set, "no result was analysed")
        await stage.pilot.press("0", "v")
        await stage.until(lambda: "[exec]" in stage.text, "the log does not come")
        assert not gate.is_set(), "the analysis is still under way"
        gate.set()


async def test_only_newest_request_is_served(session: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    gate, served = threading.Event(), []
    from tui_probe.ui.views.log import LogReader, LogWindow

    def slow(*arguments: object) -> LogWindow:
        gate.wait(HANG)
        served.append(arguments)
        return LogWindow()

    async with on_stage(session) as stage:
        await stage.press("0", "o", "tab")
        monkeypatch.setattr(LogReader, "page", slow)
        for _ in range(50):
            await stage.pilot.press("k")
        gate.set()
        await stage.settle()
        assert 1 <= len(served) <= 3


async def test_a_frame_is_left_out_while_the_terminal_lags_and_keys_are_not(
    session: Session, trace: TraceWriter, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with on_stage(session) as stage:
        monkeypatch.setattr(type(stage.app), "is_backed_up", property(lambda _: True))
        trace.kernel("late", "skipped")
        await stage.refresh()
        assert "late" not in stage.text
        assert stage.live.frames.skipped_frames >= 1
        await stage.press("j")
        assert stage.live.table.selected_index == 1
        monkeypatch.setattr(type(stage.app), "is_backed_up", property(lambda _: False))
        await stage.refresh()
        assert "late" in stage.text


async def test_low_bandwidth_halves_the_frames(session: Session) -> None:
    async with on_stage(session, appearance=Appearance(low_bandwidth=True)) as stage:
        ticks: list[int] = []
        stage.live.frames.refresh = lambda: ticks.append(stage.live.frames.ticks)  # type: ignore[method-assign]
        stage.live.frames.ticks = 0
        for _ in range(6):
            stage.live.frames.tick()
        assert ticks == [2, 4, 6]
        stage.live.show_bars()
        assert "· low bandwidth ·" in stage.text


async def test_a_failure_of_the_feed_ends_the_screen(session: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tui_probe.ui.live.live_bars.INTERVAL", 0.05)
    apps = []

    async def fail() -> None:
        async with on_stage(session) as stage:
            apps.append(stage.app)
            stage.app.feed.failure = RuntimeError("planted")
            await stage.until(lambda: not stage.app.is_running, "it continues")

    with pytest.raises(RuntimeError, match="planted"):
        await fail()
    assert apps[0].return_code == 1
    assert isinstance(apps[0].crash, RuntimeError)


async def test_a_trace_that_is_not_there_says_so(tmp_path: Path) -> None:
    (tmp_path / "event.log").mkdir()
    async with on_stage(Session(traces=(tmp_path,))) as stage:
        assert str(tmp_path) in " ".join(stage.text.split())


async def test_an_explored_trace_ends_as_its_record_says(trace: TraceWriter) -> None:
    record = {"command": ["./a"], "exit_status": None, "signal": 9, "ended": "2023-11-14T22:13:25+00:00"}
    (trace.directory / "run.json").write_text(json.dumps(record))
    async with on_stage(Session(traces=(trace.directory,))) as stage:
        assert "killed by signal 9 (SIGKILL)" in stage.text


async def test_the_mouse_selects_rows_and_pages(session: Session) -> None:
    async with on_stage(session) as stage:
        await stage.pilot.click("#table", offset=(10, 3))
        assert stage.live.table.selected_index == 2
        await stage.pilot.click("#tabs", offset=(18, 0))
        await stage.settle()
        assert stage.live.current == "source"


async def test_moving_the_selection_sends_two_rows_only(session: Session) -> None:
    async with on_stage(session) as stage:
        await stage.press("0", "g")
        pane = stage.live.query_one("#table")
        asked: list[object] = []
        refresh = pane.refresh

        def note(*regions: object, **options: object) -> object:
            asked.extend(regions)
            return refresh(*regions, **options)  # type: ignore[arg-type]

        pane.refresh = note  # type: ignore[method-assign,assignment]
        await stage.press("j")
        assert [region.y for region in asked] == [1, 2]  # type: ignore[attr-defined]


async def test_keys_of_the_settings_act_and_are_shown(session: Session) -> None:
    async with on_stage(session, appearance=Appearance(keys={"sort": ("ctrl+s",), "search": ("q",)})) as stage:
        (problem,) = stage.app.key_problems
        assert problem.startswith("keys.search: q is already the key of ")
        await stage.press("s")
        assert stage.live.table.kernels.order.column is None
        await stage.press("ctrl+s", "k")
        assert stage.live.table.sorting[0] == "demangled"
        assert "Ctrl-S sort" in stage.text
        await stage.press("slash")
        assert "search:" in stage.text


async def test_every_screen_says_that_the_terminal_is_too_small(session: Session) -> None:
    async with on_stage(session) as stage:
        for opening, leaving in (("question_mark", "q"), ("enter", "q"), ("colon", "escape")):
            await stage.press(opening)
            await stage.resize(50, 12)
            assert opening == "colon" or "50×12 is too small: 60×15 needed" in stage.text
            await stage.resize(80, 24)
            assert "too small" not in stage.text
            await stage.press(leaving)


async def test_keys_do_not_act_behind_the_notice_that_the_terminal_is_too_small(session: Session) -> None:
    async with on_stage(session) as stage:
        await stage.resize(50, 12)
        await stage.press("j", "enter", "0", "v")
        await stage.resize(80, 24)
        assert stage.app.screen is stage.live
        assert (stage.live.table.selected_index, stage.live.current) == (0, "kernel")


async def test_each_kernel_keeps_its_place_on_the_page_below_the_table(session: Session) -> None:
    async with on_stage(session, (60, 15)) as stage:
        await stage.press("tab", "down", "down", "down")
        page = stage.live.pages.kernel_page
        assert page.top == 3
        await stage.press("right_square_bracket")
        assert page.top == 0
        await stage.press("left_square_bracket")
        assert page.top == 3


async def test_kernel_that_rests_is_shown_when_another_screen_comes_in_front(
    session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A timer behind the screen in front would make Textual send all of that again."""
    monkeypatch.setattr("tui_probe.ui.live.live_pages.REST_SECONDS", 3600.0)
    async with on_stage(session) as stage:
        live, before = stage.live, stage.live.pages.kernel_page.kernel
        await stage.press("down")
        assert live.pages.kernel_page.kernel == before
        await stage.press("enter")
        await stage.settle()
        assert live.pages.kernel_page.kernel == live.table.kernel != before
