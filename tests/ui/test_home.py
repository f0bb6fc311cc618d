"""The home screen: what it shows, what its keys do, and what it is left with."""

from __future__ import annotations

import argparse
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.pages.before_after import write_pair
from tests.ui.conftest import Stage, golden_sizes, no_gpu
from tui_probe.cli.home import form_of_demo, open_path, options_of, unquoted_path
from tui_probe.cli.main import main
from tui_probe.probe_files import DEFAULT_PROBE
from tui_probe.probe_files.catalogue import known_choices, known_probes
from tui_probe.trace.recent import TraceSummary
from tui_probe.ui import Appearance, keys
from tui_probe.ui.app import ProbeApp
from tui_probe.ui.layout import MIN_SIZE
from tui_probe.ui.screens.compare import CompareRunsScreen
from tui_probe.ui.screens.further_pages import LetterScreen
from tui_probe.ui.screens.home import HomeScreen, heights
from tui_probe.ui.screens.lists import PickerScreen
from tui_probe.ui.session import HomeSources, OpenPath, OpenTrace, Session, StartDemo, StartForm, StartProgram
from tui_probe.ui.views import recent
from tui_probe.verdicts.run_verdict import RunVerdict

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Sequence

    Check = Callable[[Stage, str], Awaitable[None]]

NOW = 1_700_000_000.0
CHECKS: dict[str, Check] = {}


@dataclass(frozen=True)
class CheckResult:
    name: str
    state: str
    found: str
    advice: str = ""


@dataclass(frozen=True)
class Probe:
    name: str
    title: str
    measures: str
    cost: str


PROBES = (
    Probe("block_sched", "block scheduling", "start clock, cycles and SM of each warp.", "one 16-byte store per warp"),
    Probe("dmat", "memory accesses over time", "address and clock of each access.", "one 16-byte record per access"),
)
FINDINGS = (
    CheckResult("ptxas", "ok", "13.0.88, /usr/local/cuda/bin/ptxas"),
    CheckResult("driver", "missing", "no libcuda.so.1 on this machine", "install the NVIDIA driver"),
    CheckResult("hook", "ok", "replaces libcuda.so.1"),
    CheckResult("ncu", "optional", "not found", "only for comparing with Nsight Compute"),
    CheckResult("terminal", "warn", "vt100, 60×16, 0 colours", "enlarge the terminal to at least 80×24"),
)
TRACES = (
    TraceSummary(
        Path("/traces/Nov21_101012_30"), NOW - 2, "python train.py --steps 10", "dmat", "NVIDIA H200", 12, True, True
    ),
    TraceSummary(
        Path("/traces/Nov21_101011_20"), NOW - 300, "./matmul", "block_sched", "simulated GPU", 1, True, False, 0
    ),
    TraceSummary(Path("/traces/Nov20_101010_10"), NOW - 90_000, "./broken", None, None, 3, False, False, 3),
    TraceSummary(
        Path("/traces/Oct01_101010_5"), NOW - 4_000_000, "./killed", "dmat", "NVIDIA H200", 2, True, False, -9
    ),
)


AGAIN = (
    TraceSummary(Path("/traces/Nov20_111111_9"), NOW - 86_400, "./matmul", "dmat", "simulated GPU", 1, True, False, 0),
    TraceSummary(Path("/traces/Nov19_111111_8"), NOW - 180_000, "./matmul", "dmat", "simulated GPU", 2, True, False, 1),
)
"""Older runs of a command."""
VERDICTS = {
    "Nov21_101011_20": RunVerdict("matmul", "memory (L2) 83%", "memory (L2)", 0.62, 0.81),
    "Nov20_111111_9": RunVerdict("matmul", "latency", "latency", 0.7, 1.2),
    "Oct01_101010_5": RunVerdict("scatter", "! 8.0 sectors per request, ideal 1"),
}


def home_of(traces: Sequence[TraceSummary] = TRACES, findings: Sequence[CheckResult] = FINDINGS) -> HomeSources:
    def verdict(trace: Path) -> RunVerdict:
        return VERDICTS.get(trace.name, RunVerdict())

    return HomeSources(lambda: traces, verdict, lambda: findings, lambda: PROBES, StartForm(probe=PROBES[0].name))


@asynccontextmanager
async def at_home(
    home: HomeSources, size: tuple[int, int] = (100, 30), appearance: Appearance | None = None
) -> AsyncIterator[Stage]:
    app = ProbeApp(Session(home=home), appearance, gpu=no_gpu())
    async with app.run_test(size=size) as pilot:
        stage = Stage(app, pilot, None)
        await stage.settle()
        await verdicts_read(stage)
        yield stage


async def verdicts_read(stage: Stage) -> None:
    await stage.until(lambda: screen(stage).recent.unread is None, "not all that is visible was read")


@pytest.fixture(autouse=True)
def _one_time_and_version(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tui_probe.ui.views.recent.time.time", lambda: NOW)
    monkeypatch.setattr("tui_probe.ui.screens.home.__version__", "1.0.0")


def screen(stage: Stage) -> HomeScreen:
    assert isinstance(stage.app.screen, HomeScreen)
    return stage.app.screen


@pytest.mark.parametrize("ascii_only", [False, True], ids=["unicode", "ascii"])
async def test_home_golden(ascii_only: bool) -> None:
    async with at_home(home_of(), (120, 40), Appearance(ascii_only=ascii_only)) as stage:
        assert stage.text.isascii() == ascii_only
        await golden_sizes("home", stage)


async def test_older_runs_as_text() -> None:
    async with at_home(home_of([*TRACES, *AGAIN]), (120, 40)) as stage:
        await stage.press("down", "c")
        await verdicts_read(stage)
        await golden_sizes("home-older-runs", stage)


# -- keys


def checks(*names: str) -> Callable[[Check], Check]:
    def register(check: Check) -> Check:
        CHECKS.update(dict.fromkeys(names, check))
        return check

    return register


@checks("enter")
async def _(stage: Stage, key: str) -> None:
    home = screen(stage).home
    await stage.press("down")
    await stage.pilot.press(key)
    assert home.choice == OpenTrace(TRACES[1].directory)
    assert not stage.app.is_running


@checks("section")
async def _(stage: Stage, key: str) -> None:
    seen = [screen(stage).current]
    for _ in range(3):
        await stage.press(key)
        seen.append(screen(stage).current)
    assert seen == ["recent", "form", "machine", "recent"]


@checks("section_back")
async def _(stage: Stage, key: str) -> None:
    await stage.press(key)
    assert screen(stage).current == "machine"


@checks("start")
async def _(stage: Stage, key: str) -> None:
    home = screen(stage).home
    await stage.press(key)
    assert home.choice is None
    assert "type the command line of a program" in stage.text
    await stage.press(*"./a.out")
    await stage.pilot.press(key)
    assert home.choice == StartProgram()
    assert home.form.command == "./a.out"


@checks("older_runs")
async def _(stage: Stage, key: str) -> None:
    await stage.press(key)
    assert "this command has no older runs" in stage.text
    home = screen(stage)
    home.recent.show([*TRACES, *AGAIN])
    await stage.press("down", key, "down", "down")
    assert home.recent.trace == AGAIN[1]
    await stage.press(key)
    assert home.recent.trace == TRACES[1]
    await stage.press("right", "down", "left")
    assert home.recent.trace == TRACES[1]
    await stage.press("tab", "down", "down", "down", "down", "down")
    home.enter("machine")
    await stage.press(key)
    assert "the key works in the list of traces" in stage.text


@checks("compare_runs")
async def _(stage: Stage, key: str) -> None:
    await stage.press(key)
    assert "no previous run of this command; to compare two kernels, press C on both" in stage.text
    home = screen(stage)
    home.recent.show([*TRACES, *AGAIN])
    await stage.press("down", key)
    assert isinstance(stage.app.screen, CompareRunsScreen)
    assert (stage.app.screen.baseline, stage.app.screen.candidate) == (AGAIN[0].directory, TRACES[1].directory)
    await stage.press("q")
    assert stage.app.screen is home
    home.enter("machine")
    await stage.press(key)
    assert "the key works in the list of traces" in stage.text
    home.recent.show([])
    home.enter("recent")
    await stage.press(key)
    assert "there is no trace to compare" in stage.text


@checks("sort_traces")
async def _(stage: Stage, key: str) -> None:
    home = screen(stage)
    home.recent.show([*TRACES, *AGAIN])
    await stage.press(key)
    assert isinstance(stage.app.screen, LetterScreen)
    (letter,) = (item.letter for item in stage.app.screen.list.items if item.label == "command")
    await stage.press(letter)
    assert "command ↑" in stage.text
    rows = [line for line in stage.text.splitlines() if " ago " in line]
    order = ("./broken", "./killed", "▶3 ./matmul", "python train.py")
    assert all(command in row for command, row in zip(order, rows, strict=True)), rows
    await stage.press(key, "enter", "home", "down", "c")
    assert "command ↓" in stage.text, "the same column again"
    rows = [line for line in stage.text.splitlines() if " ago " in line]
    assert "▼3 ./matmul" in rows[1]
    assert "└ Nov19_111111_8" in rows[3], "runs of a command stay together, the newest first"
    await stage.press("tab", key)
    assert home.form.form.command == "s", "the form takes the letter"


@checks("leave_home")
async def _(stage: Stage, key: str) -> None:
    screen(stage).recent.set_filter("matmul")
    await stage.press(key)
    assert screen(stage).recent.filter_text == ""
    await stage.press("shift+tab", key)
    assert screen(stage).current == "recent"
    await stage.pilot.press(key)
    assert not stage.app.is_running


def test_every_key_of_the_home_screen_has_a_check() -> None:
    assert set(CHECKS) == {key.id for key in keys.in_scope("home")}


@pytest.mark.parametrize(
    ("row", "name"),
    [(key, name) for key in keys.in_scope("home") for name in key.keys],
    ids=lambda value: getattr(value, "id", value),
)
async def test_a_key_does_what_its_row_says(row: keys.Key, name: str) -> None:
    async with at_home(home_of()) as stage:
        await CHECKS[row.id](stage, name)


async def test_a_run_is_compared_with_the_one_before_it(tmp_path: Path) -> None:
    before, after = write_pair(tmp_path)
    runs = [TraceSummary(trace, when, "./train") for trace, when in ((after, NOW - 5), (before, NOW - 50))]
    async with at_home(home_of(runs), (120, 40)) as stage:
        await stage.press("colon", *"compare the run", "enter")
        lines = stage.inside.split("\n")
        assert "; 6 kernels in both in 8 shapes: 1 better, 1 worse, 2" in lines[2]
        assert any(line.startswith(" A  ") and line.rstrip().endswith("before") for line in lines)
        await stage.press("q")
        assert "compare" in stage.inside.split("\n")[-1]


async def test_the_program_of_a_trace_is_run_again(tmp_path: Path) -> None:
    _, after = write_pair(tmp_path)
    async with at_home(home_of([TraceSummary(after, NOW - 5, "./train")]), (120, 40)) as stage:
        await stage.press("R")
        assert "Run again" in stage.text or "tui-probe run" in stage.text
        await stage.press("escape", "tab", "tab", "R")
        assert "select a run in the list of traces" in stage.text


# -- the form


async def test_the_form_is_filled_in_and_shows_the_command_line() -> None:
    home = home_of()
    async with at_home(home, (120, 40)) as stage:
        await stage.press("tab", *"python q.py", "left", "left", "left", *"?", "enter")
        assert home.form.command == "python q?.py"
        await stage.press("right", "down", *"a:b", "enter", *"c", "enter", *"0-9")
        assert (home.form.probe, home.form.kernels, home.form.excluded) == ("dmat", "a:b", "c")
        assert home.form.simulated is True  # no driver was found
        await stage.press("down", "right", "down", "right")
        assert (home.form.simulated, home.form.benchmark) == (False, True)
        assert "the GPU (not found on this machine)" in stage.text
        line = "tui-probe run -p dmat -k a:b --exclude c --launches 0-9 --benchmark -- python q?.py"
        assert line in stage.text
        await stage.press("down")
        await stage.pilot.press("enter")
    assert home.choice == StartProgram()


async def test_a_probe_is_chosen_from_a_list_with_its_cost() -> None:
    home = home_of()
    async with at_home(home) as stage:
        await stage.press("tab", "down", "enter")
        assert isinstance(stage.app.screen, PickerScreen)
        assert "Cost: one 16-byte store per warp" in stage.text
        await stage.press(*"which warps access")
        assert "▌dmat" in stage.text  # by its question
        await stage.press("ctrl+u")
        await stage.press("down")
        assert "Cost: one 16-byte record per access" in stage.text
        await stage.press("enter")
        assert home.form.probe == "dmat"


@pytest.mark.parametrize("word", ["strided", "coalesced"])
async def test_a_question_chooses_the_probe_of_the_form(word: str) -> None:
    home = home_of()
    async with at_home(home, (120, 40)) as stage:
        await stage.press("colon", *f"ask {word}", "enter")
        assert home.form.probe.startswith("gmem_sectors")
        assert screen(stage).current == "form"
        assert f"-p {home.form.probe} is selected" in stage.text


async def test_a_long_command_line_stays_in_sight_where_the_cursor_is() -> None:
    home = home_of()
    home.form.command = "x" * 200
    async with at_home(home, (80, 24)) as stage:
        await stage.press("tab", "end", *"here")
        assert "xhere" in stage.text
        await stage.press("home", *"start")
        assert "startx" in stage.text


async def test_paths_of_the_command_are_completed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "train folder").mkdir()
    (tmp_path / "train folder" / "first.py").touch()
    (tmp_path / "train folder" / "fill.py").touch()
    home = home_of()
    async with at_home(home, (120, 40)) as stage:
        await stage.press("tab", *"python tr")
        assert "python train\\ folder/   → accepts" in stage.text
        await stage.press("right")
        assert home.form.command == "python train\\ folder/"
        assert "fill.py  first.py" in stage.text
        await stage.press("f")
        assert "→ accepts" in stage.text, "both continue with an i"
        await stage.press("end", "r", "right")
        assert home.form.command == "python train\\ folder/first.py"
        await stage.press("home", "right")
        assert home.form.command == "python train\\ folder/first.py"
        await stage.press("end", *" --x '")
        assert "takes it" not in stage.text


async def test_paste_goes_into_the_field() -> None:
    from textual import events

    home = home_of()
    async with at_home(home) as stage:
        await stage.press("tab")
        screen(stage).post_message(events.Paste("python train.py\nignored"))
        await stage.settle()
        assert home.form.command == "python train.py"


async def test_a_click_goes_to_a_section() -> None:
    async with at_home(home_of()) as stage:
        await stage.pilot.click("#form", offset=(5, 3))
        await stage.settle()
        assert (screen(stage).current, screen(stage).form.field) == ("form", "kernels")
        await stage.pilot.click("#recent", offset=(5, 3))
        await stage.settle()
        assert (screen(stage).current, screen(stage).recent.trace) == ("recent", TRACES[2])


async def test_runs_of_one_command_are_folded_and_say_what_changed() -> None:
    async with at_home(home_of([*TRACES, *AGAIN]), (200, 50)) as stage:
        assert "▶3 ./matmul" in stage.text
        assert AGAIN[0].directory.name not in stage.text
        assert "memory (L2) 83%, matmul" in stage.text
        await stage.press("down")
        change = "matmul 1.20 ms → 810 µs (-32.5%); limiter latency → memory (L2); probe dmat → block_sched"
        assert f"compared with the previous run: {change}" in stage.text
        assert "3 runs of this command" in stage.text
        assert "matmul, 62% of the time: memory (L2) 83%" in stage.text
        await stage.press("c", "down")
        assert "└ Nov20_111111_9" in stage.text
        assert "compared with the previous run: exit 1 → exit 0; kernels 2 → 1" in stage.text


async def test_the_page_of_keys_says_how_to_read_the_list() -> None:
    async with at_home(home_of(), (120, 40)) as stage:
        await stage.press("question_mark")
        assert "the changes since the previous run of the same command" in " ".join(stage.text.split())


async def test_verdicts_are_read_of_ended_runs_that_are_visible() -> None:
    asked: list[str] = []
    many = [
        TraceSummary(Path(f"/traces/{number}"), NOW - number, f"./run{number}", "dmat", None, 1, True, number == 0, 0)
        for number in range(300)
    ]
    home = home_of(many)
    home.verdict = lambda trace: (asked.append(trace.name), RunVerdict())[1]
    async with at_home(home, (120, 40)) as stage:
        assert asked == [str(number) for number in range(1, len(asked) + 1)]
        assert len(asked) < 40
        await stage.press("end")
        await verdicts_read(stage)
        assert "299" in asked
        assert len(asked) < 80


async def test_the_list_is_filtered() -> None:
    async with at_home(home_of()) as stage:
        await stage.press("ampersand", *"train", "enter")
        assert "./matmul" not in stage.text
        assert "1 of 1" in stage.text
        await stage.press("ampersand", *"zzz", "enter")
        assert "no trace contains" in stage.text


async def test_search_filters_the_list_while_typing() -> None:
    async with at_home(home_of()) as stage:
        await stage.press("slash", *"train")
        assert "./matmul" not in stage.text
        await stage.press("escape")
        assert "./matmul" in stage.text


async def test_without_traces_the_form_has_the_keys() -> None:
    async with at_home(home_of(traces=())) as stage:
        assert "no traces yet" in stage.text
        assert screen(stage).current == "form"


async def test_without_traces_enter_on_the_empty_list_runs_the_example() -> None:
    home = home_of(traces=())
    async with at_home(home) as stage:
        assert "Esc, then Enter" in stage.text
        await stage.press("escape")
        assert "Enter to run the demo" in stage.text
        await stage.pilot.press("enter")
    assert home.choice == StartDemo()


async def test_the_palette_runs_the_example() -> None:
    home = home_of()
    async with at_home(home) as stage:
        await stage.press("colon", *"demo")
        await stage.pilot.press("enter")
        await stage.until(lambda: home.choice == StartDemo(), "it was not chosen")


async def test_a_path_is_opened_from_the_palette(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "some trace").mkdir()
    (tmp_path / "some file.csv").touch()
    monkeypatch.chdir(tmp_path)
    home = home_of()
    async with at_home(home, (120, 40)) as stage:
        await stage.press("colon", *"open path", "enter")
        assert "open:" in stage.text
        await stage.press(*"so")
        assert "open: some\\   → accepts" not in stage.text
        assert "→ accepts" in stage.text
        await stage.press("tab", *"t", "tab")
        assert "open: some\\ trace/" in stage.text
        await stage.pilot.press("enter")
        await stage.until(lambda: home.choice is not None, "nothing is opened")
    assert home.choice == OpenPath("some\\ trace/")
    assert unquoted_path("some\\ trace/") == "some trace/"


async def test_unopenable_path_is_reported_at_the_list(tmp_path: Path) -> None:
    home = home_of()
    arguments = argparse.Namespace(no_ui=False)
    assert open_path(arguments, home, str(tmp_path / "nothing")) == 0
    home.choice = OpenPath(str(tmp_path / "nothing"))
    async with at_home(home, (200, 30)) as stage:
        assert "does not exist" in stage.text
        assert screen(stage).current == "recent"


def test_the_form_of_the_example_has_the_probe_and_the_gpu_of_the_form() -> None:
    options = options_of(form_of_demo(StartForm("ignored", probe="dmat", simulated=True, kernels="a")))
    assert options.command[1].endswith("demo.py")
    assert (options.probes, options.simulated, options.kernels) == (("dmat",), True, None)


@pytest.mark.parametrize("command", ["tui-probe demo", "/usr/bin/tui-probe demo", "python3.12 -m tui_probe demo"])
def test_a_command_that_is_tui_probe_itself_is_refused(command: str) -> None:
    with pytest.raises(ValueError, match=r"does not profile itself; run the demo from a shell"):
        options_of(StartForm(command))
    with pytest.raises(SystemExit):
        main(["run", "--", *command.split()])


def test_command_with_prefix_tui_probe_is_run() -> None:
    for command in ("tui-probe-example", "python -m tui_probe.simgpu.examples.demo", "python tui-probe"):
        assert options_of(StartForm(command, simulated=True)).command == tuple(command.split())
    with pytest.raises(ValueError, match="pass the program without"):
        options_of(StartForm("tui-probe run -- ./a.out"))


async def test_a_run_that_could_not_start_says_why() -> None:
    home = home_of()
    home.notice = "a.out: no such command"
    async with at_home(home) as stage:
        assert "a.out: no such command" in stage.text
        assert screen(stage).current == "form"


async def test_advice_that_was_cut_is_whole_where_the_keys_are() -> None:
    long = CheckResult("hook", "missing", "not built " * 9, "build it " * 9 + "so")
    async with at_home(home_of(findings=(long, *FINDINGS)), (80, 24)) as stage:
        assert "build it so" not in stage.text
        await stage.press("shift+tab")
        assert "build it so" in " ".join(stage.text.split())


async def test_problems_come_first() -> None:
    async with at_home(home_of()) as stage:
        lines = [line for line in stage.inside.split("\n") if line[1:2] in "✘!○✔" and line[1:2]]
        assert [line.split()[1] for line in lines] == ["driver", "terminal", "ncu", "ptxas", "hook"]


@pytest.mark.parametrize("size", [MIN_SIZE, (60, 20), (300, 100)], ids=str)
async def test_home_fits_terminal(size: tuple[int, int]) -> None:
    async with at_home(home_of(), size) as stage:
        for _ in range(3):
            assert all(len(line) <= size[0] for line in stage.text.split("\n"))
            assert "Recent traces" in stage.text
            assert "This machine" in stage.text
            await stage.press("tab")
        await stage.resize(40, 10)
        assert "40×10 is too small" in stage.text


@pytest.mark.parametrize("current", ["recent", "form", "machine"])
def test_sections_fill_the_terminal(current: str) -> None:
    for rows in range(MIN_SIZE[1], 100):
        assert sum(heights(rows, current, 16).values()) == rows - 6
        assert heights(rows, current, 16)[current] > 0


async def test_keys_of_a_target_say_that_there_is_none() -> None:
    async with at_home(home_of()) as stage:
        await stage.press("ctrl+c")
        assert "no program is running here" in stage.text
        await stage.press("colon", *"next panel", "enter")
        assert screen(stage).current == "form"


@pytest.mark.parametrize(
    ("ago", "words"),
    [(0, "now"), (59, "59 s ago"), (61, "1 min ago"), (7200, "2 h ago"), (200_000, "2 d ago"), (1e8, "2020-09-13")],
)
def test_how_long_ago(ago: float, words: str) -> None:
    assert recent.age_text(NOW - ago, NOW) == words


def test_form_begins_with_the_survey() -> None:
    survey = known_choices()[0]
    assert survey.name == StartForm().probe == DEFAULT_PROBE
    assert survey.title
    assert survey.cost


def test_known_probes_are_what_the_form_expects() -> None:
    probe = known_probes()[0]
    assert all(isinstance(word, str) for word in (probe.name, probe.title, probe.measures, probe.cost))


async def test_export_of_no_traces_says_what_to_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder := tmp_path / "empty").mkdir()
    monkeypatch.chdir(folder)
    async with at_home(home_of(())) as stage:
        await stage.press("escape", "e")
        assert "no trace to export; press Enter to run the demo" in stage.text
        assert not list(folder.iterdir())
