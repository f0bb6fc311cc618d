"""Ending in front of a terminal that takes nothing any more: nobody reads it, or its line hangs.

A thread of ours then waits in a write for ever, and the event loop for room in that thread's queue. Once what is
written goes to nowhere, and a signal has ended the write that waits, all of them end as usual.
"""

from __future__ import annotations

import os
import signal
import threading
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

PATIENCE = 1.0
"""Seconds from the signal on for which a terminal may take what is left to say."""
_EACH = 0.05


def give_up_later(descriptor: int, waiting: Callable[[], int | None], signal_number: int) -> None:
    """After a while have ``descriptor`` lead nowhere, if a thread still waits in a write: ``waiting()`` is that one.

    ``signal_number`` must have a handler, so that it ends a write and nothing else. May be called in a handler.
    """
    work = threading.Thread(
        target=_give_up, args=(descriptor, waiting, signal_number), name="tui-probe-give-up", daemon=True
    )
    work.start()


def _give_up(descriptor: int, waiting: Callable[[], int | None], signal_number: int) -> None:
    time.sleep(PATIENCE)
    while waiting() is None:  # what is said last may be what the terminal does not take
        time.sleep(_EACH)
    nowhere = os.open(os.devnull, os.O_WRONLY | os.O_CLOEXEC)
    os.dup2(nowhere, descriptor)
    os.close(nowhere)
    while (thread := waiting()) is not None:
        signal.pthread_kill(thread, signal_number)
        time.sleep(_EACH)
