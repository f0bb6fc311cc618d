"""The exit statuses of tui-probe. ``tui-probe run`` returns the target's own where it could be started."""

from __future__ import annotations

from enum import IntEnum


class ExitStatus(IntEnum):
    """What a script can tell apart."""

    OK = 0
    FAILED = 1
    USAGE = 2
    NO_DRIVER = 3
    UNREADABLE_TRACE = 4
    NO_VERDICT = 5
    INTERRUPTED = 130
