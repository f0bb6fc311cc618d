"""The command palette and other lists to choose from."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from tests.recorded import H200, SIMULATED
from tests.ui.conftest import golden_screen, on_stage
from tests.ui.fakes import show_fakes
from tests.ui.synthetic import FakeTarget, TraceWriter, example
from tui_probe.pages.findings_page import Question
from tui_probe.ui import Appearance, keys
from tui_probe.ui.commands import commands_of
from tui_probe.ui.screens.help import HelpScreen
from tui_probe.ui.screens.lists import PickerList, PickerScreen
from tui_probe.ui.screens.view_screen import ViewScreen
from tui_probe.ui.session import Session

if TYPE_CHECKING:
    from pathlib import Path

    from tests.ui.conftest import Stage


def offered(stage: Stage) -> dict[str, str]:
    screen = stage.app.screen
    assert isinstance(screen, ViewScreen)
    return {choice.label: choice.note for choice in commands_of(stage.app, screen)}


def text_of(name: str) -> str:
    return next(key.text for key in keys.TABLE if key.id == name)


async def test_typing_finds_and_enter_does(session: Session) -> None:
    async with on_stage(session) as stage:
        await stage.press("colon", *"theme light")
        assert "theme: light" in stage.text
        await stage.press("enter")
        assert stage.app.palette.name == "light"
        assert stage.app.screen is stage.live


async def test_a_key_does_what_it_does_on_its_screen(session: Session) -> None:
    async with on_stage(session) as stage:
        await stage.press("ctrl+p", *"reverse", "enter")
        assert stage.live.table.kernels.order.reverse
        await stage.press("colon", *"all keys", "enter")
        assert isinstance(stage.app.screen, HelpScreen)


async def test_the_words_of_the_line_of_keys_are_found(session: Session) -> None:
    for name in ("export", "copy", "zoom"):
        row = next(key for key in keys.TABLE if key.id == name)
        async with on_stage(session) as stage:
            await stage.press("colon", *(row.footer or row.text.split()[0]))
            picker = stage.app.screen
            assert isinstance(picker, PickerScreen)
            assert row.text in [choice.label for choice in picker.query_one(PickerList).matches]


async def test_a_page_is_shown(session: Session) -> None:
    async with on_stage(session) as stage:
        await stage.press("colon", *"page stderr", "enter")
        assert stage.live.current == "stderr"


async def test_looks_can_be_chosen(session: Session) -> None:
    async with on_stage(session) as stage:
        await stage.press("colon", *"ascii only", "enter")
        assert stage.text.isascii()
        await stage.press("colon", *"bandwidth low", "enter")
        assert stage.app.low_bandwidth
        await stage.press("colon", *"bandwidth full", "enter")
        assert not stage.app.low_bandwidth


async def test_palette_without_match_and_after_erasing(session: Session) -> None:
    async with on_stage(session) as stage:
        await stage.press("colon", *"zzzz")
        assert "0 of" in stage.text
        await stage.press("enter")
        assert isinstance(stage.app.screen, PickerScreen)
        await stage.press("backspace", "backspace", "backspace", "backspace", "question_mark", "ctrl+u", "down", "up")
        assert "type to find" in stage.text
        await stage.press("escape")
        assert stage.app.screen is stage.live


async def test_palette_offers_commands_that_apply(session: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    show_fakes(monkeypatch)
    async with on_stage(session) as stage:
        on_table = offered(stage)
        assert on_table[text_of("sort")] == "s"
        assert text_of("tags") not in on_table
        assert text_of("zoom_in") not in on_table
        assert text_of("interrupt") in on_table
        await stage.press("0", "v", "tab")
        assert text_of("tags") in offered(stage)
        await stage.press("q", "enter")
        assert text_of("zoom_in") not in offered(stage)
        await stage.press("colon", *"page: fake", "enter")
        on_kernel = offered(stage)
        assert text_of("zoom_in") in on_kernel
        assert text_of("sort") not in on_kernel
        assert on_kernel["page: Launches"] == "8"
        assert on_kernel["page: Diff"] == "nothing to show"


async def test_steps_are_offered_where_there_is_something_to_step_to(session: Session) -> None:
    async with on_stage(session) as stage:
        assert text_of("next_process") not in offered(stage)
        assert text_of("processes") not in offered(stage)
        assert text_of("next_kernel") in offered(stage)
        assert text_of("previous_kernel") not in offered(stage)
        assert text_of("previous_launch") in offered(stage)
        assert text_of("next_launch") not in offered(stage)  # the newest is shown
        await stage.press("enter", "left_curly_bracket")
        assert text_of("next_launch") in offered(stage)
        stage.live.table.select(2)  # launched once
        await stage.press("q", "enter")
        assert {text_of("next_launch"), text_of("previous_launch")}.isdisjoint(offered(stage))
        assert "} launch" not in stage.text


async def test_a_search_offers_its_matches(session: Session) -> None:
    async with on_stage(session) as stage:
        assert text_of("next_match") not in offered(stage)
        await stage.press("slash", *"triton", "enter")
        assert {text_of("next_match"), text_of("previous_match")} <= set(offered(stage))


async def test_a_drawing_has_nothing_to_search(session: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    show_fakes(monkeypatch)
    async with on_stage(session, (200, 40)) as stage:
        await stage.press("enter")
        assert "/ search" in stage.text
        await stage.press("colon", *"page: fake", "enter")
        assert {text_of("search"), text_of("filter"), text_of("next_match")}.isdisjoint(offered(stage))
        assert "/ search" not in stage.text


async def test_without_a_target_nothing_is_interrupted(trace: TraceWriter) -> None:
    async with on_stage(Session(traces=(trace.directory,))) as stage:
        assert text_of("interrupt") not in offered(stage)


@pytest.mark.parametrize("size", [(60, 16), (80, 24), (200, 50)], ids=str)
async def test_the_list_fits_the_terminal(session: Session, size: tuple[int, int]) -> None:
    async with on_stage(session, size) as stage:
        await stage.press("colon", *"zoom" if size[0] > 100 else "")
        assert "Commands:" in stage.text
        assert "Esc leave" in stage.text
        await stage.press("end")
        assert "Esc leave" in stage.text
        await stage.resize(60, 16)
        assert "Esc leave" in stage.text


@pytest.mark.parametrize("ascii_only", [False, True], ids=["unicode", "ascii"])
async def test_the_list_as_text(session: Session, ascii_only: bool) -> None:
    async with on_stage(session, (80, 24), Appearance(ascii_only=ascii_only)) as stage:
        await stage.refresh()  # what was found is at the edge, next to the list
        await stage.press("colon")
        golden_screen("palette", stage)


async def test_processes_in_a_list(tmp_path: Path, trace: TraceWriter) -> None:
    second = example(tmp_path / "Nov21_101011_4243")
    second.kernel("only_in_the_second")
    target = FakeTarget(tmp_path, [trace.directory, second.directory])
    async with on_stage(Session(target=target), (100, 30)) as stage:
        await stage.refresh()
        await stage.press("P")
        golden_screen("processes", stage, text=re.sub(r"running \d+ s", "running 0 s", stage.text))
        await stage.press("down", "enter")
        assert stage.live.current_selection.place == 1
        assert "process 2 of 2" in stage.text


async def test_one_process_needs_no_list(session: Session) -> None:
    async with on_stage(session) as stage:
        await stage.press("P")
        assert "only one process has a trace" in stage.text


@pytest.mark.parametrize("word", ["coalesced", "strided"])
async def test_questions_are_found_where_they_lead_to_a_page_or_a_run(session: Session, word: str) -> None:
    async with on_stage(session) as stage:
        await stage.press("enter", "colon", *word)
        picker = stage.app.screen
        assert isinstance(picker, PickerScreen)
        labels = [choice.label for choice in picker.query_one(PickerList).matches]
        assert labels
        assert all(label.startswith(("page: ", "ask: ", "help: ")) for label in labels)


@pytest.mark.parametrize(("trace", "asks"), [(SIMULATED / "block_sched", False), (H200 / "demo", True)])
async def test_questions_for_a_gpu_are_not_asked_of_the_simulated_one(
    trace: Path, asks: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    question = Question("where do warps wait?", "-p block_sched", needs_gpu=True)
    monkeypatch.setattr("tui_probe.ui.commands.all_questions", lambda: (question,))
    async with on_stage(Session(traces=(trace,))) as stage:
        assert ("ask: where do warps wait?" in offered(stage)) is asks
        assert any(label.startswith("ask: ") for label in offered(stage))


async def test_a_key_that_does_nothing_says_so(session: Session) -> None:
    async with on_stage(session) as stage:
        await stage.press("Q")
        assert "Q does nothing here; press ? for the keys" in stage.text
        await stage.press("n")
        assert "no search text yet" in stage.text
        await stage.press("down")
        assert "does nothing" not in stage.text
        await stage.press("f9", "enter", "Z")
        assert "Z does nothing here" in stage.text
