"""Processes begin, fork and end in many ways; records of what was launched survive all but a kill."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from .conftest import Host, Run, compile_c

HERE = Path(__file__).resolve().parent
LAUNCH = "context()\nf = function(module(), 'add__8')\nw = word()\nlaunch(f, w)\n"


@pytest.mark.parametrize(
    ("ending", "status"),
    [
        ("", 0),
        ("import sys; sys.exit(3)", 3),
        ("os._exit(4)", 4),
        ("ctypes.CDLL(None).exit(5)", 5),
        ("raise SystemExit(8)", 8),
    ],
)
def test_every_orderly_end_saves_everything(host: Host, ending: str, status: int) -> None:
    check_end(host.python(LAUNCH + ending), status)


@pytest.mark.parametrize(("ending", "status"), [("_exit", 4), ("_Exit", 6), ("quick_exit", 7)])
def test_preloaded_hook_comes_before_the_ends_that_dlsym_finds(host: Host, ending: str, status: int) -> None:
    check_end(host.python(f"{LAUNCH}ctypes.CDLL(None).{ending}({status})", LD_AUDIT=""), status)


@pytest.mark.parametrize("flags", ["-fplt -Wl,-z,lazy", "-fno-plt -Wl,-z,now", "-fplt -Wl,-z,now"])
@pytest.mark.parametrize(("ending", "status"), [("_exit", 4), ("_Exit", 6), ("quick_exit", 7), ("by_pointer", 8)])
def test_opened_hook_redirects_references_to_the_ends(host: Host, flags: str, ending: str, status: int) -> None:
    program = host.directory / "program"
    compile_c(HERE / "opening_program.c", program, *flags.split())
    run = host.command(str(program), "plain", "libcuda.so.1", ending, str(status))
    check_end(run, status)


def check_end(run: Run, status: int) -> None:
    assert run.status == status
    assert len(run.results) == 1
    assert run.log[-2:] == [f"[exit] status {status}", "[exit] launches 1 probed 1 dropped 0 reason -"]


def started(host: Host, script: str) -> subprocess.Popen[str]:
    """A program that has come to the end of the script and now sleeps."""
    process = host.start([sys.executable, "-c", f"from host import *\n{script}print('up', flush=True)\ntime.sleep(60)"])
    assert process.stdout
    assert process.stdout.readline() == "up\n"
    return process


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_signal_saves_everything_and_still_kills(host: Host, number: signal.Signals) -> None:
    process = started(host, LAUNCH)
    process.send_signal(number)
    run = host.finish(process)
    assert run.status == -number
    assert len(run.results) == 1
    assert run.log[-2:] == [f"[exit] signal {number}", "[exit] launches 1 probed 1 dropped 0 reason -"]


def test_an_interrupted_python_saves_everything(host: Host) -> None:
    """It handles the signal, and then sends it to itself with nothing to handle it."""
    process = started(host, LAUNCH + "[launch(f, w) for _ in range(30)]\n")
    process.send_signal(signal.SIGINT)
    run = host.finish(process)
    assert run.status == -signal.SIGINT
    assert "KeyboardInterrupt" in run.stderr
    assert len(run.results) == 31
    assert run.log[-2:] == ["[exit] signal 2", "[exit] launches 31 probed 31 dropped 0 reason -"]


def test_a_signal_to_oneself_that_is_handled_ends_nothing(host: Host) -> None:
    run = host.python(
        f"import signal\nsignal.signal(signal.SIGTERM, lambda *_: None)\n{LAUNCH}"
        "os.kill(os.getpid(), signal.SIGTERM)\nlaunch(f, w)\nos.kill(os.getpid(), 0)\n"
    )
    assert run.status == 0, run.stderr
    assert run.log[-1] == "[exit] launches 2 probed 2 dropped 0 reason -"


def test_handler_of_the_program_is_left_to_it(host: Host) -> None:
    script = """
import signal, sys
signal.signal(signal.SIGTERM, lambda *_: sys.exit(9))
"""
    process = started(host, script + LAUNCH)
    process.send_signal(signal.SIGTERM)
    run = host.finish(process)
    assert run.status == 9
    assert len(run.results) == 1


def test_trace_of_a_killed_process_is_readable(host: Host) -> None:
    process = started(host, LAUNCH + "wait_for(lambda: logged('[exec] save'))\n")
    process.kill()
    run = host.finish(process)
    assert run.status == -signal.SIGKILL
    assert len(run.results) == 1
    assert run.lines(r"\[exec\] succeed 0")
    assert not run.lines(r"\[exit\]")


def test_child_of_a_process_that_has_launched_is_not_traced(host: Host) -> None:
    run = host.python(
        LAUNCH
        + """
child = os.fork()
if child == 0:
    launch(f, w)
    os._exit(0)
print(os.waitpid(child, 0)[1], read(w))
"""
    )
    assert run.stdout == "0 1\n", run.stderr
    assert run.lines(r"\[exit\] launches 1 probed 1 dropped 0")


def test_child_killed_by_a_signal_that_its_parent_watches(host: Host) -> None:
    run = host.python(
        LAUNCH
        + """
import signal, time
child = os.fork()
if child == 0:
    time.sleep(60)
    os._exit(0)
os.kill(child, signal.SIGTERM)
print(os.waitpid(child, 0)[1] == signal.SIGTERM)
"""
    )
    assert run.stdout == "True\n", run.stderr
    assert run.status == 0


def test_children_that_launch_have_traces_of_their_own(host: Host) -> None:
    run = host.python(
        f"""
child = os.fork()
if child == 0:
    exec({LAUNCH!r})
    os._exit(0)
os.waitpid(child, 0)
print(child)
"""
    )
    assert run.directory.name.endswith(f"_{int(run.stdout)}")
    assert not run.directory.name.startswith("Nov21_010203")
    assert re.fullmatch(r"[A-Z][a-z]{2}\d{2}_\d{6}_\d+", run.directory.name)
    assert len(run.results) == 1


def test_process_started_by_another_program_names_its_trace_itself(host: Host) -> None:
    script = "from host import *\n" + LAUNCH.replace("'", '"')
    run = host.command("sh", "-c", f"{sys.executable} -c '{script}'; true")
    assert not run.directory.name.startswith("Nov21_010203")
    assert len(run.results) == 1


def test_program_that_replaces_itself_keeps_both_traces(host: Host) -> None:
    again = f"from host import *\n{LAUNCH}"
    saved = "wait_for(lambda: logged('[exec] save'))\n"
    run = host.python(f"{LAUNCH}{saved}import sys; os.execv(sys.executable, [sys.executable, '-c', {again!r}])")
    assert run.status == 0
    assert len(run.directories) == 2


def test_process_that_only_forks_leaves_nothing(host: Host) -> None:
    run = host.command("sh", "-c", "true & wait; (exit 3)")
    assert (run.status, run.directories) == (3, [])


def test_allocations_leave_no_trace(host: Host) -> None:
    run = host.python("context()\nmodule()\nword()")
    assert (run.status, run.directories) == (0, [])


def test_exit_from_another_library_while_threads_launch(host: Host, tmp_path: Path) -> None:
    library = tmp_path / "libexiting.so"
    compile_c(HERE / "exiting_library.c", library, "-shared")
    program = tmp_path / "exiting"
    compile_c(HERE / "exiting_program.c", program, str(host.built.hook), "-rdynamic")
    run = host.command(str(program), str(library), LD_LIBRARY_PATH=str(host.built.hook.parent))
    assert run.status == 11, run.stderr
    (end,) = run.lines(r"\[exit\] launches")
    launches, probed, dropped = map(int, re.findall(r"(?:launches|probed|dropped) (\d+)", end))
    assert launches >= probed > 0
    assert (dropped, len(run.results)) == (0, probed)


def test_interrupted_program_does_not_go_on(host: Host, tmp_path: Path) -> None:
    program = tmp_path / "sleeping"
    compile_c(HERE / "sleeping_program.c", program, str(host.built.hook))
    process = host.start([str(program)], LD_LIBRARY_PATH=str(host.built.hook.parent), STUB_SLOW="200")
    assert process.stdout
    assert process.stdout.readline() == "up\n"
    process.send_signal(signal.SIGTERM)
    run = host.finish(process)
    assert (run.status, run.stdout) == (-signal.SIGTERM, "")
    assert len(run.results) == 1


def test_signal_while_the_driver_holds_a_lock(host: Host, tmp_path: Path) -> None:
    """Saving the records needs the lock, so the interrupted thread continues in the end."""
    program = tmp_path / "sleeping"
    compile_c(HERE / "sleeping_program.c", program, str(host.built.hook))
    log = str(tmp_path / "calls")
    process = host.start(
        [str(program), "hold"], LD_LIBRARY_PATH=str(host.built.hook.parent), STUB_HOLD="60000", STUB_LOG=log
    )
    assert process.stdout
    assert process.stdout.readline() == "up\n"
    process.send_signal(signal.SIGTERM)
    run = host.finish(process)
    assert run.status == -signal.SIGTERM
    assert len(run.results) == 1
    assert run.lines(r"\[exit\] launches 1 probed 1 dropped 0 reason -")


def test_signal_while_launching(host: Host, tmp_path: Path) -> None:
    program = tmp_path / "launching"
    compile_c(HERE / "launching_program.c", program, str(host.built.hook))
    process = host.start([str(program)], LD_LIBRARY_PATH=str(host.built.hook.parent))
    assert process.stdout
    assert process.stdout.readline() == "up\n"
    process.send_signal(signal.SIGINT)
    run = host.finish(process)
    assert run.status == -signal.SIGINT
    assert run.lines(r"\[exit\] launches \d+ probed \d+ dropped 0 reason -")
