"""Lines of PTX and machine code as they are drawn: tabs spread, what is not code set back."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from tui_probe.draw.printable import printable
from tui_probe.engine.edits import MARK
from tui_probe.input_limits import SHOWN_TEXT
from tui_probe.trace.plain_file import read_start

if TYPE_CHECKING:
    from pathlib import Path

    from tui_probe.draw.spans import Span

TAB: Final = 4
_PARTS: Final = re.compile(
    r"""(?P<comment>//.*|/\*.*?\*/)
      | (?P<directive>(?<![\w%$])\.(?:loc|file|reg|param|version|target|address_size|section|align|shared|global|pragma
                       |maxntid|reqntid|minnctapersm|b8|b16|b32|b64|u32|u64)\b)
      | (?P<label>^\s*[$A-Za-z_][\w$.]*:)""",
    re.VERBOSE,
)
_ROLES: Final = {"comment": "dim", "directive": "dim", "label": "head"}


def read_lines(path: Path) -> list[str]:
    """The lines of a text file. OSError if it cannot be read; what is beyond the limit is left out."""
    text = read_start(path, SHOWN_TEXT).decode("utf-8", "replace")
    return text.replace("\r\n", "\n").rstrip("\n").split("\n")


def drawn(text: str) -> str:
    """A line with its tabs spread, and safe to draw."""
    text = text.expandtabs(TAB) if "\t" in text else text
    return text if text.isprintable() else printable(text.encode("utf-8", "replace"))


def without_mark(text: str) -> str:
    """A line without the comment that names its probe; one that is nothing but a comment stays as it is."""
    own, mark, _ = text.partition(MARK)
    return own.rstrip() if mark and own.strip() else text


def coloured(text: str, role: str = "") -> tuple[Span, ...]:
    """Spans of a line that was ``drawn``: comments and directives set back, labels set out; the rest in ``role``."""
    if text.lstrip().startswith((".loc", ".file")):
        return ((text, "dim"),)
    spans: list[Span] = []
    done = 0
    for match in _PARTS.finditer(text):
        if match.start() > done:
            spans.append((text[done : match.start()], role))
        spans.append((match[0], _ROLES[match.lastgroup or "comment"]))
        done = match.end()
    if done < len(text):
        spans.append((text[done:], role))
    return tuple(spans)
