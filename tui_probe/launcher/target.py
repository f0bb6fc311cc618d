"""Process of the program: started with a known trace directory and the user's umask and limits, or in our place."""

from __future__ import annotations

import contextlib
import ctypes
import os
import shutil
import signal
import subprocess
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple, NoReturn

from tui_probe.errors import SCARCE, TargetError

from .driver import find_driver
from .environment import driver_variables

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence

    from .options import RunOptions

_OWNER_BITS: Final = 0o700
"""Never masked in our own process: a umask of 0777 would make traces that we could not write ourselves."""
_umask_of_user: list[int] = []
"""The umask before ``keep_owner_access``; empty before it. Process-wide, as the umask is."""
NOT_FOUND, NOT_EXECUTABLE = 127, 126
"""Exit statuses of a shell that cannot start a command."""
OWN_DESCRIPTORS: Final = 4096
"""Descriptors for streams, logs and traces of many processes: the usual limit of 1024 may be too low."""
PR_SET_PDEATHSIG = 1
"""Constant of ``<linux/prctl.h>``: the signal that a process gets when its parent ends."""


def known_signals(*names: str) -> frozenset[signal.Signals]:
    """Return the signals of these names that this system has: readers of traces import this module on any."""
    return frozenset(getattr(signal, name) for name in names if hasattr(signal, name))


JOB_SIGNALS = known_signals("SIGINT", "SIGQUIT", "SIGTERM", "SIGTSTP", "SIGCONT")
"""Signals that terminals, shells and schedulers send to a whole job."""
ENDING = known_signals("SIGINT", "SIGTERM", "SIGHUP")
"""Signals that ask a program to end; it may handle them and save its work first."""


def keep_owner_access() -> None:
    """Take the owner's bits out of the umask of this process, once."""
    if not _umask_of_user:
        old_umask = os.umask(0o077)
        os.umask(old_umask & ~_OWNER_BITS)
        _umask_of_user.append(old_umask)


def umask_of_program() -> int | None:
    """The umask that programs get: the user's. None where ours was not changed."""
    return _umask_of_user[0] if _umask_of_user else None


class SignalScope(Enum):
    """The process group of a target."""

    SHARED = "the process group of tui-probe, so signals to the group reach the program directly"
    SESSION = "a new session, which does not have the terminal of tui-probe"


class StandardStreams(NamedTuple):
    """The file descriptors of a target's standard streams; None: it has ours."""

    stdin: int | None
    stdout: int | None
    stderr: int | None


class TargetProcess:
    """A running target. ``group`` decides who receives a signal, ``ending`` is the file that tells hooks of an end."""

    def __init__(self, process: subprocess.Popen[bytes], group: SignalScope, ending: Path | None = None) -> None:
        self.process = process
        self.group = group
        self.end_requests = 0
        """Signals so far that ask it to end: after the first, nothing waits for what is left to write."""
        self._ending = ending

    @property
    def pid(self) -> int:
        return self.process.pid

    @property
    def asked_to_end(self) -> bool:
        return self.end_requests > 0

    def poll(self) -> int | None:
        """Return None while it runs, then its exit status, or minus the signal that ended it."""
        return self.process.poll()

    def send(self, number: int) -> None:
        """Send a signal: to the whole group if it is one for jobs and the group is the target's own.

        A hang-up does not concern a target without our terminal: it keeps running.
        """
        if self.group is SignalScope.SESSION and number == signal.SIGHUP:
            return
        if self.group is SignalScope.SESSION and number in JOB_SIGNALS:
            self.send_to_group(number)
        else:
            self.expect_end(number)
            with contextlib.suppress(PermissionError):  # it has become another user's
                self.process.send_signal(number)

    def send_to_group(self, number: int) -> None:
        """Send a signal to every process of the target's own group."""
        self.expect_end(number)
        if self.process.poll() is None:
            os.killpg(self.pid, number)

    def expect_end(self, number: int) -> None:
        """Notify the hooks of the run, before the target gets a signal, if that requests the end."""
        if number in ENDING:
            self.end_requests += 1
            if self._ending is not None:
                with contextlib.suppress(OSError):  # they then wait for longer
                    self._ending.touch()


def check_command(command: Sequence[str], path: str | None) -> None:
    """Raise TargetError as a shell would refuse the command: 127 not found, 126 not executable."""
    name = command[0]
    if shutil.which(name, path=path):
        return
    if os.sep in name and Path(name).exists():
        problem = (
            "is a directory" if Path(name).is_dir() else "not executable; use chmod +x, or pass the interpreter first"
        )
        raise TargetError(f"{name}: {problem}", NOT_EXECUTABLE)
    hint = f"; to run the file in this directory, use ./{name}" if Path(name).is_file() else ""
    raise TargetError(f"{name}: command not found{hint}", NOT_FOUND)


def start_target(
    command: Sequence[str],
    environment: Mapping[str, str],
    streams: StandardStreams,
    group: SignalScope,
    unblocked: Collection[int],
    announce: Callable[[int], None],
    ending: Path | None = None,
) -> TargetProcess:
    """Start the command. ``announce(pid)`` is called in the new process, before the command's first instruction.

    ``unblocked`` is the signal mask that the target gets, ``ending`` the file that its hooks look for.
    Raises TargetError where it cannot be executed.
    """
    try:
        process = subprocess.Popen(
            command,
            env=environment,
            stdin=streams.stdin,
            stdout=streams.stdout,
            stderr=streams.stderr,
            close_fds=False,  # the caller may hand descriptors on, as in <(process substitution)
            start_new_session=group is SignalScope.SESSION,
            preexec_fn=_preparation(group, unblocked, announce),
        )
    except OSError as error:
        if error.errno in SCARCE:
            raise
        status = NOT_FOUND if isinstance(error, FileNotFoundError) else NOT_EXECUTABLE
        raise TargetError(f"{command[0]}: {error.strerror}", status) from error
    return TargetProcess(process, group, ending)


def _preparation(group: SignalScope, unblocked: Collection[int], announce: Callable[[int], None]) -> Callable[[], None]:
    """Return what the new process does between fork and exec."""
    libc = ctypes.CDLL(None, use_errno=True)  # before the fork: after it, a lock of the loader may be held for ever

    def prepare() -> None:
        signal.pthread_sigmask(signal.SIG_SETMASK, unblocked)
        if group is SignalScope.SHARED:
            # A launcher that is killed only hangs up, as a terminal would.
            libc.prctl(PR_SET_PDEATHSIG, int(signal.SIGHUP), 0, 0, 0)
        announce(os.getpid())
        if (umask := umask_of_program()) is not None:
            os.umask(umask)

    return prepare


def exit_status(returncode: int) -> int:
    """``Popen.returncode`` as a shell's ``$?``: 128 + n for death by signal n."""
    return returncode if returncode >= 0 else 128 - returncode


def raise_descriptor_limit() -> tuple[int, int]:
    """Raise our own limit of descriptors, at most to the hard limit. Return the old limits, which the target gets."""
    import resource  # absent on Windows, where traces can be read

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    limit = OWN_DESCRIPTORS if hard == resource.RLIM_INFINITY else min(hard, OWN_DESCRIPTORS)
    if soft != resource.RLIM_INFINITY and soft < limit:
        resource.setrlimit(resource.RLIMIT_NOFILE, (limit, hard))
    return soft, hard


def restore_descriptor_limit(limits: tuple[int, int]) -> None:
    """Set the limit of descriptors again; in a new process, or before this one becomes the program."""
    import resource

    resource.setrlimit(resource.RLIMIT_NOFILE, limits)


def become_program(options: RunOptions, limits: tuple[int, int]) -> NoReturn:
    """Run the command instead of this process, without the hook. Raises TargetError if it cannot be executed."""
    command = options.command
    if options.simulated:
        find_simulated_driver(options)
    for number in (signal.SIGPIPE, signal.SIGXFSZ):  # which Python ignores
        signal.signal(number, signal.SIG_DFL)
    restore_descriptor_limit(limits)
    try:
        os.execvp(command[0], list(command))
    except OSError as error:
        status = NOT_FOUND if isinstance(error, FileNotFoundError) else NOT_EXECUTABLE
        raise TargetError(f"{command[0]}: {error.strerror}", status) from error


def find_simulated_driver(options: RunOptions) -> None:
    """Set the environment so that the loader finds the simulated driver, which the hook would load otherwise."""
    driver = find_driver(None, True, os.environ)
    folders = [str(driver.path.parent), os.environ.get("LD_LIBRARY_PATH")]
    os.environ["LD_LIBRARY_PATH"] = ":".join(folder for folder in folders if folder)
    os.environ.update(driver_variables(driver, options))
