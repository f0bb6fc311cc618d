"""Messages as bytes: a dataclass whose fields are annotated with how they are written.

    @dataclass(frozen=True)
    class Place:
        module: Annotated[int, U64]
        addresses: Annotated[tuple[int, ...], Sequence(U64)]

    unpack(Place, pack(message)) == message

Everything is little-endian; ``protocol`` documents the messages.
"""

from __future__ import annotations

import struct
from dataclasses import fields
from typing import Any, Protocol, TypeVar, cast, get_type_hints

from tui_probe.errors import SimulationError

MessageT = TypeVar("MessageT")


class Reader:
    """Takes bytes from the front of a message. Raises SimulationError past its end."""

    def __init__(self, content: bytes) -> None:
        self._content = content
        self._position = 0

    def take(self, count: int) -> bytes:
        end = self._position + count
        if end > len(self._content):
            raise SimulationError(f"a message of {len(self._content)} bytes ends before byte {end}")
        taken = self._content[self._position : end]
        self._position = end
        return taken

    def finish(self) -> None:
        """Raises SimulationError if anything is left."""
        left = len(self._content) - self._position
        if left:
            raise SimulationError(f"a message of {len(self._content)} bytes has {left} bytes too many")


class Codec(Protocol):
    """How one kind of value is written."""

    def write(self, value: Any) -> bytes: ...

    def read(self, reader: Reader) -> Any: ...


class Scalar:
    """A number, in one of the formats of ``struct``."""

    def __init__(self, code: str) -> None:
        self._format = struct.Struct(f"<{code}")

    def write(self, value: Any) -> bytes:
        return self._format.pack(value)

    def read(self, reader: Reader) -> Any:
        return self._format.unpack(reader.take(self._format.size))[0]


class Bytes:
    """Its length (u32), then the bytes."""

    def write(self, value: Any) -> bytes:
        return U32.write(len(value)) + bytes(value)

    def read(self, reader: Reader) -> Any:
        return reader.take(U32.read(reader))


class Text(Bytes):
    """Bytes that are UTF-8."""

    def write(self, value: Any) -> bytes:
        return super().write(value.encode("utf-8", "surrogateescape"))

    def read(self, reader: Reader) -> Any:
        return super().read(reader).decode("utf-8", "surrogateescape")


class Fixed:
    """``count`` values of one kind, as a tuple."""

    def __init__(self, item: Codec, count: int) -> None:
        self._item, self._count = item, count

    def write(self, value: Any) -> bytes:
        if len(value) != self._count:
            raise ValueError(f"{self._count} values expected, not {len(value)}")
        return b"".join(map(self._item.write, value))

    def read(self, reader: Reader) -> Any:
        return tuple(self._item.read(reader) for _ in range(self._count))


class Sequence:
    """A count (u32), then so many values of one kind, as a tuple."""

    def __init__(self, item: Codec) -> None:
        self._item = item

    def write(self, value: Any) -> bytes:
        return U32.write(len(value)) + b"".join(map(self._item.write, value))

    def read(self, reader: Reader) -> Any:
        return tuple(self._item.read(reader) for _ in range(U32.read(reader)))


class Record:
    """A dataclass: its fields in order."""

    def __init__(self, kind: type[Any]) -> None:
        hints = get_type_hints(kind, include_extras=True)
        self._kind = kind
        self._fields: list[tuple[str, Codec]] = [
            (field.name, hints[field.name].__metadata__[0]) for field in fields(kind)
        ]

    def write(self, value: Any) -> bytes:
        return b"".join(codec.write(getattr(value, name)) for name, codec in self._fields)

    def read(self, reader: Reader) -> Any:
        return self._kind(**{name: codec.read(reader) for name, codec in self._fields})


U32 = Scalar("I")
I32 = Scalar("i")
U64 = Scalar("Q")
TEXT = Text()
BYTES = Bytes()


_records: dict[type[Any], Record] = {}


def _record(kind: type[Any]) -> Record:
    if kind not in _records:
        _records[kind] = Record(kind)
    return _records[kind]


def pack(message: object) -> bytes:
    """The bytes of a message."""
    return _record(type(message)).write(message)


def unpack(kind: type[MessageT], content: bytes) -> MessageT:
    """The message in ``content``. Raises SimulationError if it is cut off or too long."""
    reader = Reader(content)
    message = _record(kind).read(reader)
    reader.finish()
    return cast("MessageT", message)
