"""A reason: its prose and its code, and how both stand in a line of text."""

from __future__ import annotations

import re
from errno import EACCES, EDQUOT, EFBIG, ENOMEM, ENOSPC, EPERM, EROFS
from functools import lru_cache
from typing import TYPE_CHECKING, Final, NamedTuple

from tui_probe.reasons.listing import fill, listed_reasons

if TYPE_CHECKING:
    from collections.abc import Mapping

_WRITTEN: Final = re.compile(r"(.*) code ([a-z0-9-]+)", re.DOTALL)
_LINE: Final = re.compile(r"line (\d+): ")
_BREAKS: Final = re.compile(r"[\r\n\t]+")
_OF_ERRNO: Final = {
    ENOSPC: "disk-full",
    EDQUOT: "disk-full",
    EACCES: "not-permitted",
    EPERM: "not-permitted",
    EROFS: "not-permitted",
    EFBIG: "file-limit",
    ENOMEM: "host-memory",
}


class Reason(NamedTuple):
    """Why something was not done. ``code`` is None for words that no version known here writes.

    A reason about a line of PTX begins with ``line N: ``.
    """

    text: str
    code: str | None

    @property
    def written(self) -> str:
        """As it stands at the end of a line of a log, an answer or ``kernel.info``: ``TEXT code CODE``."""
        return f"{self.text} code {self.code}" if self.code else self.text

    @property
    def line(self) -> int:
        """The line of PTX that it is about, counted from 1; 0 for none."""
        found = _LINE.match(self.text)
        return int(found[1]) if found else 0

    @property
    def sentence(self) -> str:
        """The text without the line that it is about."""
        return _LINE.sub("", self.text, count=1)

    @property
    def parameters(self) -> Mapping[str, str]:
        """The parameters of its sentence by name; none where the text was cut off or is an older one."""
        listed = listed_reasons().get(self.code or "")
        found = listed and listed.pattern.fullmatch(self.sentence)
        return found.groupdict() if found else {}

    def shortened(self, most: int) -> Reason:
        """The same with at most so many bytes of text in UTF-8."""
        data = self.text.encode("utf-8", "replace")
        return self if len(data) <= most else self._replace(text=data[:most].decode("utf-8", "ignore"))


def because(code: str, /, *, line: int = 0, **parameters: str | int) -> Reason:
    """The reason of that code. Raises KeyError for a code that is not listed, ValueError for other parameters.

    ``line`` is that of the PTX which it is about, 0 for none. Line breaks and tabs become blanks.
    """
    listed = listed_reasons()[code]
    if parameters.keys() != listed.parameters.keys():
        raise ValueError(f"{code} takes {', '.join(listed.parameters) or 'no parameters'}, not {', '.join(parameters)}")
    text = fill(listed.sentence, {name: _BREAKS.sub(" ", str(value)) for name, value in parameters.items()})
    return Reason(f"line {line}: {text}" if line else text, code)


def because_of_file(path: object, error: OSError) -> Reason:
    """Why a file could not be written or read: no room, no permission, or something else."""
    code = _OF_ERRNO.get(error.errno or 0, "file-error")
    if code == "host-memory":
        return because("host-memory")
    words = error.strerror or str(error) or type(error).__name__
    return because(code, path=str(path), error=re.sub(r"[:()]", " ", words))


@lru_cache(maxsize=4096)
def read_reason(written: str) -> Reason:
    """A reason as ``written``, or as an older version wrote it: without a code, which its sentence gives then."""
    found = _WRITTEN.fullmatch(written)
    if found and found[2] in listed_reasons():
        return Reason(found[1], found[2])
    return Reason(written, _older_code(_LINE.sub("", written, count=1)))


def _older_code(sentence: str) -> str | None:
    """The code of a whole sentence of a version without codes; None for any other words."""
    for listed in listed_reasons().values():
        if any(pattern.fullmatch(sentence) for pattern in listed.older_patterns):
            return listed.code
    return None


def advice_on(code: str | None, parameters: Mapping[str, str]) -> str:
    """What a person can do; "" where that is nothing, or where it needs a parameter that is not known."""
    listed = listed_reasons().get(code or "")
    try:
        return fill(listed.advice, parameters) if listed else ""
    except KeyError:
        return ""
