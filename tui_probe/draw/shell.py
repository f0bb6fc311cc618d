"""Commands that a user may paste: file names as words for a shell, long commands in lines that it joins again."""

from __future__ import annotations

import re
import shlex
from typing import TYPE_CHECKING, Final

from tui_probe.draw.spans import width
from tui_probe.draw.table import safe

if TYPE_CHECKING:
    from collections.abc import Iterator

_WORD: Final = re.compile(r"""(?:'[^']*'|"[^"]*"|\\.|[^\s'"\\]|['"\\])+""")
"""Pattern of a word of a command, with its quotes."""
_CONTINUED: Final = " \\"
_HANGS: Final = 4


def shell_word(text: object) -> str:
    """A word of a command, quoted if need be, and safe to show."""
    return safe(shlex.quote(str(text)))


def command_lines(words: str, command: str, cells: int) -> Iterator[str]:
    """``words command`` in lines of at most ``cells`` cells, each but the last with ``\\`` at its end.

    A word that is longer is in a line of its own, whole: what is cut cannot be pasted.
    """
    indent = words[: len(words) - len(words.lstrip())]
    first, *arguments = _WORD.findall(command)
    room = cells - len(_CONTINUED)
    if width(f"{words} {command}") <= cells:
        yield f"{words} {command}"
        return
    line = f"{words} {first}"
    for word in arguments:
        if width(line) + 1 + width(word) > room:
            yield line + _CONTINUED
            line = f"{indent}{' ' * _HANGS}{word}"
        else:
            line += f" {word}"
    yield line
