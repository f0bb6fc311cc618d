"""The life of the server's process: started once, by itself, ended with its program; and failures to start."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.simgpu import ptx

PREAMBLE = """
import ctypes, os, sys
cuda = ctypes.CDLL("libcuda.so.1")
context, module, function = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_void_p()
def load(path, name):
    return (cuda.cuModuleLoad(ctypes.byref(module), path.encode())
            or cuda.cuModuleGetFunction(ctypes.byref(function), module, name.encode()))
def launch():
    return cuda.cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, None, None, None)
def start():
    return cuda.cuInit(0) or cuda.cuCtxCreate_v2(ctypes.byref(context), 0, 0)
def say(*values):
    print(*values, flush=True)
"""


@pytest.fixture(scope="module")
def environment(environment: dict[str, str]) -> dict[str, str]:
    """The same with a server that Python starts, not a fork: its start is what these tests are about."""
    return {**environment, "TUI_PROBE_SIM_PYTHON": sys.executable}


@pytest.fixture
def kernels(tmp_path: Path) -> Path:
    path = tmp_path / "kernels.ptx"
    path.write_text(ptx.HEAD + ptx.NOTHING + ptx.FOREVER)
    return path


def run(environment: dict[str, str], program: str, *arguments: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", PREAMBLE + program, *map(str, arguments)]
    return subprocess.run(command, env=environment, capture_output=True, text=True)


def begin(environment: dict[str, str], program: str, *arguments: object) -> subprocess.Popen[str]:
    """Start a program and wait for its first line."""
    command = [sys.executable, "-c", PREAMBLE + program, *map(str, arguments)]
    process = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    return process


def servers(mark: str) -> list[int]:
    """The servers whose environment has the variable ``MARK`` set to this."""
    requests = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                command, variables = (entry / "cmdline").read_bytes(), (entry / "environ").read_bytes()
            except OSError:  # it has ended, or is not ours
                continue
            if b"tui_probe.simgpu" in command and f"MARK={mark}".encode() in variables.split(b"\0"):
                requests.append(int(entry.name))
    return requests


def wait_for_end(process: int) -> None:
    """Wait until a process that is not a child of this one has ended."""
    try:
        descriptor = os.pidfd_open(process)
    except ProcessLookupError:
        return
    ready, _, _ = select.select([descriptor], [], [], 30)
    os.close(descriptor)
    assert ready, f"process {process} still runs"


@pytest.fixture
def marked(environment: dict[str, str], tmp_path: Path) -> tuple[dict[str, str], str]:
    """An environment by which the servers of a test are found."""
    return {**environment, "MARK": str(tmp_path)}, str(tmp_path)


def test_one_server_for_a_program_that_ends_with_it(marked: tuple[dict[str, str], str], kernels: Path) -> None:
    environment, mark = marked
    program = "code = start() or load(sys.argv[1], 'nothing') or launch()\nsay(code or 'ready')\nsys.stdin.read()"
    command = [sys.executable, "-c", PREAMBLE + program, str(kernels)]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, env=environment, stdin=pipe, stdout=pipe, text=True) as process:
        assert process.stdout is not None
        assert process.stdin is not None
        assert process.stdout.readline() == "ready\n"
        (server,) = servers(mark)
        process.stdin.close()
    wait_for_end(server)
    assert process.returncode == 0


def test_a_program_killed_while_a_kernel_runs_takes_its_server_along(
    marked: tuple[dict[str, str], str], kernels: Path
) -> None:
    environment, mark = marked
    process = begin(environment, "start(); load(sys.argv[1], 'forever'); say('ready'); launch()", kernels)
    (server,) = servers(mark)
    process.kill()
    process.communicate()
    wait_for_end(server)


def test_a_server_that_dies_fails_the_launch_and_does_not_hang(
    marked: tuple[dict[str, str], str], kernels: Path
) -> None:
    environment, mark = marked
    program = """
start(); load(sys.argv[1], 'forever'); say('ready')
say(launch(), cuda.cuCtxSynchronize(), launch())
"""
    process = begin(environment, program, kernels)
    (server,) = servers(mark)
    os.kill(server, signal.SIGKILL)
    output, errors = process.communicate(timeout=30)
    assert output == "719 719 719\n"
    assert errors.startswith("tui-probe simulated GPU: its server (")
    assert errors.endswith(") has ended: no kernel runs in this process\n")


def test_program_that_closes_the_connection_keeps_a_file_of_its_number(
    environment: dict[str, str], kernels: Path
) -> None:
    """As a program does that becomes a daemon after its first launch."""
    program = """
import os, socket
start(); load(sys.argv[1], 'forever')
os.closerange(3, 1024)
others = [socket.socketpair() for _ in range(100)]
[end.setblocking(False) for pair in others for end in pair]
say(launch(), launch(), [end.fileno() for pair in others for end in pair] == list(range(3, 203)))
def received(end):
    try:
        return end.recv(1)
    except BlockingIOError:
        return None
say({received(end) for pair in others for end in pair})
"""
    result = run(environment, program, kernels)
    assert result.stdout == "719 719 True\n{None}\n", result.stderr
    assert "cannot be reached, because the program closed a file descriptor that is not its own" in result.stderr


@pytest.mark.parametrize("python", ["/no/such/python", "false"])
def test_no_python_to_run_the_server(environment: dict[str, str], python: str) -> None:
    result = run({**environment, "TUI_PROBE_SIM_PYTHON": python}, "say(start())")
    assert result.stdout == "3\n"
    assert "TUI_PROBE_SIM_PYTHON" in result.stderr
    assert python in result.stderr


def test_server_ignores_home_of_another_python(environment: dict[str, str]) -> None:
    result = run(environment, "import os\nos.environ['PYTHONHOME'] = '/no/such/home'\nsay(start())")
    assert (result.stdout, result.stderr) == ("0\n", "")


def test_a_python_without_tui_probe(environment: dict[str, str], tmp_path: Path) -> None:
    python = tmp_path / "python"
    python.write_text(f'#!/bin/sh\nexec {sys.executable} -S "$@"\n')  # without what an editable install finds
    python.chmod(0o755)
    elsewhere = {**environment, "TUI_PROBE_SIM_PYTHON": str(python), "TUI_PROBE_SIM_PYTHONPATH": str(tmp_path)}
    elsewhere |= {"PYTHONPATH": "", "PYTHONNOUSERSITE": "1"}
    package = tmp_path / "tui_probe"
    package.mkdir()
    (package / "__init__.py").write_text("")
    result = run(elsewhere, "say(start())")
    assert result.stdout == "3\n"
    assert "tui-probe simulated GPU: its server did not start" in result.stderr


def test_files_of_the_program_are_not_taken_for_python_modules(
    environment: dict[str, str], kernels: Path, tmp_path: Path
) -> None:
    (tmp_path / "numpy.py").write_text("raise SystemExit('not this one')")
    command = [sys.executable, "-P", "-c", PREAMBLE + "say(start() or load(sys.argv[1], 'nothing'))", str(kernels)]
    result = subprocess.run(command, env=environment, cwd=tmp_path, capture_output=True, text=True)
    assert (result.stdout, result.stderr) == ("0\n", "")


def test_the_server_is_no_child_and_writes_nothing(environment: dict[str, str], kernels: Path) -> None:
    program = """
say(start() or load(sys.argv[1], 'nothing') or launch())
try:
    os.wait()
except ChildProcessError:
    say('no children')
"""
    result = run(environment, program, kernels)
    assert (result.stdout, result.stderr) == ("0\nno children\n", "")


def test_the_server_runs_without_the_hook(marked: tuple[dict[str, str], str], library: Path, tmp_path: Path) -> None:
    """Preloaded libraries other than libcuda.so.1 stay."""
    environment, mark = marked
    other = tmp_path / "other.so"
    subprocess.run(["cc", "-shared", "-x", "c", "/dev/null", "-o", str(other)], check=True)
    audit = library.parents[1] / "hook" / "libtui-probe-audit.so"
    preloaded = {
        **environment,
        "LD_PRELOAD": f"{library}:{other}",
        "LD_AUDIT": str(audit),
        "TUI_PROBE_LAUNCHER": str(os.getpid()),
        "LD_LIBRARY_PATH": f"{library.parent}:{tmp_path}",
    }
    process = begin(preloaded, "start(); say('ready'); sys.stdin.read()")
    (server,) = servers(mark)
    variables = dict(
        variable.split(b"=", 1) for variable in Path(f"/proc/{server}/environ").read_bytes().split(b"\0") if variable
    )
    process.kill()
    process.communicate()
    assert variables[b"LD_PRELOAD"] == bytes(other)
    assert not variables[b"LD_AUDIT"]
    assert b"TUI_PROBE_LAUNCHER" not in variables  # it would count as a process of the run
    assert variables[b"LD_LIBRARY_PATH"] == bytes(tmp_path)


def test_settings_of_the_programs_python_do_not_reach_the_server(environment: dict[str, str], kernels: Path) -> None:
    program = """
os.environ |= {"PYTHONWARNINGS": "error", "PYTHONPROFILEIMPORTTIME": "1", "PYTHONINSPECT": "1", "PYTHONDEVMODE": "1"}
say(start() or load(sys.argv[1], 'nothing') or launch())
del os.environ["PYTHONINSPECT"]
"""
    result = run(environment, program, kernels)
    assert (result.stdout, result.stderr) == ("0\n", "")


def test_a_forked_child_has_no_driver_and_the_parent_keeps_its_own(environment: dict[str, str], kernels: Path) -> None:
    program = """
start(); load(sys.argv[1], 'nothing'); launch()
sys.stdout.flush()
child = os.fork()
if child == 0:
    say(launch(), cuda.cuInit(0), cuda.cuCtxSynchronize())
    os._exit(0)
os.waitpid(child, 0)
say(launch(), cuda.cuCtxSynchronize())
"""
    result = run(environment, program, kernels)
    assert (result.stdout, result.stderr) == ("3 3 3\n0 0\n", "")


def test_a_child_forked_before_initialisation_has_a_gpu_of_its_own(environment: dict[str, str], kernels: Path) -> None:
    program = """
child = os.fork()
code = start() or load(sys.argv[1], 'nothing') or launch()
if child:
    os.waitpid(child, 0)
say(code)
"""
    result = run(environment, program, kernels)
    assert (result.stdout, result.stderr) == ("0\n0\n", "")


def test_before_cuinit_nothing_goes(environment: dict[str, str]) -> None:
    program = "size = ctypes.c_size_t(); say(cuda.cuCtxSynchronize(), cuda.cuDeviceTotalMem_v2(ctypes.byref(size), 0))"
    assert run(environment, program).stdout == "3 3\n"


@pytest.mark.parametrize(("name", "value"), [("SMS", "0"), ("SMS", "many"), ("MEMORY", "4X"), ("MEMORY", "-1")])
def test_settings_that_make_no_sense(environment: dict[str, str], name: str, value: str) -> None:
    result = run({**environment, f"TUI_PROBE_SIM_{name}": value}, "say(cuda.cuInit(0))")
    assert result.stdout == "1\n"
    assert f"TUI_PROBE_SIM_{name}={value} is not a number between" in result.stderr


def test_other_threads_go_on_while_a_kernel_runs(marked: tuple[dict[str, str], str], kernels: Path) -> None:
    environment, mark = marked
    program = """
import threading
start(); load(sys.argv[1], 'forever')
def work():
    cuda.cuCtxSetCurrent(context)
    address = ctypes.c_uint64()
    while thread.is_alive():
        assert cuda.cuMemAlloc_v2(ctypes.byref(address), ctypes.c_size_t(1000)) == 0
        assert cuda.cuMemFree_v2(address) == 0
        if not announced: say('ready'); announced.append(True)
thread, announced = threading.Thread(target=lambda: (cuda.cuCtxSetCurrent(context), launch())), []
thread.start()
work()
"""
    process = begin(environment, program, kernels)
    for server in servers(mark):
        os.kill(server, signal.SIGKILL)  # ends the launch
    process.communicate(timeout=30)
