"""A kernel is launched with the first of its probes that is ready; the others follow."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

import pytest

from tests.hook.test_fused import FUSED, MAPS, saved
from tests.hook.test_several_probes import NAMES, probings
from tui_probe.launcher.control import BUDGETS, NO_LIMIT, ControlPage

if TYPE_CHECKING:
    from pathlib import Path

    from .conftest import Engine, Host

LATE = ("one", "three", "fused")
HURRIED = {**FUSED, "TUI_PROBE_LAUNCHES": "auto"}
BEING_PREPARED = "the kernel was still being prepared"
START = """
import time
from pathlib import Path
def wait_for(text):
    (directory,) = Path(os.environ["TUI_PROBE_TRACE_ROOT"]).glob(f"*_{os.getpid()}")
    while text not in (directory / "event.log").read_text():
        time.sleep(0.01)
context()
owner = module()
f = function(owner, "add__8_4")
w, n = word(5), c_int(3)
launch(f, w, n, grid=4, block=40)
"""
RELEASE = """
Path("{released}").touch()
wait_for("[probe] fused kernel 0 probes one,three reason {reason}\\n")
for _ in range(4):
    launch(f, w, n, grid=4, block=40)
"""
END = "print(read(w))\n"


class LateEngine:
    """An engine that has the counting probes later than the other one: once a file is there."""

    def __init__(self, engine: Engine, released: Path) -> None:
        self.engine, self.released = engine, released
        self.ends = threading.Event()
        self.refused: str | None = None
        """Answers about the late probes instead of files."""
        engine.answer, engine.later = self.answer, self.later

    def write(self, directory: Path, name: str, probe: str) -> str:
        self.engine.maps = MAPS[probe]
        (directory / probe).mkdir(exist_ok=True)
        self.engine.write_probed(directory / probe, name)
        return "ok\t<id>\tprobed.bin"

    def answer(self, directory: Path, name: str) -> str:
        if (directory / "two").exists():  # for the parts, each by itself
            return "\n".join(self.write(directory, name, probe) for probe in ("one", "three"))
        return "\n".join("later\t<id>\t" if probe in LATE else self.write(directory, name, probe) for probe in MAPS)

    def later(self, directory: Path, name: str) -> str | None:
        while not self.released.exists():
            if self.ends.wait(0.01):
                return None
        if self.refused is not None:
            return self.refused
        return "\n".join(self.write(directory, name, probe) for probe in LATE)


@pytest.fixture
def late(host: Host, tmp_path: Path) -> LateEngine:
    assert host.engine
    return LateEngine(host.engine, tmp_path / "released")


def script_of(late: LateEngine, *, reason: str = "-") -> str:
    return START + RELEASE.format(released=late.released, reason=reason) + END


def test_late_probes_are_launched_once_they_are_ready(host: Host, late: LateEngine) -> None:
    run = host.python(script_of(late), **HURRIED)
    assert (run.status, run.stdout, run.stderr) == (0, "10\n", "")
    assert sorted(saved(run))[:4] == [(0, "two"), (1, "one"), (1, "three"), (2, "two")]
    first = [("one", "skipped", BEING_PREPARED), ("two", "probed", "-"), ("three", "skipped", BEING_PREPARED)]
    assert probings(run) == [*first, ("one", "probed", "-"), ("three", "probed", "-")]
    assert run.outcomes() == [("probed", "add__8_4", "-")]
    assert not [line for line in run.calls if "DIRTY" in line]


def test_new_kernels_get_a_first_probe_however_many_wait_for_late_ones(host: Host, late: LateEngine) -> None:
    kernels = range(40)
    launches = "".join(f'launch(function(owner, "add{kernel}__8_4"), w, n, grid=4, block=40)\n' for kernel in kernels)
    run = host.python(START + launches + END, **HURRIED)
    late.ends.set()
    assert run.stdout == f"{6 + len(kernels)}\n"
    assert saved(run) == [(launch, "two") for launch in range(1 + len(kernels))]


def test_program_that_ends_before_late_probes_are_ready(host: Host, late: LateEngine) -> None:
    run = host.python(START + END, **HURRIED)
    late.ends.set()
    assert (run.status, run.stdout, run.stderr) == (0, "6\n", "")
    assert saved(run) == [(0, "two")]
    assert [reason for _, _, reason in probings(run)] == [BEING_PREPARED, "-", BEING_PREPARED]


def test_launches_wait_for_late_probes_where_all_are_to_be_probed(host: Host, late: LateEngine) -> None:
    late.released.touch()
    run = host.python(script_of(late), **FUSED)
    assert run.stdout == "10\n"
    assert sorted(saved(run))[:3] == [(0, "one"), (0, "three"), (1, "two")]


def test_late_parts_alternate_if_the_fused_kernel_has_no_room(host: Host, late: LateEngine) -> None:
    reason = (
        "with all counting probes together, an SM would hold 3 blocks instead of 8, so launches alternate between"
        " the probes"
    )
    script = script_of(late, reason=f"{reason} code fused-blocks")
    run = host.python(script, **HURRIED, STUB_BLOCKS="8", STUB_BLOCKS_PROBED="3")
    assert (run.status, run.stdout, run.stderr) == (0, "10\n", "")
    assert f" reason {reason}" in run.lines(r"\[probe\] fused ")[-1]
    assert [name for _, name in sorted(saved(run))][:4] == ["two", "one", "three", "two"]


def test_late_probes_that_the_engine_refuses(host: Host, late: LateEngine) -> None:
    refusal = "failed\t<id>\tthe probe engine: no code engine-defect"
    late.refused = "\n".join([refusal] * len(LATE))
    run = host.python(script_of(late, reason="the probe engine: no code engine-defect"), **HURRIED)
    assert (run.status, run.stdout, run.stderr) == (0, "10\n", "")
    assert {name for _, name in saved(run)} == {"two"}
    assert [status for _, status, _ in probings(run)] == ["skipped", "probed", "skipped", "failed", "failed"]


def test_engine_that_ends_before_late_probes_are_ready(host: Host, late: LateEngine) -> None:
    late.ends.set()
    script = START + 'wait_for("[probing] 0 failed")\nlaunch(f, w, n, grid=4, block=40)\n' + END
    run = host.python(script, **HURRIED)
    assert (run.status, run.stdout, run.stderr) == (0, "7\n", "")
    assert {name for _, name in saved(run)} == {"two"}


@pytest.mark.parametrize("left", ['call("cuModuleUnload", owner)', 'call("cuCtxDestroy_v2", made)'])
def test_code_or_context_left_before_late_probes_are_ready(host: Host, late: LateEngine, left: str) -> None:
    run = host.python(START.replace("context()", "made = context()") + END + left + '\nprint("left")\n', **HURRIED)
    late.ends.set()
    assert (run.status, run.stdout, run.stderr) == (0, "6\nleft\n", "")


def test_forked_child_has_no_late_probes(host: Host, late: LateEngine) -> None:
    fork = "if os.fork() == 0:\n    os._exit(0)\nprint(os.wait()[1])\n"
    run = host.python(START + fork + RELEASE.format(released=late.released, reason="-") + END, **HURRIED)
    assert (run.status, run.stdout, run.stderr) == (0, "0\n10\n", "")
    assert {name for _, name in saved(run)} == set(NAMES.split(":"))


def test_chosen_probe_that_is_late_has_no_launch_until_then(host: Host, late: LateEngine, tmp_path: Path) -> None:
    page = ControlPage.create(tmp_path / "control", dict.fromkeys(BUDGETS, NO_LIMIT), shares=False, is_on=True)
    page["only_probe"] = 1
    run = host.python(script_of(late), **HURRIED, TUI_PROBE_CONTROL=str(page.path))
    assert (run.status, run.stdout, run.stderr) == (0, "10\n", "")
    assert sorted(saved(run))[:2] == [(1, "one"), (1, "three")]
    (passed,) = [line for line in run.lines(r"\[exec\] backup ") if BEING_PREPARED in line]
    assert " launch 0 " in passed
