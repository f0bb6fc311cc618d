"""Read a large JSON document value by value."""

from __future__ import annotations

import codecs
import json
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Final

from tui_probe.input_limits import JSON_VALUE

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import IO

_AT_ONCE: Final = 1 << 20
"""Bytes that are read at a time."""
_SPACE: Final = " \t\r\n"
_AFTER_NUMBER: Final = 64
"""Signs behind a value by which it is known to be whole: a number may continue in what is not read yet."""


class Truncated(Exception):  # noqa: N818 - not an error where a part is enough
    """The document ends within a value."""


class JsonStream:
    """Goes through a document once. Raises ValueError where it is not JSON, Truncated where it ends early."""

    def __init__(self, file: IO[bytes]) -> None:
        self._read = getattr(file, "read1", file.read)
        """Gives what can be unpacked of a file that is cut off."""
        self._decode = codecs.getincrementaldecoder("utf-8-sig")("replace").decode
        self._scan = json.JSONDecoder(parse_float=Decimal).raw_decode
        self._text = ""
        self._at = 0
        self._ended = False

    def peek(self) -> str:
        """The next sign that is not a blank. Truncated at the end."""
        while True:
            while self._at < len(self._text):
                if self._text[self._at] not in _SPACE:
                    return self._text[self._at]
                self._at += 1
            if not self._more():
                raise Truncated

    def take(self, sign: str) -> bool:
        """Return whether the next sign is this one; then it is passed."""
        there = self.peek() == sign
        self._at += there
        return there

    def value(self) -> Any:
        """The next value as a whole; numbers with a point are Decimal."""
        self.peek()
        while True:
            try:
                value, end = self._scan(self._text, self._at)
            except json.JSONDecodeError as error:
                if self._ended:
                    raise (Truncated if self._is_cut_off(error) else error) from error
            else:
                if self._ended or end + _AFTER_NUMBER < len(self._text):
                    self._at = end
                    return value
            self._more()

    def _is_cut_off(self, error: json.JSONDecodeError) -> bool:
        """Return whether a value continues behind the end, rather than being wrong."""
        return error.msg.startswith("Unterminated") or error.pos + _AFTER_NUMBER >= len(self._text)

    def members(self) -> Iterator[str]:
        """The keys of the object that begins here; the value of each has to be taken before the next."""
        yield from self._items("{", "}")

    def elements(self) -> Iterator[None]:
        """One step per element of the array that begins here; each has to be taken before the next."""
        for _ in self._items("[", "]"):
            yield None

    def _items(self, begin: str, end: str) -> Iterator[str]:
        if not self.take(begin):
            raise ValueError(f"{begin} was expected, not {self.peek()}")
        if self.take(end):
            return
        while True:
            key = self.value() if begin == "{" else ""
            if begin == "{" and not self.take(":"):
                raise ValueError(f"a colon was expected, not {self.peek()}")
            yield key
            if self.take(end):
                return
            if not self.take(","):
                raise ValueError(f"a comma was expected, not {self.peek()}")

    def _more(self) -> bool:
        """Read on, and forget what was passed; False at the end. ValueError above the limit of one value."""
        if self._ended:
            return False
        if len(self._text) - self._at > JSON_VALUE.most:
            raise ValueError(f"a value of more than {JSON_VALUE.most >> 20} MiB")
        data = self._read(_AT_ONCE)
        self._ended = not data
        self._text = self._text[self._at :] + self._decode(data, final=self._ended)
        self._at = 0
        return bool(data)
