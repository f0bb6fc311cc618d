"""The screen of a kernel: stepping keeps page and place, and nothing that takes time holds up a key."""

from __future__ import annotations

import asyncio
import json
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.patience import HANG
from tests.recorded import unpacked
from tests.ui.conftest import Stage, golden_sizes, on_stage
from tests.ui.fakes import FakeDrawing, Gate, show_fakes, show_pages
from tui_probe.draw.view import Document
from tui_probe.pages.views import keys_of_pages, kind_of
from tui_probe.probekit.page_kinds import ViewKind
from tui_probe.ui.screens import paged
from tui_probe.ui.screens.kernel import KernelScreen
from tui_probe.ui.screens.page_opening import MessageView, OpeningView, pages_of
from tui_probe.ui.session import Session
from tui_probe.ui.views.document_view import DocumentView
from tui_probe.ui.views.drawing import DrawingView

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tests.ui.synthetic import TraceWriter
    from tui_probe.draw.spans import Line
    from tui_probe.draw.view import Progress
    from tui_probe.probekit.page_kinds import ViewSource

H200 = Path(__file__).parents[1] / "data" / "h200"
RECORDED = H200 / "demo"


@pytest.fixture
def recorded() -> Session:
    """A run on an H200."""
    return Session(traces=(RECORDED,))


def screen_of(stage: Stage) -> KernelScreen:
    assert isinstance(stage.app.screen, KernelScreen)
    return stage.app.screen


def document(stage: Stage) -> DocumentView:
    view = screen_of(stage).view
    assert isinstance(view, DocumentView)
    return view


async def drawing(stage: Stage) -> FakeDrawing:
    """Go to the page of the fake and give what it hosts."""
    await screen_of(stage).run_action("page('fake')")
    await stage.settle()
    view = screen_of(stage).view
    assert isinstance(view, DrawingView)
    assert isinstance(view.drawing, FakeDrawing)
    return view.drawing


async def let_run(stage: Stage) -> None:
    """Handle what has come, without waiting for threads."""
    for _ in range(5):
        await stage.pilot.pause()
        await asyncio.sleep(0.01)


async def open_held(stage: Stage, gate: Gate) -> KernelScreen:
    """Open a kernel whose pages wait at a gate."""
    gate.close()
    stage.app.analyses.submit("gate", gate.wait, lambda _: None)
    await stage.pilot.press("enter")
    await let_run(stage)
    return screen_of(stage)


async def test_screen_is_sent_together_with_its_first_page(monkeypatch: pytest.MonkeyPatch, recorded: Session) -> None:
    monkeypatch.setattr(paged, "INTERVAL", 3600.0)
    async with on_stage(recorded) as stage:
        screen = await open_held(stage, gate := Gate())
        assert screen.held_back
        gate.open.set()
        await stage.settle()
        assert not screen.held_back
        assert "status" in stage.text


async def test_screen_is_sent_before_a_page_that_takes_two_ticks(
    monkeypatch: pytest.MonkeyPatch, recorded: Session
) -> None:
    monkeypatch.setattr(paged, "INTERVAL", 3600.0)
    async with on_stage(recorded) as stage:
        screen = await open_held(stage, gate := Gate())
        screen.tick()
        assert screen.held_back
        screen.tick()
        assert not screen.held_back
        await let_run(stage)
        assert "reading Summary" in stage.text
        gate.open.set()


@pytest.mark.parametrize("page", ["1", "4", "8"])
async def test_the_screen(recorded: Session, page: str, monkeypatch: pytest.MonkeyPatch) -> None:
    show_pages(monkeypatch, others=False)  # what else there is has goldens of its own
    async with on_stage(recorded, (120, 40)) as stage:
        stage.live.table.select(4)
        await stage.press("enter", page)
        await golden_sizes(f"kernel-{screen_of(stage).current}", stage)


async def test_steps_keep_page_and_place(recorded: Session) -> None:
    async with on_stage(recorded, (120, 30)) as stage:
        stage.live.table.select(4)
        await stage.press("enter", "3", "pagedown", "right")
        top = document(stage).window.top
        assert (top, document(stage).window.left) == (24, 8)
        await stage.press("right_square_bracket")
        assert "#5 reduction" in stage.text
        assert screen_of(stage).current == "ptx"
        assert (document(stage).window.top, document(stage).window.left) == (top, 0), (
            "lines begin at their left edge again"
        )
        await stage.press("v", "left_square_bracket")
        assert "pruned.ptx" in stage.text
        await stage.press("q")
        assert stage.live.table.selected_index == 4


async def test_each_kernel_keeps_its_place_on_each_page(recorded: Session) -> None:
    """Also where the page of the kernel between them is shorter."""
    async with on_stage(recorded, (120, 30)) as stage:
        stage.live.table.select(4)
        await stage.press("enter", "3", "G")
        last = document(stage).window.top
        await stage.press("left_square_bracket")
        assert document(stage).window.top < last
        await stage.press("right_square_bracket")
        assert document(stage).window.top == last


async def test_letters_typed_before_the_pages_are_known_are_not_lost(
    recorded: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    known = threading.Event()

    def late(source: ViewSource) -> list[tuple[ViewKind, str, bool]]:
        assert known.wait(HANG)
        return pages_of(source)

    monkeypatch.setattr("tui_probe.ui.screens.kernel.pages_of", late)
    async with on_stage(recorded, (120, 40)) as stage:
        stage.live.table.select(4)
        await stage.pilot.press("enter", "7")
        await let_run(stage)
        screen = screen_of(stage)
        assert screen.current == "timeline", "digits are known at once"
        await stage.pilot.press("0", "b")
        await let_run(stage)
        known.set()
        await stage.settle()
        assert (screen.current, stage.app.screen) == ("blocks", screen)


async def test_a_list_of_pages_that_was_left_opens_none(recorded: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    known = threading.Event()

    def late(source: ViewSource) -> list[tuple[ViewKind, str, bool]]:
        assert known.wait(HANG)
        return pages_of(source)

    monkeypatch.setattr("tui_probe.ui.screens.kernel.pages_of", late)
    async with on_stage(recorded, (120, 40)) as stage:
        await stage.pilot.press("enter", "0")
        await let_run(stage)
        await stage.pilot.press("escape", "q")
        await let_run(stage)
        assert stage.app.screen is stage.live
        known.set()
        await stage.settle()
        assert stage.app.screen is stage.live


@pytest.mark.parametrize(
    ("trace", "kernel", "own"),
    [
        ("demo", 4, ("blocks", "latency")),
        ("demo_bytes", 1, ("memory", "latency")),
        ("dmat", 1, ("dmat",)),
        ("attention_progress", 1, ("progress", "latency")),
        ("attention_sectors", 1, ("sectors",)),
    ],
)
async def test_a_page_has_the_same_number_whatever_probe_ran(
    trace: str, kernel: int, own: Sequence[str], tmp_path: Path
) -> None:
    async with on_stage(Session(traces=(unpacked(H200 / trace, tmp_path),)), (200, 50)) as stage:
        stage.live.table.select(kernel)
        await stage.press("enter")
        numbered = [(key, name) for key, name in NUMBERED.items() if has(stage, name)]
        assert numbered
        for key, name in numbered:
            await stage.press(key)
            assert screen_of(stage).current == name
            assert f" {key} {kind_of(name).title} " in stage.text.split("\n")[1]
        for name in own:
            letter = keys_of_pages()[name]
            await stage.press("0", letter)
            assert screen_of(stage).current == name
            assert f" 0 {letter} {kind_of(name).title} " in stage.text.split("\n")[1]


NUMBERED = {"6": "lines", "7": "timeline", "2": "source"}


def has(stage: Stage, name: str) -> bool:
    return any(tab.id == name and not tab.is_empty for tab in screen_of(stage).tabs)


async def test_page_without_results_names_the_probe() -> None:
    async with on_stage(Session(traces=(H200 / "attention_progress",)), (200, 50)) as stage:
        stage.live.table.select(0)
        await stage.press("enter", "0")
        assert "nothing recorded" in stage.text
        await stage.press("d")
        assert screen_of(stage).current == "dmat"
        assert (
            "press R to run the program with -p dmat" in stage.text
            or "not probed" in stage.text
            or "-p dmat" in stage.text
        )


async def test_table_ends_are_reported(recorded: Session) -> None:
    async with on_stage(recorded) as stage:
        await stage.press("enter", "left_square_bracket")
        assert "this is the first kernel" in stage.text
        await stage.press("G", "q", "G", "enter", "right_square_bracket")
        assert "this is the last kernel" in stage.text


async def test_launches_are_stepped_through_on_the_same_page(session: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    show_fakes(monkeypatch)
    async with on_stage(session) as stage:
        await stage.press("enter")
        (await drawing(stage)).press("zoom_in")
        await stage.press("left_curly_bracket")
        fake = await drawing(stage)
        assert fake.source.launch is not None
        assert fake.source.launch.number == 2
        assert fake.pressed == ["zoom_in"]
        assert "launch 2 (3rd of 4 of this kernel)" in stage.text
        await stage.press("right_curly_bracket", "right_curly_bracket")
        assert "no later launch has a result" in stage.text


async def test_the_title_says_which_launch_is_shown(session: Session, trace: TraceWriter) -> None:
    trace.launch(2)
    async with on_stage(session, (200, 30)) as stage:
        await stage.press("enter")
        assert "launch 3 (4th of 4 of this kernel)" in stage.text.split("\n")[0]
        await stage.press("right_square_bracket", "right_square_bracket")
        assert screen_of(stage).current_selection.table.selected_index == 2
        title = stage.text.split("\n")[0]
        assert "2 launches, no result" in title
        await stage.press("right_square_bracket", "right_square_bracket")
        assert "1 launch, no result" in stage.text.split("\n")[0]


async def test_title_drops_the_place_of_the_launch_before_the_name() -> None:
    async with on_stage(Session(traces=(H200 / "attention_sectors",)), (60, 15)) as stage:
        stage.live.table.select(1)
        await stage.press("enter")
        title = stage.text.split("\n")[0]
        assert title.split() == ["#1", "flash_attention", "launch", "6", "probed"]


async def test_the_summary_names_the_numbers_of_pages(recorded: Session) -> None:
    async with on_stage(recorded, (120, 40)) as stage:
        stage.live.table.select(4)
        await stage.press("enter")
        assert "→ 7 Timeline" in stage.text
        assert "→ 0 b Blocks" in stage.text


async def test_a_page_that_is_read_again_keeps_the_numbers_of_pages(recorded: Session) -> None:
    async with on_stage(recorded, (120, 40)) as stage:
        stage.live.table.select(4)
        await stage.press("enter")
        before = document(stage).document
        screen_of(stage)._read_again(screen_of(stage)._snapshot)
        await stage.settle()
        assert document(stage).document is not before
        assert "→ 7 Timeline" in stage.text


async def test_missing_page_shows_reason_in_place(session: Session) -> None:
    async with on_stage(session, (200, 30)) as stage:
        stage.live.table.select(3)
        await stage.press("enter", "4")
        assert isinstance(screen_of(stage).view, MessageView)
        assert "no PTX in image" in stage.text
        assert "(PTX)" in stage.text


async def test_keys_are_answered_while_a_view_opens(session: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    gate = Gate()
    show_fakes(monkeypatch, opening=gate)
    async with on_stage(session) as stage:
        await stage.press("enter")
        gate.close()
        await screen_of(stage).run_action("page('fake')")
        assert await asyncio.to_thread(gate.reached.wait, 10)
        screen_of(stage).tick()
        screen_of(stage).tick()
        await let_run(stage)
        assert isinstance(screen_of(stage).view, OpeningView)
        assert "25%, 0 s left" in stage.text
        assert "grid" in stage.text  # the page before stays below the progress
        await stage.pilot.press("question_mark")
        await let_run(stage)
        assert " Keys " in stage.text.split("\n")[0]
        await stage.pilot.press("q")
        await stage.pilot.press("1")  # its page is read already
        await let_run(stage)
        assert "status" in stage.text
        gate.open.set()
        await stage.settle()
        assert screen_of(stage).current == "summary"
        assert "fake of" not in stage.text


async def test_opening_can_be_stopped(session: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    gate = Gate()
    show_fakes(monkeypatch, opening=gate)
    async with on_stage(session) as stage:
        await stage.press("enter")
        gate.close()
        await screen_of(stage).run_action("page('fake')")
        assert await asyncio.to_thread(gate.reached.wait, 10)
        await stage.pilot.press("escape")
        await let_run(stage)
        assert "stopped" in stage.text
        gate.open.set()
        await stage.settle()
        assert "fake of" not in stage.text
        await drawing(stage)
        assert "fake of 0" in stage.text


async def test_keys_are_answered_while_a_drawing_is_prepared(session: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    gate = Gate()
    show_fakes(monkeypatch, preparing=gate)
    async with on_stage(session) as stage:
        await stage.press("enter")
        fake = await drawing(stage)
        assert "prepared 0" in stage.text
        gate.close()
        await stage.pilot.press("w")
        assert await asyncio.to_thread(gate.reached.wait, 10)
        await stage.pilot.press("d")
        await let_run(stage)
        assert fake.pressed == ["zoom_in", "page_right"]
        assert "prepared 0" in stage.text
        assert "drawing…" in stage.text
        gate.open.set()
        await stage.settle()
        assert "prepared 2" in stage.text
        assert "drawing…" not in stage.text


async def test_the_mouse_moves_the_cursor_of_a_drawing(session: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    show_fakes(monkeypatch)
    async with on_stage(session) as stage:
        await stage.press("enter")
        fake = await drawing(stage)
        await stage.pilot.click("#page", offset=(8, 3))
        await stage.settle()
        assert fake.clicked == (7, 3)


async def test_a_page_is_read_again_while_the_kernel_goes_on(session: Session, trace: TraceWriter) -> None:
    async with on_stage(session) as stage:
        await stage.press("enter", "8")
        assert document(stage).count == 4
        trace.launch(0)
        await stage.refresh()
        screen_of(stage).tick()
        screen_of(stage).tick()
        await stage.settle()
        assert document(stage).count == 5


async def test_a_page_says_itself_whether_it_grows_and_what_it_is_called_where_there_is_little_room(
    session: Session, trace: TraceWriter, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened: list[str] = []

    class Said(Document):
        title = "said"

        def lines(self, width: int) -> Sequence[Line]:
            return [((f"opened {len(opened)} times"[:width], ""),)]

        def record(self) -> dict[str, Any]:
            return {}

        def cells(self) -> Iterator[Sequence[object]]:
            yield ()

    def made(name: str, *, grows: bool) -> ViewKind:
        def open_page(source: ViewSource, progress: Progress) -> Said:
            del source, progress
            opened.append(name)
            return Said()

        title = f"A long title of {name}, which {name} is"
        return ViewKind(name, title, "made up", lambda _: None, open_page, short_title=name.title(), grows=grows)

    show_pages(monkeypatch, made("still", grows=False), made("growing", grows=True), others=False)
    async with on_stage(session, (80, 30)) as stage:
        await stage.press("enter")
        for letter, times in (("i", 1), ("w", 2)):  # of titles that both begin with other letters
            opened.clear()
            await stage.press("0", letter)
            trace.launch(0)
            await stage.refresh()
            screen_of(stage).tick()
            screen_of(stage).tick()
            await stage.settle()
            assert len(opened) == times
            assert f"opened {times} times" in stage.text


async def test_missing_page_is_tried_again(session: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    why = ["there is nothing yet"]
    made = ViewKind("late", "Late", "made up", lambda _: why[0] or None, lambda source, _: FakeDrawing(source, Gate()))
    show_pages(monkeypatch, made, others=False)
    async with on_stage(session) as stage:
        await stage.press("enter")
        await screen_of(stage).run_action("page('late')")
        await stage.settle()
        assert "there is nothing yet" in stage.text
        why[0] = ""
        await stage.press("1")
        await screen_of(stage).run_action("page('late')")
        await stage.settle()
        assert isinstance(screen_of(stage).view, DrawingView)


async def test_changes_are_stepped_through_and_folded(recorded: Session) -> None:
    async with on_stage(recorded, (120, 24)) as stage:
        stage.live.table.select(5)
        await stage.press("enter", "4")
        folded = document(stage).count
        assert "unchanged lines" in stage.text
        await stage.press("full_stop", "full_stop")
        assert "change 2 of 3" in stage.text
        await stage.press("comma")
        assert "change 1 of 3" in stage.text
        await stage.press("z")
        assert document(stage).count > folded
        assert "unchanged lines" not in stage.text
        await stage.press("right_square_bracket")
        assert "unchanged lines" not in stage.text


async def test_search_and_filter_of_a_document(recorded: Session) -> None:
    async with on_stage(recorded, (120, 24)) as stage:
        stage.live.table.select(4)
        await stage.press("enter", "3", "slash", *"bar.sync", "enter")
        assert "bar.sync" in stage.text
        first = document(stage).match
        await stage.press("n")
        assert document(stage).match != first
        await stage.press("ampersand", *"fma.rn", "enter")
        assert 0 < document(stage).count < 40
        assert all("fma.rn" in line for line in stage.text.split("\n")[3 : 3 + document(stage).count])
        await stage.press("escape")
        assert (document(stage).search_text, document(stage).count < 40) == ("", True), "the search ends first"
        await stage.press("escape")
        assert document(stage).count > 100


FORMS = {"t": ("txt", "block_sched"), "c": ("csv", "added,block_sched"), "j": ("json", '"diff"'), "s": ("svg", "<svg")}


@pytest.mark.parametrize("key", FORMS)
async def test_a_page_is_written_in_any_form(recorded: Session, key: str) -> None:
    suffix, content = FORMS[key]
    async with on_stage(recorded) as stage:
        await stage.press("enter", "4", "e", key)
        (written,) = Path.cwd().glob(f"tui-probe-diff-*.{suffix}")
        assert content in written.read_text()
        assert written.name in stage.text


async def test_enter_selects_the_launch_of_a_row(session: Session) -> None:
    """The list begins at the launch at hand; the launch that Enter selects is that of all pages."""
    async with on_stage(session, (120, 40)) as stage:
        await stage.press("enter", "8")
        assert next(line for line in stage.inside.split("\n") if line.startswith("▌")).split()[1] == "3"
        await stage.press("g", "enter")
        assert "launch 0 is selected" in stage.text
        assert "launch 0 (1st of 4 of this kernel)" in stage.text.split("\n")[0]
        await stage.press("1")
        assert "launch 0 (1st of 4 of this kernel)" in stage.text.split("\n")[0]


async def test_launches_are_written_for_perfetto(recorded: Session) -> None:
    async with on_stage(recorded) as stage:
        await stage.press("enter", "8", "e", "f")
        (written,) = Path.cwd().glob("tui-probe-launches-*.json")
        assert json.loads(written.read_text())["traceEvents"]


async def test_a_png_needs_matplotlib_and_says_so(recorded: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    async with on_stage(recorded) as stage:
        await stage.press("enter", "4", "e", "p")
        assert "matplotlib" in stage.text
        assert list(Path.cwd().glob("*.png")) == []


async def test_a_drawing_stays_while_results_come_and_the_newest_is_a_key_away(
    session: Session, trace: TraceWriter
) -> None:
    def title() -> str:
        return stage.text.split("\n")[0]

    async with on_stage(session) as stage:
        await stage.press("enter", "7")
        assert "launch 3 (4th of 4 of this kernel)  probed" in title()
        for _ in range(3):
            trace.result(0, trace.launch(0))
        await stage.refresh()
        screen = stage.app.screen
        assert isinstance(screen, KernelScreen)
        screen.tick()
        screen.tick()
        assert "launch 3 (4th of 7 of this kernel), } newer" in title()
        assert "launch 3 of #0" in stage.text
        await stage.press("}")
        assert "launch 12 (7th of 7 of this kernel)  probed" in title()
        await stage.press("{", "}")
        trace.result(0, trace.launch(0))
        await stage.refresh()
        await stage.press("}")
        assert "launch 13 (8th of 8 of this kernel)  probed" in title()
        await stage.press("{", "{")
        trace.result(0, trace.launch(0))
        await stage.refresh()
        screen.tick()
        screen.tick()
        assert "launch 11 (6th of 9 of this kernel)  probed" in title()
        await stage.press("}")
        assert "launch 12 (7th of 9 of this kernel)  probed" in title()
