"""Signals that reach the launcher while a target runs."""

from __future__ import annotations

import os
import signal
from contextlib import contextmanager
from typing import TYPE_CHECKING, NoReturn

from .target import ENDING

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
INTERVAL = 0.1  # seconds


@contextmanager
def tidy_end() -> Iterator[None]:
    """A signal that would end us without a word ends us in order, before and after the target: 128 + its number."""

    def leave(number: int, _: object) -> NoReturn:
        raise SystemExit(128 + number)

    caught = [number for number in (signal.SIGTERM, signal.SIGHUP) if signal.getsignal(number) is signal.SIG_DFL]
    for number in caught:
        signal.signal(number, leave)
    try:
        yield
    finally:
        for number in caught:
            signal.signal(number, signal.SIG_DFL)


@contextmanager
def noted() -> Iterator[list[int]]:
    """Signals that ask for the end are added to a list: threads that a screen has left may take what we hold back."""
    numbers: list[int] = []

    def note(number: int, _: object) -> None:
        numbers.append(number)

    before = {number: signal.signal(number, note) for number in sorted(ENDING)}
    try:
        yield numbers
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextmanager
def held_back() -> Iterator[set[int]]:
    """Block the signals that ``wait`` takes one by one. Yields the mask before, which the target shall have."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)  # if ignored, the kernel would throw the exit status away
    before = signal.pthread_sigmask(signal.SIG_BLOCK, FORWARDED | {signal.SIGCHLD})
    try:
        yield set(before)
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def wait(
    target: TargetProcess,
    tick: Callable[[], object],
    resized: Callable[[], None] = lambda: None,
    has_it: Callable[[int], bool] = lambda _: False,
) -> int:
    """Wait for the target's end and forward signals, inside ``held_back``. Returns ``Popen.returncode``.

    ``has_it`` says of a signal whether the target got it with us, as a process of our group.
    ``tick`` is called every INTERVAL seconds or sooner, ``resized`` when the terminal has a new size.
    """
    awaited = FORWARDED | {signal.SIGCHLD}
    while (returncode := target.poll()) is None:
        received = signal.sigtimedwait(awaited, INTERVAL)
        if received is not None and received.si_signo != signal.SIGCHLD:
            if received.si_signo == signal.SIGWINCH:
                resized()
            forward(target, received.si_signo, has_it)
        tick()
    while signal.sigtimedwait(FORWARDED, 0):
        pass  # meant for a target that has ended
    return returncode


def forward(target: TargetProcess, number: int, has_it: Callable[[int], bool]) -> None:
    """Give the target a signal exactly once; that its window has another size, once more, now that it has."""
    if has_it(number) and number != signal.SIGWINCH:
        target.expect_end(number)
    else:
        target.send(number)
    if number == signal.SIGTSTP:
        stop_as_anyone_would()


def stop_as_anyone_would() -> None:
    """Take our own SIGTSTP. The kernel ignores it where no shell could continue us, as it does for the target."""
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGTSTP})
    os.kill(os.getpid(), signal.SIGTSTP)
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTSTP})
