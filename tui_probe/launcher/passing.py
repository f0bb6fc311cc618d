"""A run without a screen: the target's streams are passed on, and so are signals."""

from __future__ import annotations

import os
import signal
import threading
from contextlib import closing
from typing import TYPE_CHECKING

from . import signals
from .session import toolchain
from .streams import OwnStream, Pump, streams_for
from .target import Group, Standard
from .witness import Witness

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
    with signals.held_back() as mask, closing(Witness()) as witness:
        spool, limit = session.spool, session.options.output_limit()
        output = streams_for(1, 2, spool.stdout, spool.stderr, limit, session.tell_first_trace)
        target = session.start(Standard(None, output[0].target_end, output[-1].target_end), Group.SHARED, mask)
        for stream in output:
            stream.start()
        beside.start()  # with the signals held back, which must not be taken there

        def resize() -> None:
            for stream in output:
                stream.copy_window_size()

        returncode = signals.wait(target, session.poll, resize, witness.saw)
    patience = READER_LIMIT if target.asked_to_end else None
    pumps = [stream for stream in output if isinstance(stream, Pump)]
    left_open = [stream for stream in output if not stream.finish(patience)]
    open_pumps = [pump for pump in pumps if pump in left_open]
    if open_pumps:
        beside.join()  # a process that is forked while modules are read could read none itself
    leave_behind(open_pumps, [pump for pump in pumps if pump not in open_pumps])
    session.lost_output = [
        f"{name}: {stream.failure}: not all output of the program was passed on"
        for name, stream in named(output)
        if stream.failure
    ]
    session.finish(returncode, cut=any(stream.cut for stream in output))
    beside.join()
    return returncode


def named(output: list[Pump | OwnStream]) -> list[tuple[str, Pump | OwnStream]]:
    """The streams with their names."""
    return list(zip(("stdout", "stderr"), output, strict=False))


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
