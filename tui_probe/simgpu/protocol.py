"""Requests and replies between the driver (``hook/simgpu``) and its server, and their encoding, as in ``protocol.h``.

Integers are little-endian. The server is started with the socket as descriptor 3 and the memory file as descriptor 4;
its one argument tells where the program has mapped that file, and the machine: "memory_address=N,…". It begins
with ``VERSION`` as a u32. Then each request has one reply:

    request     u32 kind, u32 length of the body, body
    reply       u32 status, u32 length of the body, body. Unless the status is OK the body is a Failure.

Before the reply to a launch there may be others with the status RUNNING, whose body is RunningFindings.

A message is a dataclass whose fields are annotated with how they are written::

    @dataclass(frozen=True)
    class Place:
        module: Annotated[int, U64]
        addresses: Annotated[tuple[int, ...], Sequence(U64)]

    unpack(Place, pack(message)) == message
"""

from __future__ import annotations

import struct
from dataclasses import dataclass, fields
from enum import IntEnum
from typing import Annotated, Any, Final, Protocol, TypeAlias, TypeVar, cast, get_type_hints

from tui_probe.errors import SimulationError

MessageT = TypeVar("MessageT")
VERSION: Final = 6
SOCKET_DESCRIPTOR: Final = 3
MEMORY_DESCRIPTOR: Final = 4
"""The first numbers behind the standard streams; the driver in ``hook/simgpu`` puts the files there."""
Dimensions: TypeAlias = tuple[int, int, int]


class MessageReader:
    """Takes bytes from the front of a message. Raises SimulationError past its end."""

    def __init__(self, content: bytes) -> None:
        self._content = content
        self._position = 0

    def take(self, count: int) -> bytes:
        end = self._position + count
        if end > len(self._content):
            raise SimulationError(f"a message of {len(self._content)} bytes ends before byte {end}")
        content = self._content[self._position : end]
        self._position = end
        return content

    def finish(self) -> None:
        """Raise SimulationError if anything is left."""
        surplus = len(self._content) - self._position
        if surplus:
            raise SimulationError(f"a message of {len(self._content)} bytes is {surplus} bytes too long")


class Codec(Protocol):
    """Encoding of one kind of value."""

    def write(self, value: Any) -> bytes: ...

    def read(self, reader: MessageReader) -> Any: ...


class Scalar:
    """A number, in one of the formats of ``struct``."""

    def __init__(self, code: str) -> None:
        self._format = struct.Struct(f"<{code}")

    def write(self, value: Any) -> bytes:
        return self._format.pack(value)

    def read(self, reader: MessageReader) -> Any:
        return self._format.unpack(reader.take(self._format.size))[0]


class Bytes:
    """A length (u32), then the bytes."""

    def write(self, value: Any) -> bytes:
        return U32.write(len(value)) + bytes(value)

    def read(self, reader: MessageReader) -> Any:
        return reader.take(U32.read(reader))


class Text(Bytes):
    """Bytes that are UTF-8."""

    def write(self, value: Any) -> bytes:
        return super().write(value.encode("utf-8", "surrogateescape"))

    def read(self, reader: MessageReader) -> Any:
        return super().read(reader).decode("utf-8", "surrogateescape")


class FixedTuple:
    """``count`` values of one kind, as a tuple."""

    def __init__(self, item: Codec, count: int) -> None:
        self._item, self._count = item, count

    def write(self, value: Any) -> bytes:
        if len(value) != self._count:
            raise ValueError(f"expected {self._count} values, not {len(value)}")
        return b"".join(map(self._item.write, value))

    def read(self, reader: MessageReader) -> Any:
        return tuple(self._item.read(reader) for _ in range(self._count))


class Sequence:
    """A count (u32), then that many values of one kind, as a tuple."""

    def __init__(self, item: Codec) -> None:
        self._item = item

    def write(self, value: Any) -> bytes:
        return U32.write(len(value)) + b"".join(map(self._item.write, value))

    def read(self, reader: MessageReader) -> Any:
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

    def read(self, reader: MessageReader) -> Any:
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
    reader = MessageReader(content)
    message = _record(kind).read(reader)
    reader.finish()
    return cast("MessageT", message)


class Status(IntEnum):
    """Outcome of a request. From ILLEGAL_ADDRESS to ASSERT, the kernel failed as it would on a GPU."""

    OK = 0
    NOT_SUPPORTED = 1
    NO_PTX = 2
    INVALID_PTX = 3
    ILLEGAL_ADDRESS = 4
    MISALIGNED_ADDRESS = 5
    TRAP = 6
    DEADLOCK = 7
    ASSERT = 8
    UNSUPPORTED_VERSION = 9
    RUNNING = 10


class VariableSpace(IntEnum):
    """Position of a module's variable in memory."""

    GLOBAL = 0
    CONST = 1


@dataclass(frozen=True, slots=True)
class LoadRequest:
    """Load a module. ``image`` is what cuModuleLoadData was given, without what follows its end."""

    image: Annotated[bytes, BYTES]


@dataclass(frozen=True, slots=True)
class PlaceRequest:
    """The addresses of a module's variables, in the order of the Loaded reply, with their initial values in memory.

    The server then writes what addresses these values hold.
    """

    module: Annotated[int, U64]
    addresses: Annotated[tuple[int, ...], Sequence(U64)]


@dataclass(frozen=True, slots=True)
class DescribeRequest:
    """Compile a kernel and tell what it is. ``kernel`` is its index in the Loaded reply."""

    module: Annotated[int, U64]
    kernel: Annotated[int, U32]


@dataclass(frozen=True, slots=True)
class MemoryChange:
    """A range of device memory was allocated (kind 1), initialised (2) or freed (3); 4: all ranges are forgotten."""

    kind: Annotated[int, U32]
    address: Annotated[int, U64]
    size: Annotated[int, U64]


@dataclass(frozen=True, slots=True)
class LaunchRequest:
    """Execute a kernel. ``start_cycle`` is the simulated time at which it starts.

    ``cluster`` is in blocks, all 0 for none but the kernel's own; ``workspace`` the address of 8 bytes for the barrier
    of a cooperative grid, 0 for any other. ``changes`` are those since the last launch, none without checks.
    """

    module: Annotated[int, U64]
    kernel: Annotated[int, U32]
    grid: Annotated[Dimensions, FixedTuple(U32, 3)]
    block: Annotated[Dimensions, FixedTuple(U32, 3)]
    dynamic_shared_bytes: Annotated[int, U32]
    start_cycle: Annotated[int, U64]
    cluster: Annotated[Dimensions, FixedTuple(U32, 3)]
    workspace: Annotated[int, U64]
    parameters: Annotated[bytes, BYTES]
    changes: Annotated[tuple[MemoryChange, ...], Sequence(Record(MemoryChange))] = ()


@dataclass(frozen=True, slots=True)
class UnloadRequest:
    """Forget a module."""

    module: Annotated[int, U64]


@dataclass(frozen=True, slots=True)
class LinkRequest:
    """Make one image of several. ``images`` are what cuLinkAddData was given."""

    images: Annotated[tuple[bytes, ...], Sequence(BYTES)]


Request: TypeAlias = LoadRequest | PlaceRequest | DescribeRequest | LaunchRequest | UnloadRequest | LinkRequest
REQUESTS: Final[dict[int, type[Request]]] = {
    1: LoadRequest,
    2: PlaceRequest,
    3: DescribeRequest,
    4: LaunchRequest,
    5: UnloadRequest,
    6: LinkRequest,
}


@dataclass(frozen=True, slots=True)
class Variable:
    """A variable of a module. ``initial`` has as many bytes as it, or none for zeros."""

    name: Annotated[str, TEXT]
    space: Annotated[int, U32]
    size: Annotated[int, U64]
    align: Annotated[int, U64]
    initial: Annotated[bytes, BYTES]


@dataclass(frozen=True, slots=True)
class LoadReply:
    """Reply to Load. ``target`` is 80 for sm_80; ``kernels`` are names."""

    module: Annotated[int, U64]
    target: Annotated[int, U32]
    kernels: Annotated[tuple[str, ...], Sequence(TEXT)]
    variables: Annotated[tuple[Variable, ...], Sequence(Record(Variable))]


@dataclass(frozen=True, slots=True)
class Parameter:
    """A parameter of a kernel, in bytes from the start of its parameters."""

    offset: Annotated[int, U32]
    size: Annotated[int, U32]


@dataclass(frozen=True, slots=True)
class DescribeReply:
    """Reply to Describe. ``registers`` is -1 where the image has no machine code to tell; then there is an estimate.

    ``cluster`` is what the kernel asks for, in blocks, all 0 for none.
    """

    static_shared_bytes: Annotated[int, U32]
    local_bytes: Annotated[int, U32]
    max_threads: Annotated[int, U32]
    registers: Annotated[int, I32]
    estimated_registers: Annotated[int, U32]
    cluster: Annotated[Dimensions, FixedTuple(U32, 3)]
    parameters: Annotated[tuple[Parameter, ...], Sequence(Record(Parameter))]


@dataclass(frozen=True, slots=True)
class LaunchReply:
    """Reply to Launch: cycles from start to end, instructions, counted once for each warp that executed one, what
    threads printed, and findings of checks as JSON.
    """

    cycles: Annotated[int, U64]
    instructions: Annotated[int, U64]
    printf_output: Annotated[bytes, BYTES] = b""
    findings: Annotated[tuple[str, ...], Sequence(TEXT)] = ()


@dataclass(frozen=True, slots=True)
class LinkReply:
    """Reply to Link: an image that can be loaded."""

    image: Annotated[bytes, BYTES]


@dataclass(frozen=True, slots=True)
class EmptyReply:
    """Reply to Place and Unload."""


@dataclass(frozen=True, slots=True)
class Failure:
    """Reply with any other status than OK: what went wrong, for a user, what threads printed before that, findings."""

    message: Annotated[str, TEXT]
    printf_output: Annotated[bytes, BYTES] = b""
    findings: Annotated[tuple[str, ...], Sequence(TEXT)] = ()


@dataclass(frozen=True, slots=True)
class RunningFindings:
    """All findings so far of a kernel that runs and may never end, in the order of those in the reply to Launch."""

    findings: Annotated[tuple[str, ...], Sequence(TEXT)]


Reply: TypeAlias = LoadReply | DescribeReply | LaunchReply | LinkReply | EmptyReply


def decode_request(kind: int, body: bytes) -> Request:
    """The request in ``body``. Raises SimulationError for an unknown kind and for a body that does not fit."""
    if kind not in REQUESTS:
        raise SimulationError(f"the driver sent a request of unknown kind {kind}")
    return unpack(REQUESTS[kind], body)
