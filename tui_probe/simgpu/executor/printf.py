"""``printf`` of kernels: a format, and arguments one after another in memory as ``vprintf`` gets them."""

from __future__ import annotations

import re
import struct
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable

_SPECIFIER: Final = re.compile(
    rb"%(?P<flags>[-+ #0]*)(?P<width>\*|\d*)(?:\.(?P<precision>\*|\d*))?(?P<length>hh|h|ll|l|j|z|t|L|)(?P<kind>.)",
    re.DOTALL,
)
_WIDE: Final = frozenset({b"l", b"ll", b"j", b"z", b"t"})
_INTEGERS: Final = b"diuoxXc"
_FLOATS: Final = b"aAeEfFgG"


class _Arguments:
    """Reads arguments in order, each at a multiple of its size."""

    def __init__(self, read: Callable[[int, int], bytes]) -> None:
        self._read = read
        self._next = 0

    def take(self, code: str) -> int | float:
        size = struct.calcsize(code)
        start = -(-self._next // size) * size
        self._next = start + size
        value: int | float = struct.unpack(f"<{code}", self._read(start, size))[0]
        return value


def formatted(text: bytes, read: Callable[[int, int], bytes], string_at: Callable[[int], bytes]) -> bytes:
    """``text`` with its specifiers replaced by arguments.

    ``read`` gives bytes of the arguments (offset, size), ``string_at`` the string at a device address. What is no
    specifier of the CUDA guide stands as it is, as there.
    """
    arguments = _Arguments(read)

    def replace(match: re.Match[bytes]) -> bytes:
        return _one(match, arguments, string_at)

    return _SPECIFIER.sub(replace, text)


def count_of_arguments(text: bytes) -> int:
    """How many arguments a format asks for, which is what ``printf`` of a kernel gives back."""
    return sum(match["kind"] in _INTEGERS + _FLOATS + b"ps" for match in _SPECIFIER.finditer(text))


def _one(match: re.Match[bytes], arguments: _Arguments, string_at: Callable[[int], bytes]) -> bytes:
    flags, width, precision, length, kind = match.group("flags", "width", "precision", "length", "kind")
    if kind == b"%":
        return b"%"
    if kind not in _INTEGERS + _FLOATS + b"ps":
        return match[0]
    width = _number(width, arguments)
    shape = b"%" + flags + width + (b"" if precision is None else b"." + _number(precision, arguments))
    if kind == b"s":
        return (shape + b"s") % string_at(int(arguments.take("Q")))
    if kind == b"p":
        return (b"%" + flags + width + b"s") % (b"0x%x" % int(arguments.take("Q")))
    if kind in _FLOATS:
        return _float(shape, kind, float(arguments.take("d")))
    return _integer(shape, kind, length, arguments)


def _number(text: bytes, arguments: _Arguments) -> bytes:
    return b"%d" % int(arguments.take("i")) if text == b"*" else text


def _float(shape: bytes, kind: bytes, value: float) -> bytes:
    if kind in b"aA":
        return value.hex().encode()
    return (shape + kind) % value


def _integer(shape: bytes, kind: bytes, length: bytes, arguments: _Arguments) -> bytes:
    signed = kind in b"di"
    code = ("q" if signed else "Q") if length in _WIDE else ("i" if signed else "I")
    value = int(arguments.take(code))
    if length in (b"h", b"hh"):
        bits = 16 if length == b"h" else 8
        value &= (1 << bits) - 1
        value -= (value >> (bits - 1) << bits) if signed else 0
    if kind == b"c":
        return (shape + b"c") % (value & 0xFF)
    return ((shape + (b"d" if kind == b"u" else kind)) % value).replace(b"0o", b"0")
