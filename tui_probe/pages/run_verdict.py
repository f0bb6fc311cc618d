"""What a run found, in one line for a list of runs: of the kernel that takes most of the time what limits it, else what
stands out; where nothing was timed, of the first kernel where anything does.

Reading a trace takes up to a second, so verdicts of runs that have ended are kept in the user's state folder.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

from tui_probe.draw.shorten import shorten
from tui_probe.draw.table import safe
from tui_probe.errors import ProbeError
from tui_probe.json_data import parse_json
from tui_probe.pages.findings.brief import STANDS_OUT, brief
from tui_probe.pages.limits import limited
from tui_probe.trace.follow import open_trace
from tui_probe.trace.locate import LOG
from tui_probe.trace.state_folder import read_state, write_state

if TYPE_CHECKING:
    from pathlib import Path

    from tui_probe.trace.model import Kernel, Trace

FILE: Final = "verdicts.json"
MOST: Final = 500
"""Verdicts that are kept, those that were asked for last."""
LARGEST_LOG: Final = 64 << 20
"""Bytes of a log up to which it is read for a line in a list, unasked."""
_NAME: Final = 24
_MOST_KERNELS: Final = 20


def verdict_of(trace: Trace) -> str:
    """``matmul, 62% of the time: memory (L2) 83%``; "" where nothing was found."""
    measured = [kernel for kernel in trace.kernels if kernel.result_rows]
    timed = [kernel for kernel in measured if kernel.time_share is not None]
    if timed:
        return _told_of(trace, max(timed, key=lambda kernel: kernel.time_share or 0.0))[1]
    told = [_told_of(trace, kernel) for kernel in measured[:_MOST_KERNELS]]
    return max(told, key=lambda each: each[0], default=(0, ""))[1]


def _told_of(trace: Trace, kernel: Kernel) -> tuple[int, str]:
    """How much it tells (2: something stands out; 1: something was found; 0: nothing), and that in a line."""
    found = limited(kernel)
    told = found.short if found is not None and found.limit is not None else _stands_out(trace, kernel)
    share = "" if kernel.time_share is None else f", {kernel.time_share:.0%} of the time"
    words = f"{shorten(safe(kernel.demangled), _NAME)}{share}: {told}" if told else ""
    return (2 if told.startswith(STANDS_OUT) else 1 if told else 0), words


def _stands_out(trace: Trace, kernel: Kernel) -> str:
    """What its probes say first; "" where a result is too large to be read for this, or cannot be read."""
    told = brief(trace, kernel)
    return told.words if told.found and not any(one.problem for one in told.found) else ""


def kept_verdict(directory: Path) -> str:
    """The verdict of a run that has ended, read only where it is not known yet; "" where there is none.

    That a log has changed since is told by its size and time.
    """
    try:
        log = (directory / LOG).stat()
    except OSError:
        return ""
    stamp, name, known = [log.st_size, log.st_mtime_ns], str(directory.absolute()), _known()
    found = known.pop(name, None)
    if isinstance(found, list) and len(found) == 2 and found[0] == stamp and isinstance(found[1], str):
        return found[1]
    words = "" if log.st_size > LARGEST_LOG else _read(directory)
    kept = [*known.items(), (name, [stamp, words])][-MOST:]
    write_state(FILE, json.dumps(dict(kept)))
    return words


def _read(directory: Path) -> str:
    try:
        return verdict_of(open_trace(directory))
    except (ProbeError, OSError):
        return ""


def _known() -> dict[str, Any]:
    try:
        found = parse_json(read_state(FILE) or "{}")
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}
