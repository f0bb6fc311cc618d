"""Signals that reach the launcher while a target runs: whether the target has them, too, and how it gets others."""

from __future__ import annotations

import ctypes
import os
import select
import signal
from contextlib import contextmanager
from typing import TYPE_CHECKING, NoReturn

from .helper_process import PR_SET_NAME, close_all_but, overwrite_command_line, run_apart
from .target import ENDING, PR_SET_PDEATHSIG

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from .target import TargetProcess

FORWARDED = frozenset(
    {
        signal.SIGINT,
        signal.SIGTERM,
        signal.SIGHUP,
        signal.SIGQUIT,
        signal.SIGTSTP,
        signal.SIGCONT,
        signal.SIGUSR1,
        signal.SIGUSR2,
        signal.SIGWINCH,
    }
)
INTERVAL = 0.1
"""Seconds between two calls of ``tick`` while no signal comes."""
DELIVERY_SECONDS = 0.02
"""Seconds within which the system gives a signal to all processes of a group."""
ANSWER_SECONDS = 0.2
"""Limit of the wait for the witness: one that was stopped does not answer."""
WITNESS_NAME = b"tui-probe signals"


@contextmanager
def tidy_end() -> Iterator[None]:
    """A signal that would end us without a word ends us in order, before and after the target: 128 + its number."""

    def leave(number: int, _: object) -> NoReturn:
        raise SystemExit(128 + number)

    numbers = [number for number in (signal.SIGTERM, signal.SIGHUP) if signal.getsignal(number) is signal.SIG_DFL]
    for number in numbers:
        signal.signal(number, leave)
    try:
        yield
    finally:
        for number in numbers:
            signal.signal(number, signal.SIG_DFL)


@contextmanager
def noted() -> Iterator[list[int]]:
    """Signals that ask for the end are added to a list: threads that a screen has left may take what we hold back."""
    numbers: list[int] = []

    def note(number: int, _: object) -> None:
        numbers.append(number)

    old_handlers = {number: signal.signal(number, note) for number in sorted(ENDING)}
    try:
        yield numbers
    finally:
        for number, handler in old_handlers.items():
            signal.signal(number, handler)


@contextmanager
def held_back() -> Iterator[set[int]]:
    """Block the signals that ``wait`` takes one by one. Yields the mask before, which the target shall have."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)  # if ignored, the kernel would throw the exit status away
    old_mask = signal.pthread_sigmask(signal.SIG_BLOCK, FORWARDED | {signal.SIGCHLD})
    try:
        yield set(old_mask)
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, old_mask)


def wait(
    target: TargetProcess,
    tick: Callable[[], object],
    on_resize: Callable[[], None] = lambda: None,
    was_delivered: Callable[[int], bool] = lambda _: False,
) -> int:
    """Wait for the target's end and forward signals, inside ``held_back``. Returns ``Popen.returncode``.

    ``was_delivered`` says of a signal whether the target got it with us, as a process of our group.
    ``tick`` is called every INTERVAL seconds or sooner, ``on_resize`` when the terminal has a new size.
    """
    awaited = FORWARDED | {signal.SIGCHLD}
    while (returncode := target.poll()) is None:
        received = signal.sigtimedwait(awaited, INTERVAL)
        if received is not None and received.si_signo != signal.SIGCHLD:
            if received.si_signo == signal.SIGWINCH:
                on_resize()
            forward_signal(target, received.si_signo, was_delivered)
        tick()
    while signal.sigtimedwait(FORWARDED, 0):
        pass  # meant for a target that has ended
    return returncode


def forward_signal(target: TargetProcess, number: int, was_delivered: Callable[[int], bool]) -> None:
    """Give the target a signal exactly once; that its window has another size, once more, now that it has."""
    if was_delivered(number) and number != signal.SIGWINCH:
        target.expect_end(number)
    else:
        target.send(number)
    if number == signal.SIGTSTP:
        stop_self()


def stop_self() -> None:
    """Take our own SIGTSTP. The kernel ignores it where no shell could continue us, as it does for the target."""
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGTSTP})
    os.kill(os.getpid(), signal.SIGTSTP)
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTSTP})


class Witness:
    """Process of our group that shows whether a signal came to the whole group or to the launcher only.

    The target is in the launcher's process group, so a signal to the group, as ``timeout`` and terminals send it,
    reaches all processes of the target as without us. A signal to the launcher only has to be forwarded, one to the
    group must not be. The system does not say which it was, but a signal to the group reaches this process, too.

    It blocks all signals and ends with the launcher. To be made in the launcher's main thread.
    """

    def __init__(self) -> None:
        questions, self._ask = os.pipe()
        self._answers, answer = os.pipe()
        libc, parent = ctypes.CDLL(None), os.getpid()
        self._pid = os.fork()
        if not self._pid:
            run_apart(
                lambda: enter_witness(libc, parent, {questions, answer}),
                lambda: answer_launcher(parent, questions, answer),
            )
        os.close(questions)
        os.close(answer)

    def has_seen(self, number: int) -> bool:
        """Return whether it got this signal, too, since the last call."""
        while self._has_answer(0):  # of a question that took too long
            os.read(self._answers, 1)
        try:
            os.write(self._ask, bytes([number]))
            return self._has_answer(ANSWER_SECONDS) and os.read(self._answers, 1) == b"1"
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


def enter_witness(libc: ctypes.CDLL, parent: int, kept_descriptors: set[int]) -> None:
    """Leave behind what belongs to the launcher, except its group."""
    signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
    libc.prctl(PR_SET_PDEATHSIG, int(signal.SIGKILL), 0, 0, 0)
    if os.getppid() != parent:
        os._exit(0)
    libc.prctl(PR_SET_NAME, WITNESS_NAME, 0, 0, 0)
    close_all_but(kept_descriptors)
    overwrite_command_line(WITNESS_NAME)


def answer_launcher(parent: int, questions: int, answers: int) -> int:
    """Answer until the launcher asks no more."""
    while question := os.read(questions, 1):
        os.write(answers, b"1" if has_signal(parent, question[0]) else b"0")
    return 0


def has_signal(parent: int, number: int) -> bool:
    """Return whether a signal is pending, or about to be, that the launcher itself did not send."""
    while (info := signal.sigtimedwait({number}, DELIVERY_SECONDS)) is not None:
        if info.si_pid != parent:
            return True
    return False
