"""Program: a Python that has imported tui-probe, forked for each start of ``python -m tui_probe``; see ``warm_start``.

warm_server.py commands ROOT-OF-CHECKOUT DESCRIPTOR,DESCRIPTOR-FOR-SCREENS SIMULATOR-PYTHON ASSEMBLIES
warm_server.py simulators ROOT-OF-CHECKOUT DESCRIPTOR
"""

from __future__ import annotations

import atexit
import contextlib
import ctypes
import fcntl
import gc
import importlib
import io
import os
import pickle
import pkgutil
import platform
import runpy
import select
import signal
import socket
import sys
import tempfile
import termios
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

SKIPPED = (
    "tui_probe.ui", "tui_probe.tensortrace", "tui_probe.simgpu", "tui_probe.evals.programs", "tui_probe.__main__",
    "tui_probe.integrations.mcp_server",
)  # fmt: skip
"""Programs of their own, and modules that commands without a terminal do not import, or only one: a fork has to copy
the tables of all pages.
"""
SIMULATOR_DESCRIPTORS = 3
"""``warm_python.c`` sends stderr, the socket and the memory."""
RARE_COLLECTIONS = (50_000, 10, 10)
"""Of garbage, as in the test processes: see ``conftest``."""
CLONE = {"x86_64": 56, "aarch64": 220}
"""The number of the system call."""
CLONE_PARENT, CLONE_CHILD_SETTID, CLONE_CHILD_CLEARTID = 0x8000, 0x1000000, 0x200000
CLONE_AS_FORK = CLONE_CHILD_SETTID | CLONE_CHILD_CLEARTID | signal.SIGCHLD
PR_GET_TID_ADDRESS = 40
FREE = 500
"""Descriptors from this one on are not asked for by any test."""


def import_all(directory: str, package: str, skipped: tuple[str, ...] = SKIPPED) -> None:
    """Import what commands import, so that a fork needs no time for it."""
    for module in pkgutil.walk_packages([directory], f"{package}."):
        if not module.name.startswith(skipped):
            with contextlib.suppress(ImportError):  # of an extra that is not installed
                importlib.import_module(module.name)


def receive(connection: socket.socket) -> tuple[dict[str, Any], list[int]]:
    """Wait for a request and its descriptors; end with the test process, which closes the connection."""
    head, descriptors, _, _ = socket.recv_fds(connection, 8, 64)
    if not head:
        sys.exit()
    length = int.from_bytes(head, "little")
    with connection.makefile("rb", buffering=0) as stream:
        data = b""
        while len(data) < length:
            data += stream.read(length - len(data)) or sys.exit("cut off")
    return pickle.loads(data), list(descriptors)


def fork_for_requests(connection: socket.socket) -> tuple[dict[str, Any], list[int]]:
    """Fork a process for each request. Returns in those processes only."""
    while True:
        request, descriptors = receive(connection)
        child = fork_sibling()
        if not child:
            return request, descriptors
        connection.sendall(child.to_bytes(4, "little"))
        for descriptor in descriptors:
            os.close(descriptor)


def fork_sibling() -> int:
    """As ``os.fork``, but the new process is a child of our parent: the test process, which asked for it.

    A process in between would cost as much as the new one does: tables of all pages are copied.
    """
    thread = ctypes.c_void_p()  # where the C library keeps the ID of the thread, which the kernel then sets
    ctypes.CDLL(None).prctl(PR_GET_TID_ADDRESS, ctypes.byref(thread))
    python, libc = ctypes.pythonapi, ctypes.PyDLL(None)  # which keep the lock of the interpreter
    python.PyOS_BeforeFork()
    child: int = libc.syscall(CLONE[platform.machine()], CLONE_AS_FORK | CLONE_PARENT, None, None, thread, thread)
    python.PyOS_AfterFork_Parent() if child else python.PyOS_AfterFork_Child()
    if child < 0:
        sys.exit("cannot fork")
    return child


def become(request: dict[str, Any], descriptors: list[int]) -> None:
    """Take on what a process that was started has from its parent."""
    if request["start_new_session"]:
        os.setsid()
    if request["process_group"] >= 0:
        os.setpgid(0, request["process_group"])
    os.umask(request["umask"])
    os.chdir(request["cwd"])
    os.environ.clear()
    os.environb.update(request["env"])
    time.tzset()
    tempfile.tempdir = None  # is read from the environment once
    take_descriptors(descriptors, request["targets"])
    if request["on_terminal"]:
        fcntl.ioctl(0, termios.TIOCSCTTY, 0)


def take_descriptors(descriptors: list[int], targets: Sequence[int]) -> None:
    """Give the descriptors these numbers, and close all others."""
    moved = [os.dup2(descriptor, FREE + number) for number, descriptor in enumerate(descriptors)]
    os.closerange(0, FREE)
    for source, target in zip(moved, targets, strict=True):
        os.dup2(source, target)
    os.closerange(FREE, FREE + len(moved))


def open_streams() -> None:
    """Open the standard streams as Python does when it starts."""
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        old = getattr(sys, name)
        raw = open(number, "wb" if number else "rb", closefd=False)  # noqa: SIM115
        by_line = name == "stderr" or os.isatty(number)
        stream = io.TextIOWrapper(raw, old.encoding, old.errors, newline="\n", line_buffering=by_line)
        setattr(sys, name, stream)
        setattr(sys, f"__{name}__", stream)


def leave(end: SystemExit) -> None:
    """End as Python does, but for the objects of a thousand modules: to free them copies their pages.

    Returns if that is not all: a code that is text is to be written, and streams that cannot be flushed end with 120.
    """
    if end.code is not None and not isinstance(end.code, int):
        return
    threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
    try:
        sys.stdout.flush()
        sys.stderr.flush()
    except (OSError, ValueError):
        return
    os._exit(int(end.code or 0) & 0xFF)


def serve_commands(root: str, connections: Sequence[socket.socket], python: str, assemblies: str) -> None:
    """Become a command, in each process that is forked for one."""
    import_all(f"{root}/tui_probe", "tui_probe")
    import_all(f"{root}/probes", "tui_probe.probes")
    use_simulator(python)
    read_once()
    from tests.assemblies import assemble_once, disassemble_once

    assemble_once(Path(assemblies))
    disassemble_once(Path(assemblies))
    connection = divide(connections, root)
    sys.path.remove(root)
    gc.collect()
    gc.freeze()
    request, descriptors = fork_for_requests(connection)
    connection.detach()
    become(request, descriptors)
    open_streams()
    program = f"{root}/{request['module'].replace('.', '/')}"
    program = f"{program}/__main__.py" if Path(program).is_dir() else f"{program}.py"
    sys.argv = [program, *request["words"]]
    try:
        runpy.run_path(program, run_name="__main__")
    except SystemExit as end:
        leave(end)
        raise


def divide(connections: Sequence[socket.socket], root: str) -> socket.socket:
    """Fork a process for commands on a terminal, which imports the screen when the first of them comes.

    Returns the connection that this process serves.
    """
    commands, screens = connections
    if fork_sibling():
        screens.close()
        return commands
    commands.close()
    select.select([screens], [], [])
    import_all(f"{root}/tui_probe/ui", "tui_probe.ui", ())
    return screens


def read_once() -> None:
    """Do what a process does once: read built-in probes, ask CUDA tools for their versions, compile patterns.

    The patterns of log lines and reasons take a fifth of the time of commands that read a trace.
    """
    from tui_probe.probe_files.loading import built_in_names, load_probe
    from tui_probe.probe_files.stored_facts import code_stamps
    from tui_probe.reasons import listed_reasons
    from tui_probe.toolchain import find_tools
    from tui_probe.trace.line_grammar import Pattern

    code_stamps()
    for value in gc.get_objects():
        if isinstance(value, Pattern):
            value.match(b"", 0)
    for reason in listed_reasons().values():
        _ = reason.older_patterns
    for name in built_in_names():
        load_probe(name)
    for tool in ("ptxas", "nvdisasm"):
        find_tools(tool)


def use_simulator(python: str) -> None:
    """Let programs start the simulated GPU with this."""
    from tui_probe.launcher import environment

    choices = environment.driver_variables

    def driver_variables(*arguments: Any) -> dict[str, str]:
        chosen = choices(*arguments)
        return chosen | ({"TUI_PROBE_SIM_PYTHON": python} if "TUI_PROBE_SIM_PYTHON" in chosen else {})

    environment.driver_variables = driver_variables


def serve_simulators(listener: socket.socket) -> None:
    """Become the server of a simulated GPU, in each process that is forked for one; no one waits for these."""
    from tui_probe.simgpu.server import serve_process

    gc.collect()
    gc.freeze()
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    while True:
        connection, _ = listener.accept()
        setup, descriptors, _, _ = socket.recv_fds(connection, 1024, 8)
        if len(descriptors) == SIMULATOR_DESCRIPTORS and not os.fork():
            break
        for descriptor in descriptors:
            os.close(descriptor)
        connection.close()
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    os.setsid()
    connection.sendall(b"1")
    take_descriptors(descriptors, (2, 3, 4))
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(2, 1)
    serve_process(setup.decode())
    os._exit(0)


def main() -> None:
    what, root, descriptors, *more = sys.argv[1:]
    gc.set_threshold(*RARE_COLLECTIONS)
    sys.path.append(root)
    connections = [socket.socket(fileno=int(descriptor)) for descriptor in descriptors.split(",")]
    if what == "simulators":
        serve_simulators(connections[0])
    else:
        serve_commands(root, connections, *more)


if __name__ == "__main__":
    main()
