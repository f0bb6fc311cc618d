"""Budgets that all processes of a run share, and the switch for recording: the program never notices."""

from __future__ import annotations

import random
import re
import subprocess
from pathlib import Path

import pytest

from tui_probe.launcher.control import BUDGETS, BYTES, FIELDS, NO_LIMIT, ControlPage

from .conftest import AUTO, Build, Host, Run
from .object_files import compile_with_hook
from .test_images import elf

HERE = Path(__file__).resolve().parent
LAUNCHES = """
context()
f = function(module(), "add__8")
w = word()
for _ in range({n}): launch(f, w)
print(read(w))
"""


@pytest.fixture
def page(tmp_path: Path) -> ControlPage:
    return ControlPage.create(tmp_path / "control", dict.fromkeys(BUDGETS, NO_LIMIT), shares=False, is_on=True)


def under(host: Host, page: ControlPage, script: str, **environment: str) -> Run:
    return host.python(script, TUI_PROBE_CONTROL=str(page.path), **environment)


def disk_bytes(folder: Path) -> int:
    """Return the disk blocks of all files of a folder, as du counts them."""
    return sum(path.lstat().st_blocks * 512 for path in (folder, *folder.rglob("*")))


# The layout and the rule, here and in C.


@pytest.fixture(scope="module")
def program(built: Build, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("control") / "control"
    compile_with_hook(built, HERE / "control_program.c", path)
    return path


def answers(program: Path, questions: str) -> list[str]:
    return subprocess.run([program], input=questions, capture_output=True, text=True, check=True).stdout.splitlines()


def test_the_layout_is_the_same_here_and_in_the_hook(program: Path) -> None:
    assert answers(program, "") == [*(f"{name} {offset}" for name, offset in FIELDS.items()), f"bytes {BYTES}"]


def share(left: tuple[int, int], held: tuple[int, int], first: bool) -> tuple[int, int]:
    """The most that a launch may take of what is left, as bytes and files: the rule in a few words of Python."""
    part = 8 if first else 32
    most = left[0] // part if first else min(left[0] // part, 64 << 20)
    beyond = [max(0, left[i] - held[i]) for i in (0, 1)]
    files = min(max(of // parts, min(of, 1)) for of, parts in ((left[1], part), (beyond[1], 2)))
    return min(most, beyond[0] // 2), files


def test_the_rule_is_the_same_here_and_in_the_hook(program: Path) -> None:
    numbers = random.Random(11)
    cases = [((2**64 - 1, 2**64 - 1), (0, 0), False), ((0, 0), (0, 0), True)]
    for _ in range(500):
        left = (numbers.randrange(1 << numbers.randrange(1, 40)), numbers.randrange(4000))
        held = (numbers.randrange(1 << numbers.randrange(1, 40)), numbers.randrange(4000))
        cases.append((left, held, numbers.random() < 0.5))
    text = "".join(f"{left[0]} {left[1]} {held[0]} {held[1]} {int(first)}\n" for left, held, first in cases)
    given = [tuple(map(int, line.split())) for line in answers(program, text)[len(FIELDS) + 1 :]]
    assert given == [share(*case) for case in cases]


def test_no_kernel_takes_all() -> None:
    """However many launches ask for as much as they may, every later kernel finds half of what was left."""
    left, files = 1 << 30, 2000
    for _ in range(3):
        held, before = (0, 0), left
        for n in range(1000):
            most, allowed = share((left, files), held, n == 0)
            if not allowed:
                break
            left, files, held = left - most, files - 1, (held[0] + most, held[1] + 1)
        assert left >= before // 2
        assert files > 0


# Budgets.


def test_result_files_are_limited_for_all_processes_together(host: Host, page: ControlPage) -> None:
    page.set_limit("result_files", 5)
    script = f"import os\nfor _ in range(3):\n    pid = os.fork()\n    if not pid: break\n{LAUNCHES.format(n=4)}"
    script += "\nif pid:\n    for _ in range(3): os.wait()\n"
    run = under(host, page, script)
    assert (run.status, run.stdout.count("4")) == (0, 4), run.stderr
    assert len(list(run.root.glob("*/result/*.bin"))) == 5
    assert (page.budget("result_files").used, page.budget("result_files").refused) == (5, 11)
    logs = [log.read_text() for log in run.root.glob("*/event.log")]
    assert len(logs) == 4
    full = [log for log in logs if " reason the limit of " in log]
    assert len(full) >= 3
    for log in full:
        assert log.count("[budget] result-files reached limit 5 used 5: allow more with --max-result-files\n") == 1


def test_the_bytes_of_a_run_are_those_of_its_blocks(host: Host, page: ControlPage) -> None:
    run = under(host, page, LAUNCHES.format(n=40))
    assert len(run.results) == 40
    used, taken = page.budget("trace_bytes").used, disk_bytes(run.directory)
    assert taken * 0.9 <= used <= taken * 1.1
    assert page.budget("log_bytes").used == (run.directory / "event.log").stat().st_size


LOAD = "context()\nm = c_void_p()\ncall('cuModuleLoad', byref(m), {path!r}.encode())\n"


@pytest.fixture
def cubin(tmp_path: Path) -> Path:
    """A file of a MiB of machine code."""
    path = tmp_path / "kernel.cubin"
    path.write_bytes(elf({".text.add": bytes(1 << 20)}))
    return path


def test_an_image_with_several_kernels_counts_once(host: Host, page: ControlPage, cubin: Path) -> None:
    """Machine code has megabytes, and each folder a link to the same file."""
    run = under(host, page, LOAD.format(path=str(cubin)) + "for name in 'abcde': launch(function(m, name))")
    used, taken = page.budget("trace_bytes").used, disk_bytes(run.directory) - 4 * cubin.stat().st_blocks * 512
    assert len(run.outcomes()) == 5
    assert taken * 0.9 <= used <= taken * 1.1


def test_an_image_beyond_the_budget_is_not_written(host: Host, page: ControlPage, cubin: Path) -> None:
    page.set_limit("trace_bytes", 1 << 20)
    run = under(host, page, LOAD.format(path=str(cubin)) + "launch(function(m, 'add'))")
    assert run.codes == ["trace-full"]
    assert any("trace is full (1M)" in line for line in run.log), "as the budget is typed"
    assert not list(run.directory.glob("kernel/*/original.bin"))


@pytest.mark.parametrize("limit", [0, 1, 50_000, 200_000])
def test_a_run_stays_within_its_bytes(host: Host, page: ControlPage, limit: int) -> None:
    page.set_limit("trace_bytes", limit)
    run = under(host, page, LAUNCHES.format(n=100))
    assert (run.status, run.stdout) == (0, "100\n"), run.stderr
    assert disk_bytes(run.directory) <= max(limit, 40_000)  # folders, and what the log says of the reason
    assert bool(run.results) == (limit > 100_000)


def test_zero_budget_keeps_logs(host: Host, page: ControlPage) -> None:
    page.set_limit("result_files", 0)
    run = under(host, page, LAUNCHES.format(n=3))
    assert (run.status, run.stdout) == (0, "3\n"), run.stderr
    assert sorted(path.name for path in run.directory.rglob("*") if path.is_file()) == ["event.log", "probe.toml"]
    assert run.codes == ["results-full"]
    assert run.lines(r"\[kernel\] 0 skipped .* reason the limit of 0 result files is reached")


@pytest.mark.parametrize("slow", ["0", "1"])
def test_launches_are_no_longer_listed_when_the_log_is_full(host: Host, page: ControlPage, slow: str) -> None:
    """Nor are their times, which of slow launches are taken of each of these."""
    page.set_limit("log_bytes", 4000)
    script = LAUNCHES.format(n=300) + "\nfor _ in range(300): word()\n"
    run = under(host, page, script, TUI_PROBE_LAUNCHES="0-1", STUB_SLOW_LAUNCH=slow)
    assert (run.status, run.stdout) == (0, "300\n"), run.stderr
    assert (run.directory / "event.log").stat().st_size < 6000
    assert len(run.lines(r"\[time\] launch \d+ kernel 0 key 0 probed")) == 2
    (line,) = run.lines(r"\[budget\] log-bytes")
    assert line.endswith("allow more with --max-log-bytes")
    (unlisted,) = run.lines(r"\[budget\] unlisted")
    count = int(unlisted.split()[-1])
    assert count + len(run.lines(r"\[exec\] backup")) == 298
    assert page.budget("log_bytes").refused >= count + 200
    assert run.lines(r"\[exit\] launches 300 probed 2")


def test_captured_launches_without_a_line_are_not_counted_as_launches(host: Host, page: ControlPage) -> None:
    page.set_limit("log_bytes", 4000)
    run = under(
        host,
        page,
        """
context()
f = function(module(), "add__8")
w, s, graph = word(), stream(), c_void_p()
for _ in range(100): launch(f, w)
call("cuStreamBeginCapture_v2", s, 0)
for _ in range(100): launch(f, w, stream=s)
call("cuStreamEndCapture", s, byref(graph))
""",
        TUI_PROBE_LAUNCHES="0-1",
    )
    (unlisted,) = run.lines(r"\[budget\] unlisted")
    listed = [line for line in run.lines(r"\[exec\] backup") if "capturing" not in line]
    assert int(unlisted.split()[-1]) + len(listed) == 98
    assert run.lines(r"\[exit\] launches 100 probed 2")


def test_the_first_launches_of_a_kernel_do_not_take_all(host: Host, page: ControlPage) -> None:
    """Default shares without --launches: of two kernels, the first would fill the trace."""
    page["trace_bytes.limit"], page["result_files.limit"], page["shares"] = 8 << 20, 1000, 1
    host.engine.maps = "0,64"  # type: ignore[union-attr]
    script = """
context()
f, g = function(module(), "add__8"), function(module(), "add__8_8")
w = word()
for _ in range(200): launch(f, w, grid=5, block=1024)
launch(g, w, w, grid=2, block=1024)
"""
    run = under(host, page, script, **AUTO)
    assert run.status == 0, run.stderr
    kernels = [line.split(" kernel ")[1].split()[0] for line in run.lines(r"\[exec\] save ")]
    assert set(kernels) == {"0", "1"}
    assert kernels.count("0") < 40
    assert [line for line in run.written_log if line.endswith(" code trace-share")]
    assert run.lines(r"\[budget\] share thins")


KILLED = """
import os
context()
f = function(module(), "add__8")
w = word()
launch(f, w)
os.kill(os.getpid(), 9)
"""


@pytest.mark.parametrize("files", [1, 5, 40])
def test_all_of_few_result_files_are_used(host: Host, page: ControlPage, files: int) -> None:
    """Each kernel takes what it leaves to others; of more than a few the last ones are for kernels that have none."""
    page["result_files.limit"], page["shares"] = files, 1
    names = [f"{kind}__8" for kind in ("add", "sub", "mul", "div", "mod", "pow")]
    script = f"""
context()
w = word()
for name in {names!r}:
    f = function(module(), name)
    for _ in range(60): launch(f, w)
print(read(w))
"""
    run = under(host, page, script, **AUTO)
    assert (run.status, run.stdout) == (0, "360\n"), run.stderr
    kernels = [line.split(" kernel ")[1].split()[0] for line in run.lines(r"\[exec\] save ")]
    reserved = files // 16
    assert files - reserved <= len(kernels) <= files
    assert len(set(kernels)) == {1: 1, 5: 3, 40: 6}[files]


def test_the_last_result_files_are_for_kernels_without_any(host: Host, page: ControlPage) -> None:
    """A kernel that is launched first when others have used what they may has a record, too."""
    page["result_files.limit"], page["shares"] = 160, 1
    kinds = [f"{kind}__{size}" for size in (8, "8_8") for kind in ("add", "sub", "mul", "div", "mod", "pow")]
    script = f"""
context()
w = word()
for round in range(2):
    for name in {kinds!r}[: 10 + 2 * round]:
        f = function(module(), name)
        for _ in range(40): launch(f, *[w] * (name.count("8")))
"""
    run = under(host, page, script, **AUTO)
    assert run.status == 0, run.stderr
    kernels = [line.split(" kernel ")[1].split()[0] for line in run.lines(r"\[exec\] save ")]
    assert {"10", "11"} <= set(kernels)


def test_reservations_of_a_killed_process_are_released(host: Host, page: ControlPage) -> None:
    page.set_limit("result_files", 1)
    run = under(host, page, KILLED)
    assert (run.status, run.results, page["result_files.used"]) == (-9, [], 1)
    assert page.budget("result_files").used == 0  # as it is reported
    before = page.budget("trace_bytes").used
    host.root = host.directory / "again"
    host.root.mkdir()
    run = under(host, page, LAUNCHES.format(n=5))
    assert (run.status, run.stdout, len(run.results)) == (0, "5\n", 1), run.stderr
    assert (page["result_files.used"], page.budget("result_files").used) == (1, 1)
    assert page.budget("trace_bytes").used == pytest.approx(before + disk_bytes(host.root), rel=0.1)


def test_a_program_that_becomes_another_holds_nothing_of_the_first(host: Host, page: ControlPage) -> None:
    script = KILLED.replace(
        "os.kill(os.getpid(), 9)", "import sys; os.execv(sys.executable, [sys.executable, '-c', MORE])"
    )
    more = "from host import *\n" + LAUNCHES.format(n=3)
    run = under(host, page, f"MORE = {more!r}\n{script}")
    assert (run.status, run.stdout) == (0, "3\n"), run.stderr
    saved = len(list(run.root.glob("*/result/*.bin")))
    assert saved in (3, 4)  # the first program's may be written before it is another
    assert page["result_files.used"] == saved


def test_results_are_left_out_while_they_come_faster_than_allowed(host: Host, page: ControlPage) -> None:
    """Of 8 KiB each, with 16 KiB per second."""
    page["write_rate"] = 16 << 10
    host.engine.maps = "1,2000"  # type: ignore[union-attr]
    script = f"import time\nbegan = time.monotonic()\n{LAUNCHES.format(n=60)}\nprint(time.monotonic() - began)"
    run = under(host, page, script, **AUTO)
    launches, seconds = run.stdout.split()
    assert (run.status, launches) == (0, "60"), run.stderr
    assert 2 <= len(run.results) < 12 + 2 * float(seconds)
    assert page["over_rate"] > 0
    assert [line for line in run.written_log if line.endswith(" code write-rate")]
    (line,) = run.lines(r"\[budget\] write-rate thins limit 16384 used 16384: allow more with --max-write-rate")
    assert line


def test_a_rate_that_is_set_while_the_program_runs_counts_at_once(host: Host, page: ControlPage) -> None:
    """At one byte per second the first result by itself would keep the others out for hours."""
    page["write_rate"] = 1
    host.engine.maps = "1,2000"  # type: ignore[union-attr]
    script = f"""
import sys
from tui_probe.launcher.control import ControlPage
from pathlib import Path
page = ControlPage.open(Path({str(page.path)!r}))
context()
f = function(module(), "add__8")
w = word()
for rate in (1, 1 << 40, 2):
    page.set_limit("write_rate", rate)
    before = page["over_rate"]
    for _ in range(30): launch(f, w)
    print(rate, page["over_rate"] - before > 0)
"""
    run = under(host, page, script, **AUTO)
    assert run.stdout.splitlines() == ["1 True", f"{1 << 40} False", "2 True"], run.stderr
    limits = run.lines(r"\[budget\] write-rate thins limit (\d+) .*")
    assert [line.split()[4] for line in limits] == ["1", "2"]


def test_the_rate_is_no_limit_where_launches_are_named(host: Host, page: ControlPage) -> None:
    page["write_rate"] = 1
    assert len(under(host, page, LAUNCHES.format(n=9), TUI_PROBE_LAUNCHES="0-8").results) == 9
    assert page["over_rate"] == 0


def test_a_page_that_cannot_be_used(host: Host, tmp_path: Path) -> None:
    (tmp_path / "control").write_bytes(b"tuiprobe")
    run = host.python(LAUNCHES.format(n=3), TUI_PROBE_CONTROL=str(tmp_path / "control"))
    assert (run.status, run.stdout, len(run.results)) == (0, "3\n", 3), run.stderr
    (line,) = run.lines(r"\[budget\]")
    assert line.startswith(f"[budget] {tmp_path}/control cannot be used")


# The switch.


def test_launches_pass_while_the_switch_is_off(host: Host, page: ControlPage) -> None:
    page.switch(False)
    script = f"""
import sys
from tui_probe.launcher.control import ControlPage
from pathlib import Path
page = ControlPage.open(Path({str(page.path)!r}))
context()
f = function(module(), "add__8")
w = word()
for on in (False, True, False, True):
    page.switch(on)
    for _ in range(3): launch(f, w)
print(read(w))
"""
    run = under(host, page, script)
    assert (run.status, run.stdout) == (0, "12\n"), run.stderr
    assert (len(run.results), run.codes) == (6, ["switched-off"])
    assert len(run.lines(r"\[exec\] backup")) == 6
    assert page["turned_on"] == 2


def test_a_kernel_that_was_only_launched_while_off_is_not_prepared(host: Host, page: ControlPage) -> None:
    page.switch(False)
    run = under(host, page, LAUNCHES.format(n=3))
    assert (run.stdout, host.engine.prepared) == ("3\n", [])  # type: ignore[union-attr]
    assert run.lines(r"\[kernel\] 0 skipped .* reason recording is switched off")


def test_the_range_between_start_and_stop_of_the_profiler(host: Host) -> None:
    script = """
context()
f = function(module(), "add__8")
w = word()
launch(f, w)
for _ in range(2):
    call("cuProfilerStart")
    for _ in range(2): launch(f, w)
    call("cuProfilerStop")
    launch(f, w)
print(read(w))
"""
    run = host.python(script, TUI_PROBE_CAPTURE_RANGE="1")
    assert (run.status, run.stdout) == (0, "7\n"), run.stderr
    assert (len(run.results), run.codes) == (4, ["switched-off"])
    assert (run.calls.count("cuProfilerStart"), run.calls.count("cuProfilerStop")) == (2, 2)


def test_the_profilers_range_means_nothing_unless_asked_for(host: Host) -> None:
    script = LAUNCHES.format(n=3).replace("for _", "call('cuProfilerStart'); call('cuProfilerStop')\nfor _")
    assert len(host.python(script).results) == 3


# Memory.


@pytest.mark.parametrize(("total", "limit"), [(64 << 30, 4 << 30), (1 << 30, 64 << 20)])
def test_a_launch_takes_a_sixteenth_of_the_memory(host: Host, total: int, limit: int) -> None:
    host.engine.maps = "0,2000000000"  # type: ignore[union-attr]
    script = "context()\nlaunch(function(module(), 'add__8'), w := word())\nprint(read(w))"
    run = host.python(script, STUB_MEMORY=str(total), TUI_PROBE_MAX_TRACE_BYTES="none")
    assert run.stdout == "1\n", run.stderr
    (line,) = run.lines(r"\[exec\] backup.*more than the limit of \d+")
    assert int(re.findall(r"limit of (\d+)", line)[0]) == pytest.approx(limit, rel=0.01)


def test_the_last_gib_of_a_device_is_the_programs(host: Host) -> None:
    script = """
context()
f = function(module(), "add__8")
w, wanted = word(), c_uint64()
call("cuMemAlloc_v2", byref(wanted), c_size_t(7 << 30))
launch(f, w)
print(read(w))
"""
    run = host.python(script, STUB_MEMORY=str(8 << 30))
    assert run.stdout == "1\n", run.stderr
    assert len(run.results) == 0


def test_copies_of_images_take_half_of_the_hooks_memory(host: Host) -> None:
    """An image that would take more is not copied: its kernel runs as it is, and others are probed."""
    script = """
context()
large, small = function(module(PTX + b" " * 600_000), "add__8"), function(module(), "sub__8")
w = word()
launch(large, w)
launch(small, w)
print(read(w))
"""
    run = host.python(script, TUI_PROBE_MAX_HOST_MEMORY="1000000")
    assert (run.status, run.stdout, len(run.results)) == (0, "2\n", 1), run.stderr
    assert run.codes == ["host-limit"]
    run = host.python(
        script.replace("600_000", "400_000"), TUI_PROBE_MAX_HOST_MEMORY="1000000", TUI_PROBE_STAMP="Nov22"
    )
    assert len(list(run.root.glob("Nov22*/result/*.bin"))) == 2


def test_an_image_that_is_unloaded_makes_room_for_others(host: Host) -> None:
    script = """
context()
w = word()
for _ in range(5):
    code = module(PTX + b" " * 400_000)
    launch(function(code, "add__8"), w)
    call("cuModuleUnload", code)
print(read(w))
"""
    run = host.python(script, TUI_PROBE_MAX_HOST_MEMORY="1000000")
    assert (run.status, run.stdout, len(run.results), run.codes) == (0, "5\n", 5, []), run.stderr


def test_records_that_find_no_memory_on_their_way_are_written_at_once(host: Host) -> None:
    run = host.python(LAUNCHES.format(n=50), TUI_PROBE_MAX_HOST_MEMORY="200")
    assert (run.status, run.stdout, len(run.results)) == (0, "50\n", 50), run.stderr


def test_the_schedule_begins_anew_when_recording_is_switched_on(host: Host, page: ControlPage) -> None:
    """The hundredth launch is not due; the first ones after the switch are."""
    script = f"""
from tui_probe.launcher.control import ControlPage
from pathlib import Path
page = ControlPage.open(Path({str(page.path)!r}))
context()
f, w = function(module(), "add__8"), word()
for _ in range(100): launch(f, w)
page.switch(False)
launch(f, w)
page.switch(True)
for _ in range(8): launch(f, w)
"""
    run = under(host, page, script, **AUTO)
    assert run.status == 0, run.stderr
    numbers = [int(line.split(" launch ")[1].split()[0]) for line in run.lines(r"\[exec\] grid .* launch ")]
    assert [number for number in numbers if number > 100] == list(range(101, 109))
    assert len(numbers) < 70


def test_log_drops_and_counts_lines_of_loads(host: Host, page: ControlPage) -> None:
    page.set_limit("log_bytes", 8000)
    script = LAUNCHES.format(n=1) + "\nfor _ in range(300): call('cuModuleUnload', module())\n"
    run = under(host, page, script)
    assert run.status == 0, run.stderr
    assert (run.directory / "event.log").stat().st_size < 9500
    (dropped,) = run.lines(r"\[budget\] dropped lines mod \d+ bin \d+(?: time \d+)?: allow more with --max-log-bytes")
    mod, modules = int(dropped.split()[4]), len(run.lines(r"\[mod\]"))
    assert mod + modules == 602  # with the first module and its function


def test_new_kernels_share_a_row_once_the_log_has_no_reserve(host: Host, page: ControlPage) -> None:
    page.set_limit("log_bytes", 16000)
    script = "context()\nfor i in range(300): launch(function(module(PTX + b'//%d' % i), f'k{i}'))\n"
    run = under(host, page, script, **AUTO)
    assert run.status == 0, run.stderr
    assert (run.directory / "event.log").stat().st_size < 24000
    *_, (status, _, reason) = run.outcomes()
    assert status == "skipped"
    assert reason == "too many different kernels: the remaining kernels are counted together"
    assert run.lines(r"\[exit\] launches 300 ")
