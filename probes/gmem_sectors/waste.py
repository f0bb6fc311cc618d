"""Which line moves sectors for nothing: those beyond what its lanes ask for.

    needed   the bytes of one lane's access     sectors per request of 32 lanes side by side: 32 · bytes / 32
    wasted   sectors - needed · requests        of an instruction whose bytes are known

An access of 16 bytes per lane touches 16 sectors per request and wastes none, so sectors per request alone do not tell.
With lanes switched off fewer are needed than ``needed``: what is wasted is then at least what is said.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tui_probe.analysis.access_lines import access_lines

from .analysis import is_counted, requests_and_sectors

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from tui_probe.analysis.by_line import LineSums


def worst_line(lines: Iterable[LineSums], folder: Path | None) -> tuple[LineSums, int, int] | None:
    """The line, the sectors that it wastes, and those that a request of it needs; None if none wastes any."""
    needed = {line: code.bytes for line, code in access_lines(folder).items()} if folder else {}
    known = []
    for each in filter(is_counted, lines):
        size = needed.get(each.line)
        requests, sectors = requests_and_sectors(each)
        if size is not None and sectors > size * requests:
            known.append((each, sectors - size * requests, size))
    return max(known, key=lambda row: row[1], default=None)
