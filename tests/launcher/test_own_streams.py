"""Files, devices and closed descriptors are the target's own; what a pump cannot pass on is an error."""

from __future__ import annotations

import contextlib
import os
import re
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from .conftest import RUN
from .test_traces import record_of

if TYPE_CHECKING:
    from .conftest import Runner

Script = Callable[[str], list[str]]
REDIRECTION = re.compile(r"([12]?)(>&|>>|>)(\S+)")
"""Of a shell: stream, way and file, or another stream."""

# What the target finds at its standard streams, on the one that is open.
KINDS = """
import os, sys
def kind(descriptor):
    try:
        return oct(os.fstat(descriptor).st_mode)[:-4]
    except OSError:
        return "closed"
os.write(int(sys.argv[1]), " ".join(map(kind, range(3))).encode())
"""


@pytest.fixture
def launching(tool: Runner) -> Runner:
    tool.environment["FAKE_LAUNCHES"] = "*"
    return tool


def redirected(tool: Runner, redirection: str, target: list[str]) -> subprocess.CompletedProcess[str]:
    """Run the target with its streams as a shell redirects them; only for closed ones there is a shell."""
    command = tool.command(*RUN, "--no-report", "--", *target)
    streams: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with contextlib.ExitStack() as files:
        if "&-" in redirection:
            command = ["sh", "-c", f'"$@" {redirection}', "sh", *command]
        else:
            for number, way, name in REDIRECTION.findall(redirection):
                stream = {"": "stdout", "1": "stdout", "2": "stderr"}[number]
                mode = {">": "wb", ">>": "ab", ">&": ""}[way]
                file = files.enter_context((tool.folder / name).open(mode)) if mode else subprocess.STDOUT
                streams[stream] = file
        return subprocess.run(
            command, cwd=tool.folder, env=tool.environment, stdin=subprocess.DEVNULL, text=True, timeout=60, **streams
        )


def trace_of(tool: Runner) -> Path:
    (trace,) = (tool.folder / "trace").glob("*_*_*")
    return trace


@pytest.mark.parametrize("descriptor", [1, 2])
def test_full_device_fails_program_as_without_hook(launching: Runner, descriptor: int) -> None:
    if not Path("/dev/full").exists():
        pytest.skip("needs /dev/full")
    done = redirected(launching, f"{descriptor}>/dev/full", ["sh", "-c", f"echo hello >&{descriptor} || exit 5"])
    assert done.returncode == 5


@pytest.mark.parametrize("redirection", ["<&-", ">&-", "2>&-", "<&- >&-", "1>/dev/null", "2>>file", ">file 2>&1"])
def test_stream_kinds_are_as_without_hook(launching: Runner, script: Script, redirection: str) -> None:
    free = 2 if "1>" in redirection or (">&- " in f"{redirection} " and "2>" not in redirection) else 1
    target = [*script(KINDS), str(free)]
    unprofiled = subprocess.run(
        ["sh", "-c", f'"$@" {redirection}', "sh", *target],
        cwd=launching.folder, stdin=subprocess.DEVNULL, capture_output=True, text=True,
    )  # fmt: skip
    file = launching.folder / "file"
    expected = unprofiled.stdout + unprofiled.stderr + (file.read_text() if file.exists() else "")
    file.unlink(missing_ok=True)
    done = redirected(launching, redirection, target)
    got = (done.stdout or "") + (done.stderr or "") + (file.read_text() if file.exists() else "")
    assert expected in got


def test_program_seeks_and_truncates_its_own_file(launching: Runner, script: Script) -> None:
    source = "import os; os.write(1, b'abcdef'); os.lseek(1, 2, 0); os.write(1, b'XY'); os.ftruncate(1, 5)"
    done = redirected(launching, ">file", script(source))
    assert done.returncode == 0
    assert (launching.folder / "file").read_text() == "abXYe"
    assert (trace_of(launching) / "stdout.log").read_text() == "abXYe"


def test_only_what_was_appended_is_copied(launching: Runner) -> None:
    (launching.folder / "file").write_text("before\n")
    redirected(launching, ">>file", ["sh", "-c", "echo new"])
    assert (launching.folder / "file").read_text() == "before\nnew\n"
    assert (trace_of(launching) / "stdout.log").read_text() == "new\n"


def test_one_file_of_both_streams_keeps_their_order(launching: Runner) -> None:
    redirected(launching, ">file 2>&1", ["sh", "-c", "for i in 1 2 3; do echo out $i; echo err $i >&2; done"])
    first, *lines = (launching.folder / "file").read_text().splitlines()
    assert first == f"[info] trace in trace/{trace_of(launching).name}"
    assert lines == [f"{name} {i}" for i in (1, 2, 3) for name in ("out", "err")]
    assert (trace_of(launching) / "stdout.log").read_text().splitlines() == lines


def test_file_size_limit_is_the_programs(launching: Runner, script: Script) -> None:
    """The write that a limit refuses fails in the program."""
    source = """
import errno, os, resource, signal, sys
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (8, 8))
os.write(1, b"12345678")
try:
    os.write(1, b"9")
except OSError as error:
    os._exit(5 if error.errno == errno.EFBIG else 6)
os._exit(0)
"""
    assert redirected(launching, ">file", script(source)).returncode == 5


def test_file_size_limit_of_the_shell_leaves_the_program_running(launching: Runner) -> None:
    """The limit of one block is too small even for the control page."""
    command = launching.command(*RUN, "--no-report", "--", "sh", "-c", "echo out; exit 3")
    environment = {**launching.environment, "PYTHONDONTWRITEBYTECODE": "1"}  # the limit would cut off what others read
    done = subprocess.run(
        ["sh", "-c", 'ulimit -S -f 1; "$@"', "sh", *command],
        cwd=launching.folder, env=environment, capture_output=True, text=True, timeout=60,
    )  # fmt: skip
    assert (done.returncode, done.stdout) == (3, "out\n"), done.stderr


def test_reader_that_left_fails_the_next_write(launching: Runner) -> None:
    """Not only the write after the next one: the program waits for the reader to leave, and then writes once."""
    gate = launching.folder / "gate"
    target = [
        "sh",
        "-c",
        "trap '' PIPE; echo 1; while ! test -e gate; do sleep 0.01; done; sleep 0.3; echo 2 || exit 6",
    ]
    with launching.start(target, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"1\n"
        process.stdout.close()
        gate.touch()
    assert process.returncode == 6


def test_output_that_was_lost_fails_the_run(launching: Runner, script: Script) -> None:
    """The program has ended with 0 before anybody could tell it."""
    source = "import os; os.write(1, b'x' * 60000); os.write(1, b'y' * 60000); open('done', 'w')"
    reading, writing = os.pipe()
    with launching.start(script(source), stdout=writing, stderr=subprocess.PIPE) as process:
        os.close(writing)
        assert process.stderr is not None
        while not (launching.folder / "done").exists():
            os.sched_yield()
        os.close(reading)
        errors = process.stderr.read().decode()
    assert process.returncode == 1
    assert "tui-probe: part of the program's stdout was lost (Broken pipe)" in errors
    assert record_of(trace_of(launching))["exit_status"] == 0


def test_trace_line_precedes_what_the_program_says_first(launching: Runner, script: Script) -> None:
    """Its hook makes the trace with the first launch, which comes later."""
    source = "import os, sys; os.write(2, b'mine\\n'); os.environ['LATE'] = '1'; os.execv('/bin/true', ['/bin/true'])"
    launching.environment["FAKE_LAUNCHES"] = "true"
    for redirection in ("", "2>file"):
        done = redirected(launching, redirection, script(source))
        lines = (done.stderr or (launching.folder / "file").read_text()).splitlines()
        assert lines[0].startswith("[info] trace in trace/"), (redirection, lines)
        assert "mine" in lines[1:]
        assert (launching.folder / lines[0].split()[-1]).is_dir()
