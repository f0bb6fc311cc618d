"""Helper process of the launcher, forked with its code.

It has what a process started anew would have, and no more: a session of its own, no terminal, no descriptor but those
that it is given, the signals' usual actions. It is asked to end when the launcher's thread that made it does.
"""

from __future__ import annotations

import contextlib
import ctypes
import gc
import os
import resource
import select
import signal
import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

from .target import PR_SET_PDEATHSIG

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

PR_SET_NAME = 15
"""Constant of ``<linux/prctl.h>``, which Python lacks."""
ARG_START = 45
"""Index of ``arg_start`` among the fields behind the name in ``/proc/PID/stat``, before ``arg_end``: see proc(5)."""
CRASHED = 1
"""Exit status of a helper process whose work raised an exception."""


class ForkedProcess:
    """A process that does ``work`` and ends with its result; its standard streams are ``output``, a descriptor.

    ``name`` is its command line in tools such as ps; ``kept_descriptors`` are the other descriptors that stay open.
    """

    def __init__(self, work: Callable[[], int], name: bytes, output: int, kept_descriptors: Collection[int]) -> None:
        self._lock = threading.Lock()
        self._status: int | None = None
        libc, parent = ctypes.CDLL(None), os.getpid()
        # No one writes to this pipe: that it ends says that the process has ended, without a look now and then.
        self._end_pipe, write_end = os.pipe()
        self.pid = os.fork()
        if not self.pid:
            run_apart(lambda: enter_fork(libc, parent, name, output, {write_end, *kept_descriptors}), work)
        os.close(write_end)

    def poll(self) -> int | None:
        """None while it runs, then its exit status, or minus the number of the signal that ended it."""
        return self._reap(os.WNOHANG)

    def wait(self, seconds: float) -> int | None:
        """Wait for its end; None if it still runs after so long."""
        readable, _, _ = select.select([self._end_pipe], [], [], seconds)
        return self._reap(0) if readable else self.poll()

    def send(self, number: int) -> None:
        """Send it a signal, unless it has ended."""
        if self.poll() is None:
            os.kill(self.pid, number)

    def kill(self) -> None:
        """End it, with all that it has started, and wait."""
        if self.poll() is None:
            os.killpg(self.pid, signal.SIGKILL)
            self._reap(0)

    def close(self) -> None:
        """Let go of it, after its end."""
        os.close(self._end_pipe)

    def _reap(self, flags: int) -> int | None:
        with self._lock:  # a second waitpid would find no child, or another one with the same number
            if self._status is None:
                try:
                    pid, status = os.waitpid(self.pid, flags)
                except ChildProcessError:  # where SIGCHLD is ignored no one learns the status
                    pid, status = self.pid, 0
                self._status = os.waitstatus_to_exitcode(status) if pid else None
            return self._status


def run_apart(prepare: Callable[[], None], work: Callable[[], int]) -> NoReturn:
    """Do the work in a process that was just forked, report its error, and end."""
    status = CRASHED
    try:
        prepare()
        status = work()
    except SystemExit:  # a signal came before the launcher's handlers were left behind
        status = CRASHED
    except BaseException:  # noqa: BLE001  nothing of the launcher's may run on in this process
        import traceback  # read before each program starts, it would take 1 ms

        traceback.print_exc()
    finally:
        os._exit(status)


def enter_fork(libc: ctypes.CDLL, parent: int, name: bytes, output: int, kept_descriptors: Collection[int]) -> None:
    """Leave behind what belongs to the launcher."""
    os.setsid()  # the terminal's keys are for the target
    reset_signals()
    libc.prctl(PR_SET_PDEATHSIG, int(signal.SIGTERM), 0, 0, 0)
    if os.getppid() != parent:
        os._exit(CRASHED)
    libc.prctl(PR_SET_NAME, name, 0, 0, 0)
    sys.stdout = sys.stderr = open(1, "w", buffering=1, errors="replace", closefd=False)  # noqa: SIM115
    os.dup2(output, 1)
    os.dup2(output, 2)
    with contextlib.suppress(OSError):
        os.close(0)
    os.open(os.devnull, os.O_RDONLY)  # replaces the lowest that is free
    close_all_but({0, 1, 2, *kept_descriptors})
    overwrite_command_line(name)


def close_all_but(kept_descriptors: Collection[int]) -> None:
    """Close the descriptors that were the launcher's."""
    gc.freeze()  # objects of the launcher that no one uses must not close descriptors of tui-probe by their old numbers
    try:
        descriptors = [int(name) for name in os.listdir("/proc/self/fd")]  # noqa: PTH208 - numbers
    except OSError:  # none is free for the list: there are few
        descriptors = list(range(resource.getrlimit(resource.RLIMIT_NOFILE)[0]))
    for descriptor in descriptors:
        if descriptor not in kept_descriptors:
            try:
                os.close(descriptor)
            except OSError:  # that of the listing
                continue


def overwrite_command_line(name: bytes) -> None:
    """Write a command line over the launcher's, which names the program: ``pkill -f`` shall find the program only."""
    start, end = argument_memory(Path("/proc/self/stat").read_bytes())
    if 0 < start < end:
        ctypes.memmove(start, name[: end - start - 1].ljust(end - start, b"\0"), end - start)


def argument_memory(stat: bytes) -> tuple[int, int]:
    """Return the addresses at which the command line begins and ends, out of ``/proc/PID/stat``.

    Both are 0 where the system does not state them: emulators and sandboxes end the line earlier, or write zeros.
    """
    fields = stat.rpartition(b")")[2].split()
    return (int(fields[ARG_START]), int(fields[ARG_START + 1])) if len(fields) > ARG_START + 1 else (0, 0)


def reset_signals() -> None:
    """Reset signal handlers as an exec does: caught signals get their default action, ignored ones stay ignored."""
    for number in signal.valid_signals():
        if callable(signal.getsignal(number)):
            signal.signal(number, signal.SIG_DFL)
