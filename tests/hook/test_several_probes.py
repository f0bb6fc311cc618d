"""Several probes in one run: each in a copy of the kernel of its own, taking turns over its launches."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tui_probe.launcher.control import BUDGETS, NO_LIMIT, ControlPage

from .conftest import Engine, Host, Run

NAMES = "one:two:three"
LAUNCHES = """
context()
f = function(module(), "add__8_4")
w, n = word(5), c_int(3)
for i in range(7):
    launch(f, w, n, grid=4, block=40)
print(read(w))
"""
REFUSED = "skipped\t<id>\tno PTX in image code no-ptx"


@pytest.fixture
def serving(host: Host) -> Engine:
    assert host.engine
    return host.engine


def answering(engine: Engine, *, sampled: str = "", refused: str = "") -> None:
    """The engine of a run with three probes: those ``sampled`` measure a sample, those ``refused`` refuse kernels."""

    def answer(directory: Path, name: str) -> str:
        choices = []
        for probe in NAMES.split(":"):
            if probe in refused.split(":"):
                choices.append(REFUSED)
                continue
            engine.sampled = probe in sampled.split(":")
            (directory / probe).mkdir()
            engine.write_probed(directory / probe, name)
            choices.append("ok\t<id>\tprobed.bin")
        return "\n".join(choices)

    engine.answer = answer


def saved(run: Run) -> list[str]:
    """The probes of the results, by launch."""
    matches = (re.search(r"launch (\d+) probe (\S+)$", line) for line in run.lines(r"\[exec\] save "))
    by_launch = {int(match[1]): match[2] for match in matches if match}
    return [by_launch.get(number, "-") for number in range(max(by_launch, default=-1) + 1)]


def probings(run: Run) -> list[tuple[str, str, str]]:
    """(probe, status, reason) of each probe in the kernel."""
    pattern = re.compile(r"\[probing\] 0 (\w+) .* probe (\S+) reason (.*)")
    return [(match[2], match[1], match[3]) for line in run.log if (match := pattern.fullmatch(line))]


def test_probed_launches_take_turns(host: Host, serving: Engine) -> None:
    answering(serving)
    run = host.python(LAUNCHES, TUI_PROBE_PROBES=NAMES)
    assert (run.status, run.stdout, run.stderr) == (0, "12\n", "")
    assert saved(run) == ["one", "two", "three", "one", "two", "three", "one"]
    assert probings(run) == [(name, "probed", "-") for name in NAMES.split(":")]
    assert run.outcomes() == [("probed", "add__8_4", "-")]
    assert not [line for line in run.calls if "DIRTY" in line]


ALTERNATING = """
context()
f = function(module(), "add__8_4")
w, n = word(5), c_int(3)
for i in range(12):
    launch(f, w, n, grid=4 + i % 3, block=40)
print(read(w))
"""


def test_shapes_that_alternate_have_all_probes(host: Host, serving: Engine) -> None:
    """Three shapes alternately, and three probes: each shape must not always meet the same one."""
    answering(serving)
    probes = saved(host.python(ALTERNATING, TUI_PROBE_PROBES=NAMES))
    for shape in range(3):
        assert set(probes[shape::3]) == set(NAMES.split(":"))


@pytest.mark.parametrize(("only", "expected"), [(2, ["two"] * 7), (9, ["one", "two", "three"] * 2 + ["one"])])
def test_one_of_them_can_be_chosen(host: Host, serving: Engine, tmp_path: Path, only: int, expected: list[str]) -> None:
    answering(serving)
    page = ControlPage.create(tmp_path / "control", dict.fromkeys(BUDGETS, NO_LIMIT), shares=False, is_on=True)
    page["only_probe"] = only
    run = host.python(LAUNCHES, TUI_PROBE_PROBES=NAMES, TUI_PROBE_CONTROL=str(page.path))
    assert saved(run) == expected


def test_one_probe_has_no_folder_and_no_name(host: Host) -> None:
    run = host.python(LAUNCHES, TUI_PROBE_PROBES="one")
    assert len(run.results) == 7
    assert not [line for line in run.log if "probe one" in line or line.startswith("[probing]")]


def test_launches_that_are_not_chosen_take_no_turn(host: Host, serving: Engine) -> None:
    answering(serving)
    run = host.python(LAUNCHES, TUI_PROBE_PROBES=NAMES, TUI_PROBE_LAUNCHES="1,3,6")
    assert saved(run) == ["-", "one", "-", "two", "-", "-", "three"]


@pytest.mark.parametrize("refused", ["one", "two", "one:three"])
def test_a_kernel_that_one_probe_refuses_has_the_others(host: Host, serving: Engine, refused: str) -> None:
    answering(serving, refused=refused)
    run = host.python(LAUNCHES, TUI_PROBE_PROBES=NAMES)
    assert run.stdout == "12\n"
    assert run.outcomes() == [("probed", "add__8_4", "-")]
    left = [name for name in NAMES.split(":") if name not in refused.split(":")]
    assert set(saved(run)) == set(left)
    assert len(saved(run)) == 7
    outcomes = {True: ("probed", "-"), False: ("skipped", "no PTX in image")}
    assert probings(run) == [(name, *outcomes[name in left]) for name in NAMES.split(":")]


def test_a_kernel_that_all_refuse_is_passed_through(host: Host, serving: Engine) -> None:
    answering(serving, refused=NAMES)
    run = host.python(LAUNCHES, TUI_PROBE_PROBES=NAMES)
    assert run.stdout == "12\n"
    assert run.outcomes() == [("skipped", "add__8_4", "no PTX in image")]
    assert len(run.lines(r"\[exec\] backup .* reason no PTX in image")) == 7


def test_each_probe_has_its_own_sample_of_blocks(host: Host, serving: Engine) -> None:
    answering(serving, sampled="two:three")
    run = host.python(LAUNCHES, TUI_PROBE_PROBES=NAMES, TUI_PROBE_SAMPLE=":1/2:1-1")
    assert probings(run) == [(name, "probed", "-") for name in NAMES.split(":")]
    assert run.lines(r"\[exec\] probe-mem")[:3] == [f"[exec] probe-mem {n * 2 * 16} (bytes)" for n in (4, 2, 1)]


def test_they_take_turns_when_they_are_only_sized(host: Host, serving: Engine) -> None:
    answering(serving, refused="two")
    run = host.python(LAUNCHES, TUI_PROBE_PROBES=NAMES, TUI_PROBE_MEMUSAGE="1")
    assert run.stdout == "12\n"
    assert not run.results
    sized = [line.split()[2:] for line in run.lines(r"\[exec\] probe-mem")]
    assert [line[-1] for line in sized] == ["one", "three"] * 3 + ["one"]
    assert sized[1] == ["128", "(bytes)", "device", sized[0][3], "launch", "1", "probe", "three"]


def test_launches_of_each_shape_meet_all_probes_when_they_are_sized(host: Host, serving: Engine) -> None:
    answering(serving)
    shapes = "for i in range(3):\n    for grid in range(1, 25): launch(f, w, n, grid=grid, block=40)"
    script = LAUNCHES.replace("for i in range(7):\n    launch(f, w, n, grid=4, block=40)", shapes)
    run = host.python(script, TUI_PROBE_PROBES=NAMES, TUI_PROBE_MEMUSAGE="1")
    sized = {(line.split()[2], line.split()[-1]) for line in run.lines(r"\[exec\] probe-mem")}
    assert sized == {(str(32 * grid), name) for grid in range(1, 25) for name in NAMES.split(":")}


def test_a_single_sample_is_that_of_all(host: Host, serving: Engine) -> None:
    answering(serving, sampled=NAMES)
    run = host.python(LAUNCHES, TUI_PROBE_PROBES=NAMES, TUI_PROBE_SAMPLE="1/4")
    assert set(run.lines(r"\[exec\] probe-mem")) == {f"[exec] probe-mem {2 * 16} (bytes)"}


def test_an_engine_that_falls_silent_leaves_what_it_answered(host: Host, serving: Engine) -> None:
    def answer(directory: Path, name: str) -> str:
        (directory / "one").mkdir()
        serving.write_probed(directory / "one", name)
        return "ok\t<id>\tprobed.bin\nnonsense"

    serving.answer = answer
    run = host.python(LAUNCHES, TUI_PROBE_PROBES=NAMES)
    assert run.stdout == "12\n"
    assert saved(run) == ["one"] * 7
    assert [(probe, status) for probe, status, _ in probings(run)] == [
        ("one", "probed"),
        ("two", "failed"),
        ("three", "failed"),
    ]


def test_a_kernel_that_cannot_be_launched_with_any_probe_runs_as_it_is(host: Host, serving: Engine) -> None:
    answering(serving)
    run = host.python(LAUNCHES, TUI_PROBE_PROBES=NAMES, STUB_FAIL_PROBED="701")
    assert run.stdout == "12\n"
    assert [probe for probe, status, _ in probings(run) if status == "failed"] == NAMES.split(":")
    assert [status for status, _, _ in run.outcomes()] == ["probed", "failed"]
    assert run.results == []


def test_the_trace_has_the_files_of_all_probes(host: Host, serving: Engine, tmp_path: Path) -> None:
    answering(serving)
    folder = tmp_path / "files"
    folder.mkdir()
    for name in NAMES.split(":"):
        (folder / f"{name}.toml").write_text(f"# {name}\n")
    run = host.python(LAUNCHES, TUI_PROBE_PROBES=NAMES, TUI_PROBE_PROBE_FOLDER=str(folder))
    copies = {path.name: path.read_text() for path in (run.directory / "probes").iterdir()}
    assert copies == {f"{name}.toml": f"# {name}\n" for name in NAMES.split(":")}
    assert (run.directory / "probe.toml").read_text() == "[probe]\n"


ATTRIBUTES = """
context()
f = function(module(), "add__8_4")
w, n = word(5), c_int(3)
launch(f, w, n, grid=4, block=40)
call("cuFuncSetAttribute", f, 8, 4096)
print("set")
"""


def test_attributes_set_by_the_program_hold_for_all_copies(host: Host, serving: Engine) -> None:
    answering(serving)
    run = host.python(ATTRIBUTES, TUI_PROBE_PROBES=NAMES)
    assert run.stdout == "set\n", run.stderr
    assert run.calls.count("attribute probed add__8_4 8=4096") == 3


SITES = ["storage 0 sites record 16 cap 3 copies 64 max 0", "reduce 1 launch record 8 sum:u64@0:u64@0"]
"""The largest of 64 blocks, which the stub fills with their numbers, has 3.1 % of the sum."""
ENDING = """
context()
f = function(module(), "add__8_4")
w, n = word(5), c_int(3)
for i in range(8):
    launch(f, w, n, grid=64, block=32)
    wait_for(lambda: logged("[exec] save ") > i)
launch(f, w, n, grid=63, block=32)
print(read(w))
"""


def ending(engine: Engine, least: dict[str, int], empty: str = "") -> None:
    """The engine of a run with three probes of sites that have turns while some site has this share, in per cent. Those
    that are ``empty`` have no sites.
    """
    engine.maps = "1,0 1,8"

    def answer(directory: Path, name: str) -> str:
        for probe in NAMES.split(":"):
            is_empty = probe in empty.split(":")
            engine.filled = "1,0 1,8" if is_empty else "1,256 1,8"
            sites = [line.replace("cap 3", "cap 0") if is_empty else line for line in SITES]
            engine.storage = [*sites, f"least 0 percent {least[probe]} of 1"]
            (directory / probe).mkdir()
            engine.write_probed(directory / probe, name)
        return "\n".join(["ok\t<id>\tprobed.bin"] * len(least))

    engine.answer = answer


def test_probe_without_a_notable_site_has_no_more_turns(host: Host, serving: Engine) -> None:
    """Launches of another shape are measured by all."""
    ending(serving, {"one": 3, "two": 4, "three": 3})
    run = host.python(ENDING, TUI_PROBE_PROBES=NAMES)
    assert run.stdout == "14\n"
    assert saved(run) == ["one", "two", "three", "one", "three", "one", "three", "one", "one"]
    assert run.lines(r"\[probe\] ended ") == ["[probe] ended kernel 0 launch 1 probe two"]


@pytest.mark.parametrize(
    ("empty", "expected"),
    [("two", ["one", "three"]), ("two:three", ["one"]), ("one:two", ["three"]), (NAMES, ["one"])],
)
def test_probe_without_sites_has_no_turns(host: Host, serving: Engine, empty: str, expected: list[str]) -> None:
    """Unless no probe of the run has any."""
    ending(serving, {"one": 3, "two": 3, "three": 3}, empty)
    run = host.python(LAUNCHES, TUI_PROBE_PROBES=NAMES)
    assert run.stdout == "12\n"
    assert saved(run) == (expected * 7)[:7]
    assert not run.lines(r"\[probe\] ended ")
    assert probings(run) == [(name, "probed", "-") for name in NAMES.split(":")]


def test_last_probe_keeps_its_turns(host: Host, serving: Engine) -> None:
    ending(serving, {"one": 4, "two": 4, "three": 4})
    run = host.python(ENDING, TUI_PROBE_PROBES=NAMES)
    assert saved(run)[:8] == ["one", "two"] + ["three"] * 6
    ended = [line.split(" ")[5:] for line in run.lines(r"\[probe\] ended ")]
    assert [words for words in ended if words[0] != "8"] == [["0", "probe", "one"], ["1", "probe", "two"]]
