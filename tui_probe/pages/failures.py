"""Failures of kernels with their place in the source, for reports and the first lines of a kernel's page."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from tui_probe.draw.shorten import shorten
from tui_probe.draw.table import safe
from tui_probe.input_limits import PTX_TEXT
from tui_probe.trace.plain_file import read_within
from tui_probe.trace.source_lines import lines_of_directives
from tui_probe.trace.text import text_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from tui_probe.trace.kernel import Kernel

_MOST_LINES: Final = 8
_NAME: Final = 40
"""Cells of a kernel's name in a line."""
_LINE: Final = re.compile(r" at line (\d{1,9})\b")


def located_failures(kernel: Kernel) -> tuple[str, ...]:
    """The failures of a kernel; a bad access with the line of source. Reads the kernel's PTX."""
    return tuple(safe(_located(kernel, text)) for text in kernel.failures)


def failure_lines(kernels: Iterable[Kernel]) -> Iterator[str]:
    """A line per kernel with failures, up to ``_MOST_LINES``."""
    failed = [kernel for kernel in kernels if kernel.failures]
    for kernel in failed[:_MOST_LINES]:
        words = "; ".join(located_failures(kernel))
        yield f"✘ #{kernel.index} {shorten(safe(kernel.demangled), _NAME)}: {words}"
    if len(failed) > _MOST_LINES:
        yield f"✘ {len(failed) - _MOST_LINES} more kernels: see the column status"


def _located(kernel: Kernel, text: str) -> str:
    match = _LINE.search(text)
    if match is None:
        return text
    sign = "[" if "address" in text else ""
    names: dict[str, str] = {}
    for name, path in _texts_that_ran(kernel):
        place = _place(path, int(match[1]), sign)
        if place is not None:
            names.setdefault(place, name)
    shown = " or".join(f" of {name}{place}" for place, name in names.items())
    return text[: match.end()] + shown + text[match.end() :]


def _texts_that_ran(kernel: Kernel) -> Iterator[tuple[str, Path]]:
    """The PTX of each probe, and of launches that ran unprobed: the log does not name the probe of the last launch."""
    for one in kernel.by_probe():
        if one.status == "probed" and (path := one.file("probed.ptx")) is not None:
            yield f"{one.probe}/probed.ptx" if len(kernel.probings) > 1 else "probed.ptx", path
    if kernel.launches_probed < kernel.launches and (path := kernel.file("original.ptx")) is not None:
        yield "original.ptx", path


def _place(path: Path, number: int, sign: str) -> str | None:
    """The line of source of a line of PTX, "" if it has none; None if that line does not have the sign."""
    try:
        ptx = text_of(read_within(path, PTX_TEXT))
    except OSError:
        return None
    lines = ptx.split("\n")
    if number > len(lines) or sign not in lines[number - 1]:
        return None
    place = lines_of_directives(ptx).get(number)
    return f" ({place.file}:{place.line})" if place else ""
