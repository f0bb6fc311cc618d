"""Results stop while little of the trace's disk is free, and continue when there is room; the program never notices."""

from __future__ import annotations

from pathlib import Path

import pytest

from .conftest import Host, Run, compile_c

HERE = Path(__file__).resolve().parent
TOTAL = 100 << 30
PROGRAM = """
import os
from pathlib import Path
def disk(free): # in one step: the hook may be looking
    Path(os.environ["SMALL_DISK"] + ".new").write_text(f"{free} {100 << 30}")
    os.replace(os.environ["SMALL_DISK"] + ".new", os.environ["SMALL_DISK"])
context()
f = function(module(), "add__8")
w = word()
"""


@pytest.fixture(scope="module")
def small_disk(tmp_path_factory: pytest.TempPathFactory) -> Path:
    library = tmp_path_factory.mktemp("disk") / "small_disk.so"
    compile_c(HERE / "small_disk.c", library, "-shared")
    return library


def run_on(library: Path, host: Host, free: int, script: str, least: str | None, **more: str) -> Run:
    """A program whose traces are on a disk of 100 GiB, with that many bytes free at first."""
    disk_size = host.directory / "disk.txt"
    disk_size.write_text(f"{free} {TOTAL}")
    environment = {"LD_PRELOAD": f"{library} {host.built.hook}", "SMALL_DISK": str(disk_size)} | more
    environment["TUI_PROBE_MIN_FREE_DISK"] = least or ""  # empty: as if no one had said anything
    return host.python(PROGRAM + script, **environment)


def reasons(run: Run) -> set[str]:
    return {line.split(" reason ")[1] for line in run.lines(r"\[exec\] backup")}


@pytest.mark.parametrize(
    ("free", "least", "reason"),
    [
        ((5 << 30) - 1, None, "disk is nearly full (less than 2 GiB or 5 % free)"),
        ((8 << 30) - 1, "8589934592", "disk is nearly full (less than 8 GiB free)"),
        ((3 << 30) - 1, "3G", "disk is nearly full (less than 3 GiB free)"),
        ((5 << 30) - 1, "7X", "disk is nearly full (less than 2 GiB or 5 % free)"),  # as if it said nothing
        ((20 << 30) - 1, "20%", "disk is nearly full (less than 20 % free)"),
        ((3 << 30) - 1, "3221225472,2%", "disk is nearly full (less than 3 GiB or 2 % free)"),
        ((2 << 30) - 1, "1000,2%", "disk is nearly full (less than 1000 bytes or 2 % free)"),
    ],
)
def test_nothing_is_recorded_on_a_disk_that_is_nearly_full(
    host: Host, small_disk: Path, free: int, least: str | None, reason: str
) -> None:
    run = run_on(small_disk, host, free, "for _ in range(9): launch(f, w)\nprint(read(w))", least)
    assert (run.status, run.stdout, run.stderr) == (0, "9\n", "")
    assert (run.results, reasons(run)) == ([], {reason})
    (paused,) = run.lines(r"\[exec\] save-paused")
    assert f"{reason}: {free} of {TOTAL} bytes are free" in paused
    assert "--min-free-disk" in paused
    assert run.lines(r"\[exit\] launches 9 probed 0 dropped 0")


@pytest.mark.parametrize(
    ("free", "least"), [(6 << 30, None), (0, "0"), (1 << 30, "1073737728"), ((1 << 30) + 4096, "1%")]
)
def test_all_is_recorded_while_enough_is_free(host: Host, small_disk: Path, free: int, least: str | None) -> None:
    run = run_on(small_disk, host, free, "for _ in range(9): launch(f, w)\nprint(read(w))", least)
    assert (run.status, run.stdout) == (0, "9\n"), run.stderr
    assert (len(run.results), reasons(run)) == (9, set())
    assert not run.lines(r"\[exec\] save-(paused|resumed|full)")


def test_recording_goes_on_when_there_is_room_again(host: Host, small_disk: Path) -> None:
    script = """
launch(f, w)
wait_for(lambda: logged("[exec] save "))
disk(1 << 30)
time.sleep(0.15)
launch(f, w)
wait_for(lambda: logged("[exec] save-paused"))
launch(f, w)
disk((5 << 30) + 1000) # not yet: the next result would take that
time.sleep(0.3)
launch(f, w)
print(logged("[exec] save-resumed"))
disk(9 << 30)
wait_for(lambda: logged("[exec] save-resumed"))
launch(f, w)
print(read(w))
"""
    run = run_on(small_disk, host, 50 << 30, script, None)
    assert (run.status, run.stdout) == (0, "0\n5\n"), run.stderr
    assert len(run.results) == 2
    assert len(run.lines(r"\[exec\] backup")) == 2
    assert [len(run.lines(rf"\[exec\] save-{word}")) for word in ("paused", "resumed")] == [1, 1]
    assert run.lines(r"\[exit\] launches 5 probed 3 dropped 1 reason disk is nearly full")


def test_a_result_that_is_too_large_for_what_is_left(host: Host, small_disk: Path) -> None:
    """The limit holds after the file is written, not only before."""
    host.engine.maps = "0,64"  # type: ignore[union-attr]
    script = """
launch(f, w)
wait_for(lambda: logged("[exec] save "))
launch(f, w, grid=96, block=1024)
wait_for(lambda: logged("[exec] save-paused"))
disk(3 << 30)
wait_for(lambda: logged("[exec] save-resumed"))
launch(f, w, grid=96, block=1024)
print(read(w))
"""
    run = run_on(small_disk, host, (2 << 30) + (1 << 20), script, "2147483648")
    assert (run.status, run.stdout) == (0, "3\n"), run.stderr
    assert len(run.results) == 2
    assert not list((run.directory / "result").glob(".*"))


def test_dropped_results_take_no_room_in_the_trace(host: Host, small_disk: Path) -> None:
    """The reservation of a result is free again when the disk had no room for it."""
    script = """
launch(f, w)
wait_for(lambda: logged("[exec] save result") == 1)
for _ in range(4):
    disk(9 << 30)
    wait_for(lambda: logged("[exec] save-paused") == logged("[exec] save-resumed"))
    before = logged("[exec] save-paused")
    disk(0)
    time.sleep(0.15)
    launch(f, w)
    wait_for(lambda: logged("[exec] save-paused") > before)
disk(9 << 30)
wait_for(lambda: logged("[exec] save-resumed") == 4)
launch(f, w)
print(read(w))
"""
    run = run_on(small_disk, host, 9 << 30, script, None, TUI_PROBE_MAX_RESULT_FILES="2")
    assert (run.status, run.stdout) == (0, "6\n"), run.stderr
    assert len(run.results) == 2


def test_benchmarks_pause_and_go_on(host: Host, small_disk: Path) -> None:
    script = """
launch(f, w)
print(logged("[exec] save-paused"))
disk(9 << 30)
wait_for(lambda: logged("[exec] save-resumed"))
launch(function(module(), "sub__8"), w)
"""
    run = run_on(small_disk, host, 1 << 30, script, None, TUI_PROBE_BENCHMARK="1", TUI_PROBE_SAVE_RESULTS="1")
    assert (run.status, run.stdout) == (0, "1\n"), run.stderr
    assert len(run.results) == 1


def test_a_disk_that_does_not_tell_its_size_is_used(host: Host, small_disk: Path) -> None:
    """As some network file systems: results continue until a write fails."""
    script = "launch(f, w)\nos.unlink(os.environ['SMALL_DISK'])\nlaunch(f, w)\nprint(read(w))"
    run = run_on(small_disk, host, TOTAL, script, None)
    assert (run.status, run.stdout, len(run.results)) == (0, "2\n", 2), run.stderr


def test_a_user_who_has_no_more_blocks(host: Host, small_disk: Path) -> None:
    """A quota is not free space: only writing tells."""
    script = "launch(f, w)\nwait_for(lambda: logged('[exec] save-failed'))\nlaunch(f, w)\nprint(read(w))"
    run = run_on(small_disk, host, 50 << 30, script, None, SMALL_DISK_QUOTA="1")
    assert (run.status, run.stdout, run.stderr) == (0, "2\n", "")
    assert (run.results, run.codes) == ([], ["disk-full"])
    assert all(reason.endswith("Disk quota exceeded") for reason in reasons(run))
    assert not list((run.directory / "result").iterdir())
