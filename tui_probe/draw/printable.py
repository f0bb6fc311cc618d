"""Text out of files and programs as text that is safe to show: the one function that every edge uses.

An edge is where words leave the tool: messages, text, CSV, Markdown, SVG, HTML, cells of the screens. JSON keeps every
character, and writes those that are not safe as ``\\u`` escapes.
"""

from __future__ import annotations

import json
import re
import shlex
from typing import Any, Final

_UNSAFE: Final = re.compile(
    "["
    "\x00-\x1f\x7f-\x9f"  # control characters; U+009B begins an escape sequence, as ESC [ does
    "\u00ad\u0600-\u0605\u061c\u06dd\u070f\u0890\u0891\u08e2\u180e"  # marks without a shape, or that reorder
    "\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb"  # widths of zero, lines, directions
    "\ufdd0-\ufdef\ufffe\uffff"  # no characters: XML has no place for them
    "\ud800-\udfff"  # halves of characters: what was not a UTF-8 in a file name
    "\U000110bd\U000110cd\U00013430-\U0001343f\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff"
    "]"
)
_ESCAPE: Final = re.compile(
    r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)?|[PX^_][^\x1b]*(?:\x1b\\)?|[ -/]*[0-~])"
)
_MAX_BYTES_TEXT: Final = 4096


def printable(raw: str | bytes, *, limit: int | None = None, raw_bytes: bool = False) -> str:
    """Return one line as text that is safe to show anywhere, of at most ``limit`` characters.

    By default that is all of a text, and 4096 of bytes, since the lines of a file may have any length.

    Bytes that are not UTF-8 become U+FFFD, escape sequences go, tabs become spaces, other characters that steer a
    terminal, have no shape or turn the direction of writing become ``·``; of a line rewritten with carriage returns (a
    progress bar) the last state stays. With ``raw_bytes`` what stands for a byte of a file name that is not UTF-8
    stays, so that scripts find the file.
    """
    if isinstance(raw, bytes):
        limit = limit or _MAX_BYTES_TEXT
        text = raw[: 4 * limit].decode("utf-8", "replace")
    else:
        text = raw
    if text.isprintable():
        return text[:limit]
    text = text.rstrip("\r\n")
    if "\r" in text:
        text = text[text.rindex("\r") + 1 :]
    if "\x1b" in text:
        text = _ESCAPE.sub("", text)
    if "\t" in text:
        text = text.expandtabs(8)
    return _UNSAFE.sub(_replacement_keeping_bytes if raw_bytes else _replacement, text)[:limit]


def printable_lines(text: str, *, raw_bytes: bool = False) -> str:
    """Several lines; those after the first are indented, so that none is mistaken for a line of its own."""
    first_line, *other_lines = text.split("\n")
    lines = (first_line, *(line if line.startswith(" ") or not line else f"  {line}" for line in other_lines))
    return "\n".join(printable(line, raw_bytes=raw_bytes) for line in lines)


def printable_text(text: str) -> str:
    """Lines as ``printable`` makes each, for what leaves the screen: a clipboard, a file."""
    return "\n".join(map(printable, text.split("\n")))


def shell_word(text: object) -> str:
    """Return a word of a command, quoted if need be, and safe to show."""
    return printable(shlex.quote(str(text)))


def dump_json(value: Any, *, indent: int | None = None) -> str:
    """Return ``value`` as JSON in which characters that are not safe to show are escaped, and nothing is lost."""
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, indent=indent)
    return text if text.isascii() and "\x7f" not in text else _UNSAFE.sub(_json_escape, text)


def _replacement(match: re.Match[str]) -> str:
    return "\N{REPLACEMENT CHARACTER}" if "\ud800" <= match[0] <= "\udfff" else "·"


def _replacement_keeping_bytes(match: re.Match[str]) -> str:
    return match[0] if "\udc80" <= match[0] <= "\udcff" else _replacement(match)


def _json_escape(match: re.Match[str]) -> str:
    # Lines that json.dumps broke are its own: inside a string a line break is an escape already.
    return "\n" if match[0] == "\n" else json.dumps(match[0])[1:-1]
