"""The parameters of launches, which the log has and the trace model does not keep."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from tui_probe.errors import TraceError
from tui_probe.trace.locate import LOG
from tui_probe.trace.log_tail import LogTail

if TYPE_CHECKING:
    from collections.abc import Callable

    from tui_probe.trace.model import Trace


def read_parameters(trace: Trace, kernel: int, progress: Callable[[float], None]) -> dict[int, bytes]:
    """The words after ``param`` of each probed launch of a kernel, by the launch's number.

    Reads the whole log, in slices. A launch that was passed through has none. TraceError if the log cannot be read.
    """
    path = trace.file(LOG)
    if path is None:
        raise TraceError(f"{trace.directory}: {LOG} is no longer there")
    line = re.compile(
        rb"^\[exec\] \d+ param ([^\n]*)\n\[exec\] grid [^\n]{1,200}? kernel %d launch (\d{1,18}) " % kernel,
        re.MULTILINE,
    )
    size = max(1, path.stat().st_size)
    found: dict[int, bytes] = {}
    tail, rest = LogTail(path), b""
    for lines in tail.slices():
        progress(min(1.0, tail.offset / size))
        text = rest + lines
        found.update((int(number), words.strip()) for words, number in line.findall(text))
        rest = text[text.rfind(b"\n", 0, len(text) - 1) + 1 :]  # its launch may be in the next slice
    return found
