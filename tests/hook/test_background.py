"""Kernels that are prepared next to the program once its threads have waited long enough for others."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING

import pytest

from tests.patience import HANG

from .conftest import Engine, Host, Run

if TYPE_CHECKING:
    from pathlib import Path

PREPARING = 0.6
"""Seconds that the slow engine takes: for two kernels more than launches may wait in all."""

SEVERAL = """
import time
context()
owner = module()
w, n = word(0), c_int(1)
functions = [function(owner, f"add{i}__8_4") for i in range(3)]
for f in functions:
    launch(f, w, n)
print(read(w))
"""
PROBED = """
def is_probed(number):
    launch(functions[number], w, n)
    return called(f"launch probed add{number}__8_4 kernel")
for number in range(3): wait_for(lambda: is_probed(number))
"""
"""Launches each kernel until it is probed."""


@pytest.fixture(autouse=True)
def _slow(engine: Engine) -> None:
    """An engine that takes its time for each kernel."""

    def answer(directory: Path, name: str) -> str:
        time.sleep(PREPARING)
        engine.write_probed(directory, name)
        return "ok\t<id>\tprobed.bin"

    engine.answer = answer


def passed(run: Run) -> list[str]:
    """The kernels of launches that passed since they were being prepared."""
    return [
        line.split(" kernel ")[1].split()[0]
        for line in run.lines(r"\[exec\] backup ")
        if "still being prepared" in line
    ]


def test_launches_wait_until_the_allowance_is_used_up(host: Host, engine: Engine, tmp_path: Path) -> None:
    """The engine answers for the second and third kernel when both were launched, of which one waited for a second."""
    have_passed = tmp_path / "passed"

    def answer(directory: Path, name: str) -> str:
        end = time.monotonic() + HANG
        while not name.startswith("add0_") and not have_passed.exists() and time.monotonic() < end:
            time.sleep(0.01)
        engine.write_probed(directory, name)
        return "ok\t<id>\tprobed.bin"

    engine.answer = answer
    script = (
        SEVERAL.replace("for f", "began = time.monotonic()\nfor f", 1)
        + f"""
print(time.monotonic() - began >= 1)
open({str(have_passed)!r}, "w").close()
"""
    )
    run = host.python(script + PROBED, TUI_PROBE_LAUNCHES="auto")
    assert run.stdout == "3\nTrue\n"
    waiting = passed(run)
    assert waiting[:2] == ["1", "2"]
    assert set(waiting[2:]) <= {"1", "2"}
    assert [outcome[0] for outcome in run.outcomes()] == ["probed"] * 3
    assert len(run.results) == 4  # both launches of the first kernel, and the last one of the others


def test_background_threads_ask_for_several_kernels_at_a_time(host: Host, engine: Engine) -> None:
    """The engine answers for the second and third kernel only after it was asked for both."""
    both = threading.Barrier(2)

    def answer(directory: Path, name: str) -> str:
        if not name.startswith("add0_"):
            both.wait(HANG)
        engine.write_probed(directory, name)
        return "ok\t<id>\tprobed.bin"

    engine.answer = answer
    run = host.python(SEVERAL + PROBED, TUI_PROBE_LAUNCHES="auto")
    assert [outcome[0] for outcome in run.outcomes()] == ["probed"] * 3, run.stderr


def test_kernels_of_many_or_large_launches_are_prepared_first(host: Host, engine: Engine, tmp_path: Path) -> None:
    """With one processor two threads prepare: one has the first kernel until all are launched, then the others by the
    number and size of their launches; the other one has the second kernel until the end.
    """
    sizes = (1, 1, 1, 2, 64, 8, 1)
    launches = (1, 1, 1, 1, 1, 1, 20)
    names = [f"add{number}__8_4" for number in range(len(sizes))]
    is_launched, is_asked = tmp_path / "launched", threading.Event()

    def answer(directory: Path, name: str) -> str:
        (tmp_path / name).touch()
        end = time.monotonic() + HANG
        while name == names[0] and not is_launched.exists() and time.monotonic() < end:
            time.sleep(0.01)
        if len(engine.prepared) == len(names):
            is_asked.set()
        if name == names[1]:
            is_asked.wait(HANG)
        engine.write_probed(directory, name)
        return "ok\t<id>\tprobed.bin"

    engine.answer = answer
    script = f"""
import os
os.sched_setaffinity(0, {{min(os.sched_getaffinity(0))}})
context()
owner = module()
w, n = word(0), c_int(1)
def asked_for(name):
    while not os.path.exists({str(tmp_path)!r} + "/" + name): time.sleep(0.01)
for number, (name, size, count) in enumerate(zip({names}, {sizes}, {launches})):
    for _ in range(count): launch(function(owner, name), w, n, grid=(size, 1, 1))
    if number < 2: asked_for(name)
open({str(is_launched)!r}, "w").close()
for name in {names}: asked_for(name)
"""
    assert host.python(script, TUI_PROBE_LAUNCHES="auto", TUI_PROBE_TIMES="0").status == 0  # the stub has odd times
    assert engine.prepared == [names[number] for number in (0, 1, 6, 4, 5, 3, 2)]


def test_all_launches_wait_where_all_are_to_be_probed(host: Host) -> None:
    run = host.python(SEVERAL, TUI_PROBE_LAUNCHES="")
    assert run.stdout == "3\n"
    assert passed(run) == []
    assert len(run.results) == 3


def test_early_program_end_reports_unfinished_kernels(host: Host) -> None:
    run = host.python(SEVERAL, TUI_PROBE_LAUNCHES="auto")
    assert run.status == 0
    unprepared = [outcome for outcome in run.outcomes() if "still being prepared" in outcome[2]]
    assert unprepared
    assert all(outcome[0] == "skipped" for outcome in unprepared)


def test_driver_that_ends_while_kernels_are_prepared(host: Host, engine: Engine, tmp_path: Path) -> None:
    """The answer comes too late, as it does for most kernels at the end of a program: the context is no reason."""
    ended = tmp_path / "ended"

    def answer(directory: Path, name: str) -> str:
        engine.write_probed(directory, name)
        ended.touch()
        return "ok\t<id>\tprobed.bin"

    engine.answer = answer
    run = host.python(SEVERAL, TUI_PROBE_LAUNCHES="auto", STUB_ENDED=str(ended))
    assert run.status == 0
    assert run.outcomes()[0][0] == "skipped"
    assert "still being prepared" in run.outcomes()[0][2]
    assert not run.lines("no current context")


def test_a_module_that_is_unloaded_meanwhile(host: Host) -> None:
    script = SEVERAL + 'call("cuModuleUnload", owner)\nprint("unloaded")\n' + AGAIN
    run = host.python(script, TUI_PROBE_LAUNCHES="auto")
    assert (run.status, run.stdout) == (0, "3\nunloaded\n4\n")


AGAIN = """
owner = module()
launch(function(owner, "add7__8_4"), w, n)
print(read(w))
"""


def test_a_context_that_is_destroyed_meanwhile(host: Host) -> None:
    script = SEVERAL.replace("context()", "made = context()") + 'call("cuCtxDestroy_v2", made)\nprint("destroyed")\n'
    run = host.python(script, TUI_PROBE_LAUNCHES="auto")
    assert (run.status, run.stdout) == (0, "3\ndestroyed\n")


def test_patient_launches_wait_for_every_kernel(host: Host) -> None:
    run = host.python(SEVERAL, TUI_PROBE_LAUNCHES="auto", TUI_PROBE_PATIENT="1")
    assert run.stdout == "3\n"
    assert passed(run) == []
    assert len(run.results) == 3
