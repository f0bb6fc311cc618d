"""A process of our group that shows whether a signal came to the whole group or to the launcher alone.

The target is in the launcher's process group, so a signal to the group, as ``timeout`` and terminals send it, reaches
all processes of the target as without us. A signal to the launcher alone has to be forwarded, one to the group must not
be. The system does not say which it was; but a signal to the group reaches this process, too.
"""

from __future__ import annotations

import ctypes
import os
import select
import signal

from .forked import PR_SET_NAME, become_apart, close_all_but, rename
from .target import PR_SET_PDEATHSIG

GRACE = 0.02
"""Seconds within which the system gives a signal to all processes of a group."""
LIMIT = 0.2
"""Seconds that an answer may take; a witness that was stopped gives none."""
NAME = b"tui-probe signals"


class Witness:
    """The process, which blocks all signals and ends with the launcher. To be made in its main thread."""

    def __init__(self) -> None:
        questions, self._ask = os.pipe()
        self._answers, answer = os.pipe()
        libc, parent = ctypes.CDLL(None), os.getpid()
        self._pid = os.fork()
        if not self._pid:
            become_apart(lambda: enter(libc, parent, {questions, answer}), lambda: watch(parent, questions, answer))
        os.close(questions)
        os.close(answer)

    def saw(self, number: int) -> bool:
        """Whether it got this signal, too, since it was asked last."""
        while self._has_answer(0):  # of a question that took too long
            os.read(self._answers, 1)
        try:
            os.write(self._ask, bytes([number]))
            return self._has_answer(LIMIT) and os.read(self._answers, 1) == b"1"
        except OSError:  # it was killed
            return False

    def close(self) -> None:
        """End it."""
        os.close(self._ask)
        os.close(self._answers)
        os.kill(self._pid, signal.SIGKILL)
        os.waitpid(self._pid, 0)

    def _has_answer(self, seconds: float) -> bool:
        return bool(select.select([self._answers], [], [], seconds)[0])


def enter(libc: ctypes.CDLL, parent: int, kept: set[int]) -> None:
    """Leave behind what belongs to the launcher, except its group."""
    signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
    libc.prctl(PR_SET_PDEATHSIG, int(signal.SIGKILL), 0, 0, 0)
    if os.getppid() != parent:
        os._exit(0)
    libc.prctl(PR_SET_NAME, NAME, 0, 0, 0)
    close_all_but(kept)
    rename(NAME)


def watch(parent: int, questions: int, answers: int) -> int:
    """Answer until the launcher asks no more."""
    while question := os.read(questions, 1):
        os.write(answers, b"1" if came(parent, question[0]) else b"0")
    return 0


def came(parent: int, number: int) -> bool:
    """Whether a signal is pending, or will be at once, that the launcher itself did not send."""
    while (info := signal.sigtimedwait({number}, GRACE)) is not None:
        if info.si_pid != parent:
            return True
    return False
