"""Launches that are not probed, told of in a few bytes each, when the schedule says which are probed."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import pytest

from .conftest import AUTO, Build, Host, Run, compile_c

HERE = Path(__file__).resolve().parent

LOOP = """
context()
m = module()
f, g = function(m, "one"), function(m, "two")
for i in range({times}):
    launch(f)
    launch(g, grid=4)
    launch(g, grid=5)
"""


def packed(run: Run) -> dict[int, str]:
    """Key, and reason behind a slash, of each packed launch by its number."""
    launches: dict[int, str] = {}
    for line in run.lines(r"\[passed\] \d"):
        _, first, _, _, *items = line.split()
        number = int(first)
        for item in items:
            if item[0] == "@":
                number = int(item[1:])
                continue
            key, _, times = item.partition("x")
            for _ in range(int(times or 1)):
                assert number not in launches
                launches[number] = key
                number += 1
    return launches


def recorded(run: Run, words: str) -> list[int]:
    return [int(line.split("launch ")[1].split()[0]) for line in run.lines(rf"\[exec\] {words} .* launch ")]


def lost(run: Run) -> int:
    return sum(int(line.split()[3]) for line in run.lines(r"\[passed\] lost"))


def test_each_launch_is_logged_once(host: Host) -> None:
    run = host.python(LOOP.format(times=200), **AUTO)
    assert run.status == 0, run.stderr
    probed, passed = recorded(run, "grid"), packed(run)
    assert sorted([*probed, *passed]) == list(range(600))
    assert recorded(run, "backup") == []
    assert probed[:24] == list(range(24)), "a light probe sees the first eight launches of each key"
    assert {number: int(key) for number, key in passed.items()} == {number: number % 3 for number in passed}
    assert len(run.results) == len(probed)
    assert run.lines(r"\[exit\] launches") == [f"[exit] launches 600 probed {len(probed)} dropped 0 reason -"]


def test_a_heavy_probe_sees_fewer(host: Host) -> None:
    run = host.python(LOOP.format(times=200), TUI_PROBE_WEIGHT="heavy", **AUTO)
    probed = recorded(run, "grid")
    assert probed[:6] == list(range(6))
    assert 15 <= len(probed) <= 30


def test_a_key_is_described_before_it_is_used(host: Host) -> None:
    run = host.python(LOOP.format(times=30), **AUTO)
    assert run.lines(r"\[key\]") == [
        "[key] 0 kernel 0 grid 2 1 1 block 64 1 1 shared 0",
        "[key] 1 kernel 1 grid 4 1 1 block 64 1 1 shared 0",
        "[key] 2 kernel 1 grid 5 1 1 block 64 1 1 shared 0",
    ]
    kinds = [line.split()[0] for line in run.log]
    assert kinds.index("[key]") < kinds.index("[passed]")


def test_many_shapes_share_keys(host: Host) -> None:
    run = host.python(
        "context()\nf = function(module(), 'one')\nfor i in range(200): launch(f, grid=1 + i % 100)", **AUTO
    )
    described = sorted(run.lines(r"\[key\]"), key=lambda line: int(line.split()[1]))
    assert described[-3:] == [
        "[key] 16 kernel 0 blocks 16 31", "[key] 17 kernel 0 blocks 32 63", "[key] 18 kernel 0 blocks 64 127",
    ]  # fmt: skip
    keys = {n: int(key) for n, key in packed(run).items()}
    assert {keys.get(n, 18) for n in range(63, 100)} == {18}


def test_launches_that_pass_for_another_reason_say_so(host: Host) -> None:
    """The first of a key has a line of its own."""
    run = host.python(LOOP.format(times=20), TUI_PROBE_FILTER="two", **AUTO)
    backups = run.lines(r"\[exec\] backup")
    assert len(backups) == 2
    assert all(line.endswith("reason excluded by name") for line in backups)
    assert [line for line in run.written_log if line.startswith("[reason]")] == [
        "[reason] 0 excluded by name code excluded"
    ]
    counts = Counter(packed(run).values())
    assert counts["1/0"] == counts["2/0"] == 19
    assert counts["0"] == 20 - len(recorded(run, "grid"))


def test_captured_launches_leave_their_turn_to_the_next(host: Host) -> None:
    run = host.python(
        """
context()
f = function(module(), "one")
s = stream()
call("cuStreamBeginCapture_v2", s, 0)
for _ in range(5): launch(f, stream=s)
graph = c_void_p()
call("cuStreamEndCapture", s, byref(graph))
launch(f, stream=s)
""",
        **AUTO,
    )
    assert run.status == 0, run.stderr
    assert recorded(run, "grid") == [5]


def test_a_failed_launch_has_lines_of_its_own(host: Host) -> None:
    run = host.python(
        "context()\nf = function(module(), 'one')\nfor _ in range(40):\n  try: launch(f)\n  except DriverError: pass",
        STUB_FAIL_ORIGINAL="701", STUB_FAIL_PROBED="701", **AUTO,
    )  # fmt: skip
    assert run.status == 0, run.stderr
    assert len(run.lines(r"\[exec\] failed 701")) >= 40
    assert packed(run) == {}


@pytest.fixture(scope="module")
def counting(built: Build, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("counting") / "counting"
    compile_c(HERE / "counting_program.c", path, str(built.stub))
    return path


@pytest.mark.parametrize(("threads", "launches", "kernels"), [(1, 200_000, 3), (4, 40_000, 5)])
def test_none_of_very_many_launches_is_left_out_of_the_count(
    host: Host, counting: Path, threads: int, launches: int, kernels: int
) -> None:
    """Faster than any GPU: what the log has no room for is counted, and launches do not wait."""
    run = host.command("env", "-u", "STUB_LOG", str(counting), str(threads), str(launches), str(kernels), **AUTO)
    assert run.status == 0, run.stderr
    lines = [*recorded(run, "grid"), *recorded(run, "backup"), *packed(run)]
    assert len(set(lines)) == len(lines)
    everything = threads * launches + kernels
    assert len(lines) + lost(run) == everything
    assert re.match(rf"\[exit\] launches {everything} probed ", run.lines(r"\[exit\] launches")[0])
    assert len((run.directory / "event.log").read_bytes()) < 10 * everything


def test_all_launches_are_recorded_if_asked_for(host: Host) -> None:
    run = host.python(LOOP.format(times=50), TUI_PROBE_LAUNCHES="")
    assert len(run.results) == 150
    assert not run.lines(r"\[passed\]")
