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

    from tui_probe.trace.kernel import Kernel

_MOST_LINES: Final = 8
_NAME: Final = 40
"""Cells of a kernel's name in a line."""
_LINE: Final = re.compile(r" at line (\d{1,9})\b")


def located_failures(kernel: Kernel) -> tuple[str, ...]:
    """The failures of a kernel; a bad access with the line of source. Reads the kernel's PTX."""
    return tuple(safe(_located(kernel, text)) for text in kernel.failures)


def failure_lines(kernels: Iterable[Kernel]) -> Iterator[str]:
    """A line per kernel with failures, up to ``_MOST_LINES``; that of a failed context first."""
    failed = [kernel for kernel in kernels if kernel.failures]
    failed.sort(key=lambda kernel: not any("context" in text for text in kernel.failures))
    for kernel in failed[:_MOST_LINES]:
        words = "; ".join(located_failures(kernel))
        yield f"✘ #{kernel.index} {shorten(safe(kernel.demangled), _NAME)}: {words}"
    if len(failed) > _MOST_LINES:
        yield f"✘ {len(failed) - _MOST_LINES} more kernels: see the column status"


def _located(kernel: Kernel, text: str) -> str:
    match = _LINE.search(text)
    name = "probed.ptx" if kernel.status == "probed" else "original.ptx"
    path = kernel.file(name)
    if match is None or path is None:
        return text
    try:
        ptx = text_of(read_within(path, PTX_TEXT))
    except OSError:
        return text
    place = lines_of_directives(ptx).get(int(match[1]))
    shown = f" of {name}" + (f" ({place.file}:{place.line})" if place else "")
    return text[: match.end()] + shown + text[match.end() :]
