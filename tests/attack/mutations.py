"""Damaged copies of real files: what disks, networks, editors and other people do to them."""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Sequence
from typing import Final

_EDGES: Final = (
    0,
    1,
    0x7F,
    0x80,
    0xFF,
    0x7FFF,
    0x8000,
    0xFFFF,
    0x7FFFFFFF,
    0x80000000,
    0xFFFFFFFF,
    2**63 - 1,
    2**64 - 1,
)
_NUMBERS: Final = (
    b"0", b"-1", b"1e999", b"NaN", b"Infinity", b"4294967295", b"4294967296", b"18446744073709551615", b"1" * 60, b"",
    b"0x", b"\xc2\xb2", b"\xd9\xa3", b"1_0", b"00", b"9" * 5000, b"true", b"null", b'"text"', b"[]", b"{}", b"-0.0",
)  # fmt: skip
_PIECES: Final = (
    b"\0", b"\n", b"\r", b"\xff", b"\xed\xa0\x80", b"\xe2\x80\xa8", b"\x1b[2J", b'"', b"'", b"\\", b"}", b"{", b"]",
    b"[", b"[" * 3000, b'{"a":' * 3000, b"(" * 3000, b",", b":", b"\t", b" " * 300, b"%s", b"../" * 8, b"/*", b"//",
    b"#", b"=",
)  # fmt: skip
_NUMBER: Final = re.compile(rb"\d+")
_LINES: Final = 400
"""Of a file that mutations of lines look at, so that they cost little."""

Mutation = Callable[[random.Random, bytearray, Sequence[bytes]], None]


def mutated(chance: random.Random, seeds: Sequence[bytes]) -> bytes:
    """One of the seeds with one to four mutations; now and then as it is, or nothing of it."""
    data = bytearray(chance.choice(seeds))
    for _ in range(chance.choice((0, 1, 1, 1, 2, 2, 4))):
        chance.choice(MUTATIONS)(chance, data, seeds)
    return bytes(data)


def _place(chance: random.Random, data: bytearray) -> int:
    """Anywhere, rather at the start, where heads and tables are."""
    end = min(len(data), 256) if chance.random() < 0.4 else len(data)
    return chance.randrange(end) if end else 0


def _flip(chance: random.Random, data: bytearray, _: Sequence[bytes]) -> None:
    for _unused in range(chance.choice((1, 1, 3, 20))):
        if data:
            data[_place(chance, data)] ^= 1 << chance.randrange(8)


def _edge(chance: random.Random, data: bytearray, _: Sequence[bytes]) -> None:
    """A number of 1, 2, 4 or 8 bytes, at a multiple of its size."""
    size = chance.choice((1, 2, 4, 4, 8, 8))
    at = _place(chance, data) // size * size
    value = chance.choice(_EDGES) + chance.choice((0, 0, 0, 1, -1))
    if at + size <= len(data):
        data[at : at + size] = (value % (1 << 8 * size)).to_bytes(size, "little")


def _cut(chance: random.Random, data: bytearray, _: Sequence[bytes]) -> None:
    del data[_place(chance, data) :]


def _remove(chance: random.Random, data: bytearray, _: Sequence[bytes]) -> None:
    at = _place(chance, data)
    del data[at : at + chance.choice((1, 4, 8, 16, 100))]


def _repeat(chance: random.Random, data: bytearray, _: Sequence[bytes]) -> None:
    at, size = _place(chance, data), chance.choice((1, 8, 16, 64, 300))
    data[at:at] = data[at : at + size] * chance.choice((1, 1, 2, 30))


def _insert(chance: random.Random, data: bytearray, _: Sequence[bytes]) -> None:
    at = _place(chance, data)
    data[at:at] = chance.choice(_PIECES)


def _number(chance: random.Random, data: bytearray, _: Sequence[bytes]) -> None:
    """A number in a text becomes another, or what is none."""
    start = _place(chance, data)
    if (found := _NUMBER.search(data, start)) is not None:
        data[found.start() : found.end()] = chance.choice(_NUMBERS)


def _line(chance: random.Random, data: bytearray, seeds: Sequence[bytes]) -> None:
    """A line goes, comes twice, or is one of another file."""
    lines = bytes(data).split(b"\n")
    if len(lines) > _LINES:
        return
    at, others = chance.randrange(len(lines)), chance.choice(seeds)[: 1 << 15].split(b"\n")
    lines[at : at + 1] = chance.choice(
        ([], [lines[at]] * 2, [chance.choice(others)], [chance.choice(lines), lines[at]])
    )
    data[:] = b"\n".join(lines)


def _splice(chance: random.Random, data: bytearray, seeds: Sequence[bytes]) -> None:
    """The end of another seed."""
    other = chance.choice(seeds)
    data[_place(chance, data) :] = other[chance.randrange(len(other) + 1) :]


MUTATIONS: Final[tuple[Mutation, ...]] = (
    _flip,
    _flip,
    _edge,
    _edge,
    _cut,
    _remove,
    _repeat,
    _insert,
    _number,
    _number,
    _line,
    _splice,
)
