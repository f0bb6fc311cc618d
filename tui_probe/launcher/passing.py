"""A run without a screen: the target's streams are passed on, and so are signals."""

from __future__ import annotations

import os
import signal
import threading
from typing import TYPE_CHECKING

from . import signals
from .session import toolchain
from .streams import Pump, pumps_for
from .target import Group, Standard

if TYPE_CHECKING:
    from collections.abc import Callable

    from .session import Session

READER_LIMIT = 0.3
"""Seconds that a run which was asked to end waits for those who read its output and do not."""


def run_passing_on(session: Session, meanwhile: Callable[[], object] = lambda: None) -> int:
    """Run the session's target to its end with our own standard streams. Returns ``Popen.returncode``.

    ``meanwhile`` is work that would otherwise be done after the target's end; it is done when this returns.
    """

    def beside_the_target() -> None:
        toolchain()
        meanwhile()

    beside = threading.Thread(target=beside_the_target, name="meanwhile")
    with signals.held_back() as mask:
        spool, limit = session.spool, session.options.output_limit()
        pumps = pumps_for(1, 2, spool.stdout, spool.stderr, limit, session.tell_first_trace)
        group = Group.SHARED if has_terminal() else Group.OWN
        streams = Standard(None, pumps[0].target_end, pumps[-1].target_end)
        target = session.start(streams, group, mask)
        for pump in pumps:
            pump.start()
        beside.start()  # with the signals held back, which must not be taken there

        def resize() -> None:
            for pump in pumps:
                pump.copy_window_size()

        returncode = signals.wait(target, session.poll, resize)
    patience = READER_LIMIT if target.asked_to_end else None
    open_pumps = [pump for pump in pumps if not pump.finish(patience)]
    if open_pumps:
        beside.join()  # a process that is forked while modules are read could read none itself
    leave_behind(open_pumps, [pump for pump in pumps if pump not in open_pumps])
    session.finish(returncode, cut=any(pump.cut for pump in pumps))
    beside.join()
    return returncode


def has_terminal() -> bool:
    """Do we have a controlling terminal, which sends its signals to our process group?"""
    try:
        os.close(os.open("/dev/tty", os.O_RDWR | os.O_NOCTTY))
    except OSError:
        return False
    return True


def leave_behind(pumps: list[Pump], done: list[Pump]) -> None:
    """Streams that a process other than the target still holds open are passed on by a process that outlives us."""
    if not pumps or os.fork():
        return
    try:
        for pump in done:
            pump.abandon()
        for number in (signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, signal.SIG_DFL)
        for number in (signal.SIGINT, signal.SIGQUIT):  # whoever writes decides when the stream ends
            signal.signal(number, signal.SIG_IGN)
        threads = [threading.Thread(target=pump.carry_on) for pump in pumps]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        os._exit(0)
