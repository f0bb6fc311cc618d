"""Counting probes fused into one kernel: one launch, a result of each; where the kernel has no room, they alternate."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.hook.conftest import Engine, Host, Prepare, ResultFile, Run
from tests.hook.test_several_probes import LAUNCHES, NAMES, probings
from tui_probe.launcher.control import BUDGETS, NO_LIMIT, ControlPage

MAPS = {"one": "1,16 0,8", "two": "1,16", "three": "1,24", "fused": "1,16 0,8 1,24"}
FUSED = {"TUI_PROBE_PROBES": NAMES, "TUI_PROBE_FUSED": "0:2"}


@pytest.fixture
def serving(host: Host) -> Engine:
    assert host.engine
    return host.engine


def answering(engine: Engine, *, refused: str = "") -> list[int]:
    """The engine of a run with two counting probes and another one; a list of how many answers it gave to each
    question.
    """
    engine.answer, given = answer_of_run(engine, refused=refused)
    return given


def answer_of_run(engine: Engine, *, refused: str = "", maps: dict[str, str] = MAPS) -> tuple[Prepare, list[int]]:
    """Return the answers to a run with these probes, and a list of how many it was given for each question."""
    given: list[int] = []

    def write(directory: Path, name: str, probe: str) -> str:
        if probe == refused:
            return "failed\t<id>\tthe probe engine: no code engine-defect"
        engine.maps = maps[probe]
        (directory / probe).mkdir(exist_ok=True)
        engine.write_probed(directory / probe, name)
        return "ok\t<id>\tprobed.bin"

    def answer(directory: Path, name: str) -> str:
        probes = ["one", "three"] if given else list(maps)
        given.append(len(probes))
        return "\n".join(write(directory, name, probe) for probe in probes)

    return answer, given


def saved(run: Run) -> list[tuple[int, str]]:
    """(launch, probe) of each result."""
    matches = (re.search(r"launch (\d+) probe (\S+)$", line) for line in run.lines(r"\[exec\] save "))
    return [(int(match[1]), match[2]) for match in matches if match]


def fused_line(run: Run) -> str:
    (line,) = run.lines(r"\[probe\] fused ")
    return line


def slots(run: Run, launch: int, probe: str) -> list[tuple[int, int]]:
    """(bytes, threads) of the slots of each map in a result."""
    (line,) = run.lines(rf"\[exec\] save .* launch {launch} probe {probe}$")
    return [(size, threads) for size, threads, _ in ResultFile.read(run.directory / line.split()[2]).maps]


def test_fused_launch_leaves_a_result_of_each_part(host: Host, serving: Engine) -> None:
    given = answering(serving)
    run = host.python(LAUNCHES, **FUSED)
    assert (run.status, run.stdout, run.stderr) == (0, "12\n", "")
    assert given == [4]
    parts = [(launch, part) for launch in (0, 2, 4, 6) for part in ("one", "three")]
    assert sorted(saved(run)) == sorted([*parts, *((launch, "two") for launch in (1, 3, 5))])
    assert slots(run, 0, "one") == [(16, 32), (8, 1)]
    assert slots(run, 0, "three") == [(24, 32)]
    assert fused_line(run) == "[probe] fused kernel 0 probes one,three reason -"
    assert probings(run) == [(name, "probed", "-") for name in NAMES.split(":")]
    assert not [line for line in run.calls if "DIRTY" in line]


def test_fused_results_have_the_bytes_of_separate_ones(host: Host, serving: Engine) -> None:
    """The stub fills the maps of a probe by their content: that of ``three`` is the third of the fused kernel."""
    answering(serving)
    together = host.python(LAUNCHES, **FUSED)
    fused = {line.split()[-1]: line.split()[2] for line in together.lines(r"\[exec\] save .* launch 0 probe ")}
    first = ResultFile.read(together.directory / fused["one"])
    assert [len(records) for _, _, records in first.maps] == [16 * 2 * 4, 8 * 40 * 4]
    third = ResultFile.read(together.directory / fused["three"])
    assert [len(records) for _, _, records in third.maps] == [24 * 2 * 4]
    assert all(any(records) for _, _, records in (*first.maps, *third.maps))


@pytest.mark.parametrize(
    ("environment", "reason"),
    [
        ({"STUB_BLOCKS": "8", "STUB_BLOCKS_PROBED": "3"}, "an SM would hold 3 blocks instead of 8"),
        ({"TUI_PROBE_MAX_PROBE_MEMORY": "1600"}, "needs 1792 bytes of probe memory"),
    ],
    ids=["blocks", "memory"],
)
def test_parts_alternate_if_the_kernel_has_no_room(
    host: Host, serving: Engine, environment: dict[str, str], reason: str
) -> None:
    given = answering(serving)
    run = host.python(LAUNCHES, **FUSED, **environment)
    assert (run.status, run.stdout) == (0, "12\n")
    assert given == [4, 2]
    assert reason in run.lines(r"\[probe\] fused ")[-1]
    assert [probe for _, probe in sorted(saved(run))][:3] == ["one", "two", "three"]


def test_fused_kernel_may_have_half_the_blocks(host: Host, serving: Engine) -> None:
    answering(serving)
    run = host.python(LAUNCHES, **FUSED, STUB_BLOCKS="8", STUB_BLOCKS_PROBED="4")
    assert fused_line(run).endswith("reason -")
    assert sorted(saved(run))[:2] == [(0, "one"), (0, "three")]


def test_parts_alternate_if_the_fused_kernel_is_refused(host: Host, serving: Engine) -> None:
    given = answering(serving, refused="fused")
    run = host.python(LAUNCHES, **FUSED)
    assert given == [4]
    assert fused_line(run).endswith("reason the probe engine: no code engine-defect")
    assert [probe for _, probe in sorted(saved(run))] == ["one", "two", "three", "one", "two", "three", "one"]


def test_every_launch_has_the_watchdog_if_the_fused_kernel_is_refused(host: Host, serving: Engine) -> None:
    """A launch with another part would hang unseen. ``one`` counts, and the map of ``three`` is the watchdog's."""
    answer, _ = answer_of_run(serving, refused="fused")

    def with_table(directory: Path, name: str) -> str:
        lines = answer(directory, name)
        info, image = directory / "three" / "kernel.info", directory / "three" / "probed.bin"
        info.write_text(info.read_text() + "storage 0 resident record 16 cap 1\n")
        image.write_bytes(image.read_bytes().replace(b"+1 ", b"+2 "))  # the launch's number is passed, too
        return lines

    serving.answer = with_table
    run = host.python(LAUNCHES, **FUSED, TUI_PROBE_WATCHDOG="60000")
    assert (run.status, run.stdout) == (0, "12\n")
    reasons = {probe: reason for probe, _, reason in probings(run)}
    assert reasons["one"].startswith("the counting probes do not fit into the kernel")
    assert reasons["three"] == "-"
    places = [probe for _, probe in saved(run) if probe != "two"]
    assert set(places) <= {"three"}  # at the end, places of launches whose table still has warps, and nothing else
    assert len(places) == len(run.lines(r"\[stuck\] launch "))
    assert run.lines(r"\[probe\] finish ")


def test_kernel_that_launches_with_no_probe_runs_as_it_is(host: Host, serving: Engine) -> None:
    given = answering(serving)
    run = host.python(LAUNCHES, **FUSED, STUB_FAIL_PROBED="701")
    assert (run.status, run.stdout) == (0, "12\n")
    assert given == [4, 2]
    assert run.results == []
    assert {probe for probe, status, _ in probings(run) if status == "failed"} == set(NAMES.split(":"))
    assert [status for status, _, _ in run.outcomes()] == ["probed", "failed"]


@pytest.mark.parametrize(("only", "probes"), [(1, {"one", "three"}), (2, {"two"}), (3, {"one", "three"})])
def test_chosen_part_has_the_fused_kernel(
    host: Host, serving: Engine, tmp_path: Path, only: int, probes: set[str]
) -> None:
    answering(serving)
    page = ControlPage.create(tmp_path / "control", dict.fromkeys(BUDGETS, NO_LIMIT), shares=False, is_on=True)
    page["only_probe"] = only
    run = host.python(LAUNCHES, **FUSED, TUI_PROBE_CONTROL=str(page.path))
    assert {probe for _, probe in saved(run)} == probes


def test_file_budget_counts_the_result_of_each_part(host: Host, serving: Engine) -> None:
    answering(serving)
    run = host.python(LAUNCHES, **FUSED, TUI_PROBE_MAX_RESULT_FILES="4")
    assert run.stdout == "12\n"
    assert sorted(saved(run)) == [(0, "one"), (0, "three"), (1, "two"), (2, "two")]


def test_replay_launches_the_kernel_for_every_probe(host: Host, serving: Engine) -> None:
    """The kernel adds to memory: what launches for other probes add is taken back."""
    answering(serving)
    run = host.python(LAUNCHES, **FUSED, TUI_PROBE_REPLAY="1")
    assert (run.status, run.stdout, run.stderr) == (0, "12\n", "")
    results = sorted(saved(run))
    assert results[:3] == [(0, "one"), (0, "three"), (0, "two")]
    assert {launch for launch, _ in results} == set(range(7))
    assert len(results) == 3 + 3 * 1 + 3 * 2
    assert not run.lines(r"\[probe\] not-replayed")
    assert run.lines(r"\[exit\] launches")[0].startswith("[exit] launches 7 probed 7 dropped 0")


THREADS = """
import threading
c = context()
f = function(module(), "add__8_4")
w, n = word(), c_int(3)
def work():
    call("cuCtxSetCurrent", c)
    launch(f, w, n, grid=5, block=40)
launch(f, w, n, grid=4, block=40)
other = threading.Thread(target=work)
other.start()
other.join()
print(read(w))
"""
MANAGED = """
context()
f = function(module(), "add__8_4")
w, n = c_uint64(), c_int(3)
call("cuMemAllocManaged", byref(w), c_size_t(8), 1)
c_uint64.from_address(w.value).value = 0
for _ in range(2): launch(f, w, n)
print(read(w))
"""


@pytest.mark.parametrize(
    ("script", "environment", "obstacle"),
    [
        (THREADS, {}, "launch 1 reason several threads launch kernels"),
        (MANAGED, {}, "launch 0 reason a parameter points to managed memory"),
        (
            LAUNCHES,
            {"STUB_MEMORY": str(32 << 20)},
            "launch 0 reason not enough memory for a copy of the memory that the kernel may write",
        ),
    ],
    ids=["threads", "managed", "memory"],
)
def test_launch_that_must_not_run_twice_is_not_replayed(
    host: Host, serving: Engine, script: str, environment: dict[str, str], obstacle: str
) -> None:
    answering(serving)
    run = host.python(script, **FUSED, TUI_PROBE_REPLAY="1", **environment)
    assert run.status == 0
    assert run.stdout == ("12\n" if script == LAUNCHES else "2\n")
    assert run.lines(rf"\[probe\] not-replayed kernel 0 {obstacle} code ")
    number = int(obstacle.split()[1])
    assert [probe for launch, probe in sorted(saved(run)) if launch == number] == ["one", "three"]
