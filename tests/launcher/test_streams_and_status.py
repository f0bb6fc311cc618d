"""A target under ``tui-probe run`` behaves as it does without tui-probe: output, input, exit status."""

from __future__ import annotations

import hashlib
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from .conftest import Runner

Script = Callable[[str], list[str]]


def lines_after_the_first(stderr: bytes) -> bytes:
    """Return the text after the line that names the trace directory."""
    first, _, remaining = stderr.partition(b"\n")
    assert first.startswith(b"[info] trace in trace/")
    return remaining


@pytest.fixture
def launching(tool: Runner) -> Runner:
    """The tool with targets that leave a trace directory."""
    tool.environment["FAKE_LAUNCHES"] = "*"
    return tool


@pytest.mark.parametrize("status", [0, 3, 255])
def test_the_exit_status_is_the_targets(launching: Runner, script: Script, status: int) -> None:
    result = launching.run(script(f"import sys; print('out'); print('err', file=sys.stderr); sys.exit({status})"))
    assert result.returncode == status
    assert result.stdout == b"out\n"
    assert lines_after_the_first(result.stderr) == b"err\n"


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSEGV, signal.SIGTERM])
def test_death_by_a_signal_is_128_and_its_number(launching: Runner, script: Script, number: int) -> None:
    result = launching.run(script(f"import os; print('last words', flush=True); os.kill(os.getpid(), {number})"))
    assert result.returncode == 128 + number
    assert result.stdout == b"last words\n"


def test_every_byte_passes_unchanged(launching: Runner, script: Script) -> None:
    result = launching.run(script("import sys; sys.stdout.buffer.write(bytes(range(256)) * 999)"))
    assert result.stdout == bytes(range(256)) * 999


def test_ten_megabytes_on_stderr_while_nobody_reads_stdout(launching: Runner, script: Script) -> None:
    result = launching.run(script("import os\nfor _ in range(160): os.write(2, bytes(65536))\nos.write(1, b'done')"))
    assert result.stdout == b"done"
    assert lines_after_the_first(result.stderr) == bytes(160 * 65536)


def test_output_arrives_at_once_not_at_the_end(launching: Runner, script: Script) -> None:
    command = script("print('ready', flush=True); input(); print('bye')")
    with launching.start(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
        process.stdin.write(b"continue\n")
        process.stdin.close()
        assert process.stdout.read() == b"bye\n"
    assert process.returncode == 0


def test_stdin_reaches_the_target(launching: Runner, script: Script) -> None:
    data = os.urandom(300_000)
    command = script("import hashlib, sys; print(hashlib.sha1(sys.stdin.buffer.read()).hexdigest())")
    result = launching.run(command, stdin=None, input=data)
    assert result.stdout.decode().strip() == hashlib.sha1(data).hexdigest()


def test_a_target_that_closes_its_stdout(launching: Runner, script: Script) -> None:
    result = launching.run(script("import os; os.write(1, b'a'); os.close(1); os.write(2, b'b')"))
    assert (result.returncode, result.stdout) == (0, b"a")
    assert lines_after_the_first(result.stderr) == b"b"


def test_stdout_and_stderr_that_are_one_file_keep_their_order(launching: Runner, script: Script) -> None:
    command = script("import os\nfor i in range(500): os.write(1 + i % 2, b'%d ' % i)")
    result = launching.run(command, capture_output=False, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    assert lines_after_the_first(result.stdout) == b"".join(b"%d " % i for i in range(500))


def test_closed_reader_ends_target_as_without_hook(launching: Runner) -> None:
    with launching.start(["yes"], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.read(10)
        process.stdout.close()
    assert process.returncode == 128 + signal.SIGPIPE


def test_a_child_that_keeps_the_stream_open_does_not_hold_up_the_run(launching: Runner) -> None:
    """The run ends with the target; what its child says later still arrives, and the stream ends with the child."""
    gate = launching.folder / "gate"
    os.mkfifo(gate)
    with launching.start(["sh", "-c", "(cat gate; echo child) & echo parent"], stdout=subprocess.PIPE) as process:
        assert process.wait() == 0
        gate.write_text("go\n")
        assert process.stdout is not None
        assert process.stdout.read() == b"parent\ngo\nchild\n"


def test_unwritable_trace_is_reported_and_changes_nothing(launching: Runner, script: Script) -> None:
    in_the_way = "import os, pathlib; [(t / '.run.json.tmp').mkdir() for t in pathlib.Path('trace').glob('*_*_*')]"
    result = launching.run(script(f"{in_the_way}; os._exit(7)"))
    assert result.returncode == 7
    warning = lines_after_the_first(result.stderr).decode()
    assert warning.startswith("tui-probe: the trace is incomplete (Is a directory)")
    assert warning.split()[-1] == result.stderr.decode().splitlines()[0].split()[-1]


def test_descriptors_that_the_caller_hands_on_stay_open(launching: Runner, script: Script) -> None:
    reading, writing = os.pipe()
    command = script(f"import os; os.write({writing}, b'through')")
    launching.run(command, pass_fds=(writing,))
    os.close(writing)
    assert os.read(reading, 100) == b"through"
    os.close(reading)


def test_a_stdout_that_was_closed_before_the_start(launching: Runner, script: Script) -> None:
    command = launching.command("run", "-p", "block_sched", "--sim", "--no-report", *script("import sys; sys.exit(7)"))
    result = subprocess.run(
        ["sh", "-c", 'exec "$@" >&-', "sh", *command],
        cwd=launching.folder, env=launching.environment, capture_output=True, timeout=60,
    )  # fmt: skip
    assert result.returncode == 7
    assert lines_after_the_first(result.stderr) == b""


@pytest.mark.parametrize(
    ("name", "content", "status", "words"),
    [
        ("not-there", None, 127, "command not found"),
        ("./not-there", None, 127, "command not found\n"),
        ("plain", "no program", 127, "plain: command not found; to run the file in this directory, use ./plain\n"),
        ("./plain", "no program", 126, "not executable"),
        ("./", None, 126, "directory"),
    ],
)
def test_a_command_that_cannot_be_executed(
    tool: Runner, name: str, content: str | None, status: int, words: str
) -> None:
    if content is not None:
        (tool.folder / name).write_text(content)
    result = tool.run([name])
    assert (result.returncode, result.stdout) == (status, b"")
    assert result.stderr.startswith(b"tui-probe: error: ")
    assert words in result.stderr.decode()
    assert not (tool.folder / "trace").exists()


def test_a_script_whose_interpreter_is_missing(tool: Runner) -> None:
    broken = tool.folder / "broken"
    broken.write_text("#!/nowhere/interpreter\n")
    broken.chmod(0o755)
    result = tool.run([str(broken)])
    assert result.returncode == 127
    assert result.stderr.splitlines()[-1].startswith(b"tui-probe: error: ")


def test_without_options_the_seeds_way_of_calling(launching: Runner, script: Script) -> None:
    """Options end at the command even without "--", and the command's own options are left unchanged."""
    command = script("import sys; print(sys.argv[1:])")
    result = launching(
        "run", "-p", "block_sched", "--tracedir", "here", "--sim", "--no-report", *command, "-p", "--", "x"
    )
    assert result.stdout == b"['-p', '--', 'x']\n"
    assert result.returncode == 0
    directory = launching.folder / result.stderr.decode().split("\n")[0].strip().split(" ")[-1]
    assert directory.is_dir()
    assert directory.parent == launching.folder / "here"


def test_python_prints_as_without_hook(launching: Runner, script: Script) -> None:
    command = script("import sys, os; print(sys.stdout.isatty(), os.getcwd(), sys.argv)")
    unprofiled = subprocess.run(command, cwd=launching.folder, stdin=subprocess.DEVNULL, capture_output=True)
    assert launching.run(command).stdout == unprofiled.stdout
    assert sys.executable in command
