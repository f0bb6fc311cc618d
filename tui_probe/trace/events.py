"""One line of ``event.log`` -> one typed record.

``parse_line`` accepts any bytes and never raises: what it does not know is an :class:`Unknown`. Both tag dialects are
read (``[init] pid`` and ``[pid]``, ``[probe]`` and ``[jit]``, ``[callback]`` and ``[analyze]``), and words added at the
end of a line that is otherwise known do no harm.
"""

from __future__ import annotations

from tui_probe.trace.event_readers import READERS
from tui_probe.trace.event_types import Event
from tui_probe.trace.process_events import Unknown


def parse_line(line: bytes) -> Event:
    """The record of one line, with or without its end of line."""
    line = line.rstrip(b"\r\n")
    words = line.split(b" ", 2)
    by_word = READERS.get(words[0])
    if by_word is not None and len(words) > 1:
        for pattern, build in by_word.get(words[1]) or by_word.get(b"*", ()):
            match = pattern.match(line, len(words[0]) + 1)
            if match is not None:
                return build(match)
    return Unknown(line)


__all__ = ["Event", "parse_line"]
