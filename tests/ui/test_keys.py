"""Every key of the table does what its row says."""

from __future__ import annotations

import json
import os
import re
import string
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from textual.keys import _character_to_key

from tests.turns import due
from tests.ui.conftest import Stage, on_stage
from tests.ui.fakes import FakeDrawing, show_fakes
from tests.ui.synthetic import FakeTarget, TraceWriter, example
from tui_probe.launcher.control import BUDGETS, ControlPage
from tui_probe.probekit.page_kinds import DIGIT_PAGES
from tui_probe.ui import keys
from tui_probe.ui.screens.compare import CompareScreen
from tui_probe.ui.screens.further_pages import LetterScreen
from tui_probe.ui.screens.help import HelpScreen, TopicScreen
from tui_probe.ui.screens.kernel import KernelScreen
from tui_probe.ui.screens.lists import NameScreen, TagScreen
from tui_probe.ui.session import Session
from tui_probe.ui.views.drawing import DrawingView
from tui_probe.ui.views.log import LogView

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    Check = Callable[[Stage, str], Awaitable[None]]

CHECKS: dict[str, Check] = {}
HERE = [key for key in keys.TABLE if key.scope != "home"]  # those of the home screen are checked there


def checks(*names: str) -> Callable[[Check], Check]:
    """The check of the rows of these names."""

    def register(check: Check) -> Check:
        CHECKS.update(dict.fromkeys(names, check))
        return check

    return register


@pytest.fixture
def busy(tmp_path: Path, trace: TraceWriter) -> FakeTarget:
    """A target with two processes, output, and more than fits on a page."""
    for number in range(30):
        trace.kernel(f"extra_{number}", "skipped", "no PTX in image")
    second = example(tmp_path / "Nov21_101011_4243")
    second.kernel("only_in_the_second")
    target = FakeTarget(tmp_path, [trace.directory, second.directory])
    target.stdout_path.write_text("".join(f"line {i} {'.' * 150} end\n" for i in range(100)))
    return target


def test_every_row_has_a_check() -> None:
    assert set(CHECKS) == {key.id for key in HERE}


def test_no_key_means_two_things_in_one_place() -> None:
    for scopes in keys.COMBINED_SCOPES:
        pressed = [name for key in keys.in_scope(*scopes) for name in key.keys]
        assert len(pressed) == len(set(pressed))


def test_the_readme_section_names_every_key() -> None:
    section = keys.readme_section()
    for key in keys.TABLE:
        assert key.text in section
        for name in key.keys:
            assert f"`{keys.key_sign(name)}`" in section


@pytest.mark.parametrize(
    ("row", "name"),
    [(key, name) for key in HERE for name in due(key.keys)],
    ids=lambda value: getattr(value, "id", value),
)
async def test_a_key_does_what_its_row_says(
    row: keys.Key, name: str, busy: FakeTarget, monkeypatch: pytest.MonkeyPatch
) -> None:
    show_fakes(monkeypatch)
    async with on_stage(Session(target=busy), (110, 32)) as stage:
        await CHECKS[row.id](stage, name)


def log(stage: Stage) -> LogView:
    assert isinstance(stage.live.view, LogView)
    return stage.live.view


@checks("interrupt")
async def _(stage: Stage, key: str) -> None:
    assert stage.target is not None
    await stage.press(key)
    assert stage.target.signals == ["interrupt"]
    assert "interrupted the program" in stage.text
    await stage.press(key, "t")
    assert stage.target.signals == ["interrupt", "terminate"]
    assert stage.app.is_running


@checks("quit")
async def _(stage: Stage, key: str) -> None:
    await stage.press(key)
    assert "Still running" in stage.text
    await stage.press("c")
    assert "Still running" not in stage.text
    assert stage.app.is_running
    await stage.press(key)
    await stage.pilot.press("l")
    assert not stage.app.is_running


@checks("help")
async def _(stage: Stage, key: str) -> None:
    await stage.press(key)
    assert isinstance(stage.app.screen, HelpScreen)
    await stage.press(key)
    assert stage.app.screen is stage.live


@checks("compare")
async def _(stage: Stage, key: str) -> None:
    await stage.press(key)
    assert "marked #0 zero_fill" in stage.text
    await stage.press("right_square_bracket", "enter", key)
    assert isinstance(stage.app.screen, CompareScreen)
    assert re.search(r"registers per thread +18 +20 +▲ \+2 +\+11.1%", stage.text)
    await stage.press("q")
    assert isinstance(stage.app.screen, KernelScreen)


@checks("close")
async def _(stage: Stage, key: str) -> None:
    await stage.press("question_mark", key)
    assert stage.app.screen is stage.live


@checks("topics")
async def _(stage: Stage, key: str) -> None:
    await stage.press("question_mark", key, *"run-json", "enter")
    assert isinstance(stage.app.screen, TopicScreen)
    await stage.press(key, *"keys", "enter")
    assert "keys of each screen" in stage.text


@checks("theme")
async def _(stage: Stage, key: str) -> None:
    seen = []
    for _ in range(4):
        await stage.press(key)
        seen.append(stage.app.palette.name)
    assert seen == ["light", "distinct", "ansi", "dark"]


@checks("palette")
async def _(stage: Stage, key: str) -> None:
    await stage.press(key, *"full size", "enter")
    assert stage.live.zoomed


@checks("processes")
async def _(stage: Stage, key: str) -> None:
    await stage.press(key, "down", "enter")
    assert "process 2 of 2" in stage.text


@checks("redraw")
async def _(stage: Stage, key: str) -> None:
    before = stage.text
    await stage.press(key)
    assert stage.text == before


@checks("back")
async def _(stage: Stage, key: str) -> None:
    await stage.press("0", "v", "tab", "z")
    stage.live.view.set_filter("exec")
    stage.live.view.search("probe-mem")
    await stage.settle()
    await stage.press(key)
    assert (stage.live.view.search_text, stage.live.view.filter_text) == ("", "exec"), "one at a time"
    await stage.press(key)
    assert stage.live.view.filter_text == ""
    assert stage.live.zoomed
    await stage.press(key)
    assert (stage.live.zoomed, stage.live.in_table) == (False, False)
    await stage.press(key)
    assert stage.live.view is stage.live.table
    await stage.press(key)
    assert stage.app.is_running
    assert "Ctrl-Q quits" in stage.text


@checks("next_pane")
async def _(stage: Stage, key: str) -> None:
    await stage.press(key)
    assert stage.live.view is not stage.live.table
    await stage.press(key)
    assert stage.live.view is stage.live.table


PAGES = {
    "1": "registers",
    "2": "no source line of this kernel is known",
    "3": "ptx",
    "4": "probed.ptx",
    "5": "SASS",
    "6": "needs a result",
    "7": "block_sched",
    "8": "launch",
    "9": "ptxas info",
}


@checks(*(f"page_{number}" for number in PAGES))
async def _(stage: Stage, key: str) -> None:
    """A digit shows the same page below the table and on the screen of a kernel; the table keeps the keys."""
    await stage.press(key)
    assert stage.live.in_table
    below = stage.live.current
    await stage.press("enter", key)
    assert kernel_screen(stage).current == ("summary" if key == "1" else below)
    assert DIGIT_PAGES[int(key) - 1] == kernel_screen(stage).current
    assert kernel_screen(stage).view.name == kernel_screen(stage).current


@checks("page_0")
async def _(stage: Stage, key: str) -> None:
    letters = {"o": "line 99", "e": "no output on stderr", "v": "[kernel]", "r": "64 blocks, cycles per slot: ",
               "g": "no NVIDIA driver", "n": "No NVTX range contains a launch",
               "h": "The program instantiated no CUDA graph", "a": "No probe of this trace measures lines"}  # fmt: skip
    for letter, text in letters.items():
        await stage.press(key)
        assert isinstance(stage.app.screen, LetterScreen)
        await stage.press(letter)
        assert text in stage.text
        assert stage.live.in_table
    await stage.press("1", "enter", key, "p")
    assert kernel_screen(stage).current == "probe"
    await stage.press(key, "escape")
    assert kernel_screen(stage).current == "probe"


@checks("previous_kernel", "next_kernel")
async def _(stage: Stage, key: str) -> None:
    stage.live.table.select(3)
    await stage.press("9", key)
    expected = 2 if key == "left_square_bracket" else 4
    assert stage.live.table.selected_index == expected
    assert stage.live.current == "process"


@checks("together")
async def _(stage: Stage, key: str) -> None:
    await stage.press(key)
    assert "press 0 n" in stage.text
    await stage.press("0", "n", "tab", key)
    assert stage.live.pages.ranges.merges_names
    await stage.press(key)
    assert not stage.live.pages.ranges.merges_names


@checks("previous_process", "next_process")
async def _(stage: Stage, key: str) -> None:
    assert "process 1 of 2" in stage.text
    await stage.press(key, "G")
    assert "process 2 of 2" in stage.text
    assert "only_in_the_second" in stage.text
    await stage.press(key)
    assert "process 1 of 2" in stage.text


@checks("record")
async def _(stage: Stage, key: str) -> None:
    assert stage.target is not None
    trace = stage.target.traces[0]
    await stage.press(key)
    assert "recording can be turned on or off after the first launch" in stage.text
    spool = trace.parent / f".run-{os.getpid()}"
    spool.mkdir()
    control = ControlPage.create(spool / "control", dict.fromkeys(BUDGETS, 100), shares=True, is_on=True)
    (trace / "run.json").write_text(json.dumps({"launcher": os.getpid()}))
    await stage.refresh()
    await stage.press(key)
    await stage.refresh()
    assert not control.is_on
    assert "not recording: press Ctrl-R to resume" in stage.text
    control["result_files.refused"] = 1
    await stage.press(key)
    await stage.refresh()
    assert control.is_on
    assert "budget reached: result files; raise with --max-result-files; kept 0 of 1 launch of " in stage.text


@checks("stuck")
async def _(stage: Stage, key: str) -> None:
    assert stage.target is not None
    trace = stage.target.traces[0]
    await stage.press(key)
    assert "press K to run the program again with --watchdog 10s" in stage.text
    with (trace / "event.log").open("a") as events:
        reason = "the run had no watchdog code not-watched"
        events.write(f"[stuck] launch 900 kernel 0 seconds 12.3 warps 0 left-out 0 reason {reason}\n")
    await stage.refresh()
    await stage.press(key)
    assert "launch 900 of " in stage.text
    assert "has run for over 12 s. End the program (Ctrl-C twice, t); then press K" in stage.text
    (trace / "run.json").write_text(json.dumps({"launcher": os.getpid(), "options": {"watchdog": 2.0}}))
    await stage.refresh()
    await stage.press(key)
    assert "launch 900 does not end: the run had no watchdog" in stage.text


@checks("pause")
async def _(stage: Stage, key: str) -> None:
    assert stage.target is not None
    before = len(stage.live.table.kernels.all_rows)
    await stage.press(key)
    example(Path(stage.target.stdout_path.parent) / "later")
    with (stage.target.traces[0] / "event.log").open("a") as events:
        events.write("[kernel] 90 skipped registers 1 local 0 shared 0 blocks 1 name late reason late\n")
    await stage.refresh()
    assert len(stage.live.table.kernels.all_rows) == before
    assert "display paused" in stage.text
    await stage.press(key)
    assert len(stage.live.table.kernels.all_rows) == before + 1
    assert "display paused" not in stage.text
    stage.target.status = 0
    await stage.refresh()
    await stage.press(key)
    assert "the run has ended, so the display does not change" in stage.text


@checks("zoom")
async def _(stage: Stage, key: str) -> None:
    await stage.press(key)
    assert "1 Sum" not in stage.text
    await stage.press("tab")
    assert "1 Sum" in stage.text
    assert " Kernels " not in stage.text
    await stage.press(key)
    assert "1 Sum" in stage.text
    assert " Kernels " in stage.text


@checks("search")
async def _(stage: Stage, key: str) -> None:
    await stage.press(key, *"softmax", "enter")
    assert stage.live.table.selected_index == 4
    await stage.press(key, "x", "escape")
    assert stage.live.table.search_text == "softmax"


@checks("next_match", "previous_match")
async def _(stage: Stage, key: str) -> None:
    stage.live.table.search("extra_1")
    assert stage.live.table.selected_index == 7
    await stage.press(key)
    assert stage.live.table.selected_index == (16 if key == "n" else 25)


@checks("filter")
async def _(stage: Stage, key: str) -> None:
    await stage.press(key, *"triton", "enter")
    assert [row.index for row in stage.live.table.shown_rows] == [2]
    await stage.press(key)
    assert "triton" in stage.text.splitlines()[-1]
    await stage.press("ctrl+u", "enter")
    assert len(stage.live.table.shown_rows) == 36


@checks("copy")
async def _(stage: Stage, key: str) -> None:
    await stage.press(key)
    assert stage.app.clipboard == "zero_fill(float*, int)\n_Z9zero_fillPfi"
    assert "copied" in stage.text
    copies = list(stage.target.stdout_path.parent.glob("cache/tui-probe/copied.txt")) if stage.target else []
    assert copies[0].read_text() == stage.app.clipboard


@checks("whole_names")
async def _(stage: Stage, key: str) -> None:
    await stage.press("down", key)
    assert isinstance(stage.app.screen, NameScreen)
    assert "at::native::vectorized_elementwise_kernel<4, " in " ".join(stage.text.split())
    await stage.press(key)
    assert stage.app.screen is stage.live


@checks("export")
async def _(stage: Stage, key: str) -> None:
    await stage.press("0", "o", "tab", key)
    (written,) = Path.cwd().glob("tui-probe-stdout-*.txt")
    assert len(written.read_text().splitlines()) == 100
    assert written.name in stage.text
    await stage.press("q", key)
    assert "Write as" in stage.text
    await stage.press("c")
    (written,) = Path.cwd().glob("tui-probe-kernels-*.csv")
    assert len(written.read_text().splitlines()) == 37


@checks("up", "down")
async def _(stage: Stage, key: str) -> None:
    stage.live.table.select(5)
    await stage.press(key)
    assert stage.live.table.selected_index == (4 if key in ("up", "k") else 6)


@checks("page_up", "page_down")
async def _(stage: Stage, key: str) -> None:
    stage.live.table.select(20)
    await stage.press(key)
    rows = stage.live.table.height - 2
    assert stage.live.table.selected_index == (20 - rows if key in ("pageup", "ctrl+b") else 20 + rows)


@checks("home", "end")
async def _(stage: Stage, key: str) -> None:
    stage.live.table.select(20)
    await stage.press(key)
    assert stage.live.table.selected_index == (0 if key in ("home", "g") else 35)


@checks("left", "right")
async def _(stage: Stage, key: str) -> None:
    await stage.press("0", "o", "tab", "right", "right")
    assert ". end" not in stage.text
    await stage.press(key)
    assert log(stage).left == (8 if key in ("left", "h") else 24)


@checks("open")
async def _(stage: Stage, key: str) -> None:
    stage.live.table.select(2)
    await stage.press(key)
    assert isinstance(stage.app.screen, KernelScreen)
    assert "triton_poi_fused" in stage.text.split("\n")[0]


def kernel_screen(stage: Stage) -> KernelScreen:
    assert isinstance(stage.app.screen, KernelScreen)
    return stage.app.screen


@checks("leave")
async def _(stage: Stage, key: str) -> None:
    await stage.press("enter", "1")
    kernel_screen(stage).view.search("registers")
    await stage.settle()
    await stage.press(key)
    assert isinstance(stage.app.screen, KernelScreen)
    await stage.press(key)
    assert stage.app.screen is stage.live


@checks("jump")
async def _(stage: Stage, key: str) -> None:
    await stage.press("enter")
    await kernel_screen(stage).run_action("page('fake')")
    await stage.settle()
    view = kernel_screen(stage).view
    assert isinstance(view, DrawingView)
    view.drawing.target_view = lambda: "launches"  # type: ignore[method-assign]
    view.drawing.ptx_line = lambda: 7  # type: ignore[method-assign]
    await stage.press(key)
    assert kernel_screen(stage).current == "launches"
    assert "this page has no data for PTX line 7" in stage.text
    await stage.press("q")
    assert kernel_screen(stage).view is view


@checks("next_page", "previous_page")
async def _(stage: Stage, key: str) -> None:
    forward = key == "greater_than_sign"
    await stage.press("4", key)
    assert stage.live.current == ("sass" if forward else "ptx")
    assert stage.live.in_table
    await stage.press("enter", "4", key)
    assert kernel_screen(stage).current == ("timeline" if forward else "summary"), "empty pages are left out"


@checks("one_pane")
async def _(stage: Stage, key: str) -> None:
    await stage.press("enter", key)
    assert "this screen has one panel; press > for the next page" in stage.text
    assert kernel_screen(stage).current == "summary"


@checks("previous_launch", "next_launch")
async def _(stage: Stage, key: str) -> None:
    await stage.press("enter")
    await stage.press("left_curly_bracket", "left_curly_bracket", key)
    wanted = "launch 0 (" if key == "left_curly_bracket" else "launch 2 ("
    assert wanted in stage.text.split("\n")[0]
    await stage.press("q", key)
    assert ("no earlier launch has a result" if key == "left_curly_bracket" else "launch 3 (") in stage.text


@checks("probe")
async def _(stage: Stage, key: str) -> None:
    await stage.press(key)
    assert (stage.live.current, stage.live.in_table) == ("probe", True)
    assert "block_sched/probe.toml; the trace has no copy" in stage.text
    await stage.press("1", "enter", key)
    assert kernel_screen(stage).current == "probe"
    assert "block_sched/probe.toml; the trace has no copy" in stage.text
    await stage.press("q")
    assert kernel_screen(stage).current == "summary"


@checks("again")
async def _(stage: Stage, key: str) -> None:
    await stage.press(key)
    assert "the program is still running" in stage.text
    await stage.press("enter", key)
    assert "the program is still running" in stage.text


@pytest.mark.parametrize("key", ["q", "escape"])
async def test_screens_opened_from_home_return_to_it(trace: TraceWriter, key: str) -> None:
    async with on_stage(Session(traces=(trace.directory,), from_home=True)) as stage:
        await stage.press("0", "v", "tab", key)
        assert stage.live.in_table
        assert "Ctrl-Q home" in stage.text
        await stage.pilot.press(key)
        await stage.until(lambda: not stage.app.is_running, "it is not left")


async def test_a_target_that_runs_is_not_left_for_home_unasked(target: FakeTarget) -> None:
    async with on_stage(Session(target=target, from_home=True)) as stage:
        await stage.press("q")
        assert "Still running" in stage.text


@checks("next_found")
async def _(stage: Stage, key: str) -> None:
    await stage.settle()
    await stage.press(key)
    assert "no kernel in the table is flagged" in stage.text


@checks("worst")
async def _(stage: Stage, key: str) -> None:
    await stage.press("enter")
    await kernel_screen(stage).run_action("page('fake')")
    await stage.settle()
    view = kernel_screen(stage).view
    await stage.press(key)
    assert isinstance(view, DrawingView)
    assert isinstance(view.drawing, FakeDrawing)
    assert view.drawing.pressed == ["worst"]
    assert "pressed worst" in stage.text


COMMANDS_OF_KEYS = {key.id: keys.command_of(key) for key in keys.in_scope("drawing")}


@checks(*COMMANDS_OF_KEYS)
async def _(stage: Stage, key: str) -> None:
    await stage.press("enter")
    await kernel_screen(stage).run_action("page('fake')")
    await stage.settle()
    view = kernel_screen(stage).view
    assert isinstance(view, DrawingView)
    await stage.press(key)
    assert isinstance(view.drawing, FakeDrawing)
    row = next(row for row in keys.in_scope("drawing") if key in row.keys)
    assert view.drawing.pressed == [keys.command_of(row)]
    assert f"pressed {keys.command_of(row)}" in stage.text


@checks("sort")
async def _(stage: Stage, key: str) -> None:
    await stage.press(key)
    assert isinstance(stage.app.screen, LetterScreen)
    await stage.press("k")
    assert "sorted by kernel" in stage.text
    await stage.press(key, "k")
    assert "sorted by kernel, reversed" in stage.text, "the same column again"
    await stage.press(key, "k")
    assert "kernel ↑" in " ".join(stage.text.split()) or "kernel↑" in stage.text.replace(" ", "")
    await stage.press(key, "escape", "right")
    assert "sorted by status" in stage.text


@checks("reverse")
async def _(stage: Stage, key: str) -> None:
    await stage.press(key)
    assert stage.live.table.shown_rows[0].index == 35


@checks("status")
async def _(stage: Stage, key: str) -> None:
    await stage.press(key)
    assert {row.status for row in stage.live.table.shown_rows} == {"probed"}
    assert "only probed" in stage.text


@checks("follow")
async def _(stage: Stage, key: str) -> None:
    await stage.press("0", "o", "tab")
    assert log(stage).follow
    await stage.press(key)
    assert not log(stage).follow


@checks("tags")
async def _(stage: Stage, key: str) -> None:
    await stage.press("0", "v", "tab", key)
    assert isinstance(stage.app.screen, TagScreen)
    assert "[benchmark]" in stage.text
    await stage.press("space", "enter")
    assert log(stage).wanted.tags == {"[benchmark]"}
    assert "only [benchmark]" in stage.text


@pytest.mark.parametrize("sign", string.punctuation)
def test_a_sign_is_named_by_itself(sign: str) -> None:
    name = _character_to_key(sign)
    assert (keys.key_sign(name), keys.key_name(sign)) == (sign, name)
    assert (keys.key_sign(f"ctrl+{name}"), keys.key_name(f"Ctrl-{sign}")) == (
        f"Ctrl-{sign}",
        f"ctrl+{name}",
    ) or sign in "+-"


@pytest.mark.parametrize(
    ("key", "written"),
    [("ctrl+c", "Ctrl-C"), ("shift+tab", "Shift-Tab"), ("ctrl+left", "Ctrl-←"), ("f5", "F5"), ("delete", "Delete"),
     ("alt+x", "Alt-X"), ("ctrl+shift+x", "Ctrl-Shift-X"), ("A", "A"), ("space", "Space")],
)  # fmt: skip
def test_keys_are_written_as_they_are_read(key: str, written: str) -> None:
    assert (keys.key_sign(key), keys.key_name(written)) == (written, key)


@pytest.mark.parametrize(("key", "sign"), [("percent_sign", "%"), ("asterisk", "*"), ("semicolon", ";")])
async def test_unbound_key_is_reported_by_its_sign(busy: FakeTarget, key: str, sign: str) -> None:
    async with on_stage(Session(target=busy)) as stage:
        await stage.press(key)
        assert f" {sign} does nothing here; press ? for the keys" in stage.text


async def test_keys_act_in_the_pane_that_has_them_and_say_where_they_would(busy: FakeTarget) -> None:
    async with on_stage(Session(target=busy), (110, 32)) as stage:
        shown = stage.live.table.shown_rows
        await stage.press("9", "tab")
        for key, words in (
            ("s", "no columns to sort by"),
            ("r", "works in the table; press Tab"),
            ("v", "works in the table"),
        ):
            await stage.press(key)
            assert words in stage.text
        assert (stage.live.table.shown_rows, stage.live.in_table) == (shown, False)
        await stage.press("enter")
        assert "then Enter to open a kernel" in stage.text
        await stage.press("1", "f")
        assert "the key f works in a log" in stage.text
        await stage.press("t")
        assert "the key t works on the page event.log" in stage.text


async def test_frames_show_which_pane_has_the_keys(busy: FakeTarget) -> None:
    async with on_stage(Session(target=busy), (110, 32)) as stage:

        def corners() -> str:
            return "".join(line[0] for line in stage.text.split("\n") if line[:1] in set("╭┏╰┗"))

        assert corners() == "┏┗╭╰", "heavy lines around the table"
        await stage.press("tab")
        assert corners() == "╭╰┏┗", "heavy lines around the page"
        await stage.press("9")
        assert corners() == "╭╰┏┗", "a digit moves no keys"
        await stage.press("q")
        assert corners() == "┏┗╭╰"


async def test_search_and_filter_act_in_the_pane_that_has_the_keys(busy: FakeTarget) -> None:
    async with on_stage(Session(target=busy), (110, 32)) as stage:
        await stage.press("0", "v", "tab", "ampersand", *"mem", "enter")
        assert (stage.live.view.filter_text, stage.live.table.filter_text) == ("mem", "")
        await stage.press("tab", "ampersand", *"row", "enter")
        assert stage.live.table.filter_text == "row"
        assert stage.live.pages.current_view.filter_text == "mem"
