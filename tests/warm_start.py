"""Starts of ``python -m tui_probe`` in tests, also by tui-probe itself: a fork of a process that has imported it.

Python's start and the imports take more than most commands do: 0.8 of 0.9 s of CPU of a report. The new process is a
child of the test process with its own environment, directory and descriptors, and ends as any Python does. The same
holds for the server of the simulated GPU, which its driver starts as an orphan, and for programs on a terminal of a
test, from a process that has imported the screen, too. A start that a fork would not be equal to is a real one: with
variables that Python, the loader or Textual read at the start, with a ``preexec_fn``, or with ``COLD_START`` in the
environment.
"""

from __future__ import annotations

import functools
import os
import pickle
import pty
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from tui_probe.own_python import OWN_COMMAND

ROOT: Final = Path(__file__).resolve().parents[1]
START: Final = (sys.executable, "-m", "tui_probe")
COLD: Final = "COLD_START"
SCREEN: Final = "tests.ui.screen"
READ_AT_START: Final = (
    "PYTHON", "LD_", "LC_", "LANG", "GLIBC_", "MALLOC_", "OPENBLAS_", "ASAN_", "UBSAN_", "TSAN_", "TEXTUAL_",
)  # fmt: skip
"""Variables that Python, the loader or a library read once."""
FOLLOWED: Final = frozenset({"PYTHONPATH"})
"""Of these, the one that ``own_python`` treats alike in a fork."""


class WarmSimulators:
    """The process that forks servers of the simulated GPU; ``python`` starts them in place of Python."""

    def __init__(self, environment: dict[str, str]) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="warm-")  # a socket has a short path
        self.python, path = Path(self._folder.name) / "python", Path(self._folder.name) / "socket"
        defines = [f'-DPYTHON="{sys.executable}"', f'-DWARM_SOCKET="{path}"']
        subprocess.run(["cc", "-O1", *defines, ROOT / "tests" / "warm_python.c", "-o", self.python], check=True)
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind(str(path))
            listener.listen(64)
            self._process = start_server(environment, [listener], "simulators")

    def stop(self) -> None:
        """End the process; servers that it forked end with their programs."""
        self._process.kill()
        self._process.wait()
        self._folder.cleanup()


def start_server(
    environment: dict[str, str], connections: Sequence[socket.socket], what: str, *more: str
) -> subprocess.Popen[Any]:
    """Start ``warm_server`` as our own Python processes start: without variables of the program's Python."""
    python = [sys.executable, "-E", "-P"]
    if environment.get("PYTHONDONTWRITEBYTECODE"):
        python.append("-B")
    if prefix := environment.get("PYTHONPYCACHEPREFIX"):
        python += ["-X", f"pycache_prefix={prefix}"]
    descriptors = [connection.fileno() for connection in connections]
    program = [str(ROOT / "tests" / "warm_server.py"), what, str(ROOT), ",".join(map(str, descriptors)), *more]
    return subprocess.Popen([*python, *program], env=environment, stdin=subprocess.DEVNULL, pass_fds=descriptors)


class WarmCommands:
    """A connection to a process that forks commands."""

    def __init__(self, environment: dict[str, str], connection: socket.socket) -> None:
        self._lock = threading.Lock()
        self._read_at_start = read_at_start(environment)
        self._connection = connection

    def is_equal(self, call: dict[str, Any]) -> bool:
        """Return whether a fork is equal to this start."""
        plain = not call["preexec_fn"] and not call["shell"] and call["executable"] is None and call["close_fds"]
        same_user = call["gid"] is None and call["gids"] is None and call["uid"] is None
        environment = os.environ if call["env"] is None else call["env"]
        in_place = Path(call["cwd"] or ".").is_dir()
        return plain and same_user and in_place and read_at_start(environment) == self._read_at_start

    def start(self, call: dict[str, Any]) -> int:
        """Start the command as a child of this process. Returns its process ID."""
        standard = [call[name] for name in ("p2cread", "c2pwrite", "errwrite")]
        sources = [given if given != -1 else number for number, given in enumerate(standard)]
        umask = os.umask(0)
        os.umask(umask)
        request = {
            "module": START[2] if call["args"][2] == OWN_COMMAND[2] else call["args"][2],
            "words": list(call["args"])[len(START) :],
            "on_terminal": call.get("on_terminal", False),
            "env": {os.fsencode(k): os.fsencode(v) for k, v in (call["env"] or os.environ).items()},
            "cwd": str(Path(call["cwd"] or ".").absolute()),
            "umask": umask if call["umask"] < 0 else call["umask"],
            "start_new_session": call["start_new_session"],
            "process_group": call["process_group"],
            "targets": [0, 1, 2, *call["pass_fds"]],
        }
        data = pickle.dumps(request)
        with self._lock:
            socket.send_fds(self._connection, [len(data).to_bytes(8, "little")], [*sources, *call["pass_fds"]])
            self._connection.sendall(data)
            answer = self._connection.recv(4)
        return int.from_bytes(answer, "little")

    def stop(self) -> None:
        """End the process."""
        self._connection.close()


def read_at_start(environment: Any) -> dict[str, str]:
    """Return the variables that a fork does not read again."""
    return {
        name: value
        for name, value in environment.items()
        if name.startswith(READ_AT_START) and name not in FOLLOWED and value
    }


class WarmStarts:
    """Replaces the start of ``subprocess.Popen`` while it is open."""

    def __init__(self, environment: dict[str, str], assemblies: str) -> None:
        self._environment, self._assemblies = environment, assemblies
        self._process: subprocess.Popen[Any]
        self._original: Any = subprocess.Popen._execute_child  # type: ignore[attr-defined]
        subprocess.Popen._execute_child = self._start_method()  # type: ignore[attr-defined]
        _open.append(self)

    @functools.cached_property
    def _servers(self) -> tuple[WarmCommands, WarmCommands]:
        """Connections to the process that forks commands, and to one of it that forks those on a terminal."""
        (commands, theirs), (screens, theirs_of_screens) = socket.socketpair(), socket.socketpair()
        with theirs, theirs_of_screens:
            more = (self.simulator_python, self._assemblies)
            self._process = start_server(self._environment, [theirs, theirs_of_screens], "commands", *more)
        return WarmCommands(self._environment, commands), WarmCommands(self._environment, screens)

    @property
    def commands(self) -> WarmCommands:
        return self._servers[0]

    @property
    def screens(self) -> WarmCommands:
        return self._servers[1]

    @functools.cached_property
    def simulators(self) -> WarmSimulators:
        return WarmSimulators(self._environment)

    @property
    def simulator_python(self) -> str:
        """For TUI_PROBE_SIM_PYTHON: what starts the simulated GPU's half that is in Python."""
        is_cold = COLD in os.environ or not shutil.which("cc")
        return sys.executable if is_cold else str(self.simulators.python)

    def _start_method(self) -> Any:
        original = self._original
        names = original.__code__.co_varnames[1 : original.__code__.co_argcount]

        def execute_child(popen: Any, *arguments: Any) -> None:
            call = dict(zip(names, arguments, strict=True))
            command, is_cold = call["args"], COLD in (call["env"] or os.environ)
            is_ours = isinstance(command, list | tuple) and tuple(command[: len(START)]) in (START, OWN_COMMAND)
            if is_ours and not is_cold and self.commands.is_equal(call):
                popen.pid = self.commands.start(call)
                popen._child_created = True
                popen._close_pipe_fds(*(call[name] for name in PIPES))
            else:
                original(popen, *arguments)

        return execute_child

    def close(self) -> None:
        """Start programs as ever."""
        _open.remove(self)
        subprocess.Popen._execute_child = self._original  # type: ignore[attr-defined]
        if "_servers" in vars(self):
            for server in self._servers:
                server.stop()
            self._process.wait()
        if "simulators" in vars(self):
            self.simulators.stop()


PIPES: Final = ("p2cread", "p2cwrite", "c2pread", "c2pwrite", "errread", "errwrite")
_open: list[WarmStarts] = []


def start_on_terminal(
    command: Sequence[str], folder: Path, environment: Mapping[str, str], attributes: Callable[[int], None]
) -> tuple[int, int]:
    """Start a command as the leader of a session on a new terminal, whose ``attributes`` are set on its descriptor.

    Returns process ID and our end of the terminal.
    """
    is_screen = list(command[:2]) == [sys.executable, "-m"] and command[2] in (START[2], SCREEN)
    call: dict[str, Any] = dict.fromkeys(("preexec_fn", "executable", "gid", "gids", "uid", "shell"))
    call |= {"close_fds": True, "env": dict(environment), "cwd": folder, "umask": -1, "process_group": -1}
    if not is_screen or not _open or COLD in environment or not _open[-1].screens.is_equal(call):
        pid, ours = pty.fork()
        if pid == 0:
            attributes(0)
            os.chdir(folder)
            os.execve(command[0], list(command), dict(environment))
        return pid, ours
    ours, theirs = pty.openpty()
    attributes(theirs)
    call |= {"args": command, "start_new_session": True, "pass_fds": (), "on_terminal": True}
    pid = _open[-1].screens.start(call | dict.fromkeys(("p2cread", "c2pwrite", "errwrite"), theirs))
    os.close(theirs)
    return pid, ours


def simulator_python() -> str:
    """Return what a program without the launcher has in TUI_PROBE_SIM_PYTHON."""
    return _open[-1].simulator_python if _open else sys.executable
