"""R: the program of a trace runs again, to ask what is not measured yet."""

from __future__ import annotations

import argparse
import json
import re
import shlex
import shutil
import threading
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.patience import HANG
from tests.recorded import H200
from tests.ui.conftest import on_stage
from tests.ui.synthetic import FakeTarget, TraceWriter
from tui_probe.cli import main as command_line
from tui_probe.cli import screen
from tui_probe.cli.screen import requested_command
from tui_probe.ui import rerun
from tui_probe.ui.screens.lists import NameScreen, PickerScreen
from tui_probe.ui.session import OpenTrace, RerunRequest, SameKernel, Session


@pytest.fixture
def demo(tmp_path: Path) -> Path:
    """A trace whose program can run again: the folder where it ran is there."""
    trace = tmp_path / "demo"
    shutil.copytree(H200 / "demo", trace)
    record = json.loads((trace / "run.json").read_text())
    (trace / "run.json").write_text(json.dumps(record | {"cwd": str(tmp_path)}))
    return trace


async def test_from_the_summary_to_a_run_that_answers(demo: Path) -> None:
    session = Session(traces=(demo,))
    async with on_stage(session, (120, 40)) as stage:
        await stage.press("enter")
        assert "further questions: R, or tui-probe run OPTION" in stage.text
        await stage.press("R")
        assert "Run again" in stage.text
        assert "▌1 -p " in stage.text
        assert "which loads and stores are uncoalesced?" in stage.text
        await stage.press(*"coalesced")
        await stage.pilot.press("enter")
    assert rerun_request(session) == (demo, ("-p", "gmem_sectors_by_line"))


async def test_survey_is_first_in_what_may_run_again_and_in_the_palette(demo: Path) -> None:
    session = Session(traces=(demo,))
    async with on_stage(session, (120, 40)) as stage:
        await stage.press("R")
        assert "▌1 -p survey what is slow, in which line, and why" in " ".join(stage.text.split())
        await stage.press("escape", "colon", *"ask:")
        asks = [line for line in stage.text.splitlines() if "ask: w" in line]
        assert "ask: what is slow, in which line, and why" in asks[0]
        await stage.press("escape", "R")
        await stage.pilot.press("enter")
    assert rerun_request(session) == (demo, ("-p", "survey"))


@pytest.mark.parametrize("word", ["waste", "wasted", "traffic", "uncoalesced", "lines"])
async def test_words_of_the_matter_find_the_probe(demo: Path, word: str) -> None:
    async with on_stage(Session(traces=(demo,)), (120, 40)) as stage:
        await stage.press("R", *word)
        assert "which loads and stores are uncoalesced?" in stage.text
        await stage.press("escape", "colon", *word)
        assert "ask: which loads and stores are uncoalesced?" in stage.text


def rerun_request(session: Session) -> tuple[Path, tuple[str, ...]] | None:
    """The trace and the options of what is to be run."""
    return None if session.next_request is None else (session.next_request.trace, session.next_request.options)


HOW = "on page Source press m on the first line, m on the last line, then R"


@pytest.mark.parametrize("words", ["between", "time between"])
async def test_the_time_between_lines_is_answered_with_the_way(demo: Path, words: str) -> None:
    """All of it, on the smallest screen too."""
    session = Session(traces=(demo,))
    async with on_stage(session, (80, 24)) as stage:
        for key in ("R", "colon"):
            await stage.press(key, *words)
            assert re.search("▌(1 )?time between lines", stage.text)
            await stage.press("enter")
            assert HOW in stage.text.split("\n")[-1]
            await stage.press("down")
            assert HOW not in stage.text
    assert session.next_request is None


async def test_marks_on_machine_code_are_answered_with_the_way(demo: Path) -> None:
    async with on_stage(Session(traces=(demo,)), (80, 24)) as stage:
        await stage.press("enter", "3", "m")
        assert HOW in stage.text.split("\n")[-1]


async def test_the_time_between_two_marks_on_the_source_is_asked_for_first(demo: Path) -> None:
    session = Session(traces=(demo,))
    async with on_stage(session, (120, 40)) as stage:
        await stage.press("enter")
        stage.app.screen.action_page("source")  # type: ignore[attr-defined]
        await stage.settle()
        await stage.press("m")
        assert "this row is not a source line" in stage.text
        await stage.press("full_stop", "full_stop", "m")
        assert "the range starts at zero_fill.cu:2; press m on the last line of the range" in stage.text
        await stage.press("up", "m")
        assert "zero_fill.cu:1-2: press R to measure the time in these lines" in stage.text
        await stage.press("3", "2")
        assert "marked zero_fill.cu:1-2" in stage.text
        await stage.press("R")
        assert "▌1 --between zero_fill.cu:1-2  how much time does each warp spend in the marked lines?" in stage.text
        await stage.pilot.press("enter")
    assert rerun_request(session) == (demo, ("--between", "zero_fill.cu:1-2"))


@pytest.mark.parametrize(
    ("key", "words", "options"),
    [
        ("this", "▌1 this kernel", ("-k", "mul")),
        ("all", "▌1 all kernels", ("--all-kernels",)),
    ],
)
async def test_a_run_that_left_the_kernel_out_goes_on_with_it(
    tmp_path: Path, key: str, words: str, options: tuple[str, ...]
) -> None:
    trace = TraceWriter(tmp_path / "Nov21_101010_1")
    trace.kernel("mul", status="filtered")
    record = {"command": ["./prog"], "cwd": str(tmp_path), "options": {"kernels": "nonsense"}}
    (trace.directory / "run.json").write_text(json.dumps(record))
    session = Session(traces=(trace.directory,))
    async with on_stage(session, (80, 24)) as stage:
        await stage.press("R")
        assert "▌1 this kernel" in stage.text
        await stage.press(*key, "space", *"kernel")
        assert words in stage.text
        await stage.pilot.press("enter")
    assert rerun_request(session) == (trace.directory, options)


async def test_from_the_live_screen_as_before(demo: Path) -> None:
    session = Session(traces=(demo,))
    async with on_stage(session, (120, 40)) as stage:
        await stage.press("R")
        assert "Run again" in stage.text
        await stage.press(*"before")
        await stage.pilot.press("enter")
    assert rerun_request(session) == (demo, ())


async def test_an_empty_page_asks_for_its_probe_first(demo: Path) -> None:
    session = Session(traces=(demo,))
    async with on_stage(session, (120, 40)) as stage:
        await stage.press("enter")
        stage.app.screen.action_page("dmat")  # type: ignore[attr-defined]
        await stage.settle()
        assert "run with -p dmat or -p dmat_compact; press R to run the program with -p dmat" in stage.text
        await stage.press("R")
        assert "▌1 -p dmat " in stage.text
        await stage.press("escape")
        assert session.next_request is None
        await stage.press("R")
        await stage.pilot.press("enter")
    assert isinstance(session.next_request, RerunRequest)
    assert session.next_request.begin is not None
    assert session.next_request.begin.page == "dmat"


async def test_the_new_run_opens_the_page_that_it_is_for(tmp_path: Path) -> None:
    """Once it has ended; not over a page that the user has opened meanwhile."""
    trace = TraceWriter(tmp_path / "Nov21_101010_1")
    trace.kernel("add")
    trace.kernel("mul")
    target = FakeTarget(tmp_path, [trace.directory])
    for moved in (False, True):
        target.status = None
        async with on_stage(Session(target=target, begin=SameKernel("mul", "mul", 0, "dmat")), (120, 40)) as stage:
            await stage.refresh()
            assert stage.app.screen is stage.live
            await stage.press(*("home",) * moved)
            target.status = 0
            await stage.refresh()
            await stage.settle()
            assert (stage.app.screen is stage.live) is moved
            if not moved:
                assert stage.app.screen.current == "dmat"  # type: ignore[attr-defined]


def test_page_is_opened_after_a_run_with_its_probe() -> None:
    assert rerun.page_after_run("dmat", ("-p", "dmat")) == "dmat"
    assert rerun.page_after_run("dmat", ("-p", "nan_check")) == ""
    assert rerun.page_after_run("summary", ("-p", "dmat")) == ""


async def test_the_palette_knows_questions(demo: Path) -> None:
    session = Session(traces=(demo,))
    async with on_stage(session, (120, 40)) as stage:
        await stage.press("colon", *"coalesced")
        assert "▌ask: which loads and stores are uncoalesced?" in stage.text
        await stage.press(*"xyz")
        assert "no entry contains these words" in stage.text
        await stage.press("backspace", "backspace", "backspace", "enter")
        assert "▌1 -p gmem_sectors_by_line  which loads and stores are uncoalesced?" in stage.text
        await stage.pilot.press("enter")
    assert rerun_request(session) == (demo, ("-p", "gmem_sectors_by_line"))


@pytest.mark.parametrize("running", [True, False])
async def test_the_new_run_begins_at_the_kernel(demo: Path, tmp_path: Path, running: bool) -> None:
    session = Session(traces=(demo,))
    async with on_stage(session, (80, 24)) as stage:
        await stage.press("down", "down", "enter", "R", *"before")
        await stage.pilot.press("enter")
    assert session.next_request is not None
    trace = TraceWriter(tmp_path / "Nov21_101010_1")
    trace.kernel("add")
    target = FakeTarget(tmp_path, [trace.directory])
    async with on_stage(Session(target=target, begin=session.next_request.begin), (80, 24)) as stage:
        assert stage.live.table.selected_index == 0
        for name in ("strided_store", "mul"):
            trace.kernel(name)
        target.status = None if running else 0
        await stage.refresh()
        assert stage.live.table.selected_index == 1
    async with on_stage(Session(target=target), (80, 24)) as stage:
        assert stage.live.table.selected_index == 0, "of that run only"


def test_same_kernel_is_matched_by_position_among_equal_names() -> None:
    def kernels(*names: str) -> list[Any]:
        return [SimpleNamespace(index=i, name=name, demangled=name[:3]) for i, name in enumerate(names)]

    old = kernels("add", "mul", "add", "add")
    same = SameKernel.from_kernel(old[2], old)
    assert same.index_in(kernels("x", "add", "y", "add"), is_complete=False) == 3
    assert same.index_in(kernels("x", "add"), is_complete=False) is None
    assert same.index_in(kernels("x", "add"), is_complete=True) == 1
    assert same.index_in(kernels("mul"), is_complete=True) is None
    assert same.index_in(kernels("add_1", "add_2"), is_complete=False) == 1


async def test_keys_typed_at_once_wait_for_the_questions(demo: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """``e`` and ``1`` mean something to the page behind."""
    known, offer = threading.Event(), rerun.offer

    def slow(*of: Any) -> Any:
        assert known.wait(HANG)
        return offer(*of)

    monkeypatch.setattr(rerun, "offer", slow)
    session = Session(traces=(demo,))
    async with on_stage(session, (80, 24)) as stage:
        await stage.press("enter", "7")
        behind = stage.app.screen
        for key in ("R", *"beforexe", "backspace", "backspace"):
            await stage.pilot.press(key)
        assert isinstance(stage.app.screen, PickerScreen)
        assert "reading…" in stage.text
        known.set()
        await stage.settle()
        assert "Run again: before" in stage.text
        assert "▌1 as before" in stage.text
        await stage.press("escape")
        assert stage.app.screen is behind
        assert "Write as" not in stage.text
        known.clear()
        for key in ("R", *"before", "enter"):
            await stage.pilot.press(key)
        known.set()
        await stage.until(lambda: session.next_request is not None, "nothing was chosen")
    assert rerun_request(session) == (demo, ())


async def test_a_menu_that_was_left_does_not_come_back(demo: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    known = threading.Event()
    monkeypatch.setattr(
        rerun, "offer", lambda trace, *_: known.wait(HANG) and rerun.RerunOffer(trace, problem="it is gone")
    )
    async with on_stage(Session(traces=(demo,)), (80, 24)) as stage:
        await stage.press("enter")
        for key in ("R", *"wasted", "escape"):
            await stage.pilot.press(key)
        behind = stage.app.screen
        known.set()
        await stage.settle()
        assert stage.app.screen is behind
        assert "it is gone" not in stage.text


async def test_rerun_refusal_gives_reason(demo: Path) -> None:
    record = json.loads((demo / "run.json").read_text())
    (demo / "run.json").write_text(json.dumps(record | {"cwd": "/no/such/folder"}))
    async with on_stage(Session(traces=(demo,)), (120, 40)) as stage:
        await stage.press("R")
        assert "the program is not on this machine: run this command on its machine" in stage.text
        command = shlex.join(["tui-probe", "run", "-p", record["probe"], "--", *record["command"]])
        assert isinstance(stage.app.screen, NameScreen)
        assert stage.app.screen.list.names == [command]
        assert "y copy" in stage.text
        await stage.press("escape", "enter")
        stage.app.screen.action_page("dmat")  # type: ignore[attr-defined]
        await stage.settle()
        await stage.press("R")
        assert "tui-probe run -p dmat -- " in stage.text


async def test_a_program_that_runs_is_not_started_twice(tmp_path: Path) -> None:
    trace = TraceWriter(tmp_path / "Nov21_101010_1")
    trace.kernel("add")
    async with on_stage(Session(target=FakeTarget(tmp_path, [trace.directory])), (120, 40)) as stage:
        await stage.press("enter", "R")
        assert "the program is still running; press R after it ends" in stage.text


def test_the_command_line_of_what_was_asked_for() -> None:
    looks = argparse.Namespace(ascii=True, palette="light", low_bandwidth=None, mouse=False)
    rerun = RerunRequest(Path("/traces/one"), ("-p", "dmat"))
    argv = ["--ascii", "--palette", "light", "--no-mouse", "--again", "/traces/one", "-p", "dmat"]
    assert requested_command(rerun, looks) == ["run", *argv]
    opened = OpenTrace(Path("/traces/zero"))
    assert requested_command(opened, looks) == ["open", "--ascii", "--palette", "light", "--no-mouse", "/traces/zero"]


@pytest.mark.parametrize(("name", "behind"), [("open", []), ("home", [["home"]])])
def test_rerun_starts_after_the_screen(name: str, behind: list[list[str]], monkeypatch: pytest.MonkeyPatch) -> None:
    run: list[tuple[list[str], SameKernel | None]] = []

    def dispatch(words: list[str], begin: SameKernel | None = None) -> int:
        run.append((words, begin))
        return len(run)

    monkeypatch.setattr(command_line, "dispatch", dispatch)
    options = argparse.Namespace(ascii=False, palette=None, low_bandwidth=None, mouse=None, command_name=name)
    options.next_request = RerunRequest(Path("/traces/one"), (), SameKernel("mul", "mul", 0))
    assert command_line.run_again(options, [name]) == 1 + len(behind)
    first = ["run", "--again", "/traces/one"], SameKernel("mul", "mul", 0)
    assert run == [first, *((words, None) for words in behind)]


def test_screen_of_rerun_gets_initial_kernel(monkeypatch: pytest.MonkeyPatch) -> None:
    begun: list[SameKernel | None] = []
    monkeypatch.setattr(screen, "show_session", lambda session, _: begun.append(session.begin) or 0)
    arguments = argparse.Namespace(ascii=False, palette=None, low_bandwidth=None, mouse=None)
    for begin in (None, SameKernel("mul", "mul", 0)):
        arguments.begin = begin
        screen.show(arguments)
    assert begun == [None, SameKernel("mul", "mul", 0)]
