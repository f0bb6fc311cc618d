"""What the driver (``hook/simgpu``) and its server say to each other over a stream socket, as in ``protocol.h``.

Integers are little-endian. The server is started with the socket as descriptor 3 and the memory file as descriptor 4;
its one argument tells where the program has mapped that file, and the machine: "memory_address=N,…". It begins
with ``VERSION`` as a u32. Then each request has one reply:

    request     u32 kind, u32 length of the body, body
    reply       u32 status, u32 length of the body, body. Unless the status is OK the body is a Failure.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import Annotated, Final, TypeAlias

from tui_probe.errors import SimulationError
from tui_probe.simgpu.codec import BYTES, I32, TEXT, U32, U64, Fixed, Record, Sequence, unpack

VERSION: Final = 4
SOCKET_DESCRIPTOR: Final = 3
MEMORY_DESCRIPTOR: Final = 4

Dimensions: TypeAlias = tuple[int, int, int]


class Status(IntEnum):
    """How a request ended. From ILLEGAL_ADDRESS to ASSERT, the kernel failed as it would on a GPU."""

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


class Space(IntEnum):
    """Where a variable of a module lies."""

    GLOBAL = 0
    CONST = 1


@dataclass(frozen=True, slots=True)
class Load:
    """Load a module. ``image`` is what cuModuleLoadData was given, without what follows its end."""

    image: Annotated[bytes, BYTES]


@dataclass(frozen=True, slots=True)
class Place:
    """The addresses of a module's variables, in the order of the Loaded reply, with their initial values in memory.

    The server then writes what addresses these values hold.
    """

    module: Annotated[int, U64]
    addresses: Annotated[tuple[int, ...], Sequence(U64)]


@dataclass(frozen=True, slots=True)
class Describe:
    """Compile a kernel and tell what it is. ``kernel`` is its index in the Loaded reply."""

    module: Annotated[int, U64]
    kernel: Annotated[int, U32]


@dataclass(frozen=True, slots=True)
class Launch:
    """Execute a kernel. ``start_cycle`` is the simulated time at which it starts.

    ``cluster`` is in blocks, all 0 for none but the kernel's own; ``workspace`` the address of 8 bytes for the barrier
    of a cooperative grid, 0 for any other.
    """

    module: Annotated[int, U64]
    kernel: Annotated[int, U32]
    grid: Annotated[Dimensions, Fixed(U32, 3)]
    block: Annotated[Dimensions, Fixed(U32, 3)]
    dynamic_shared_bytes: Annotated[int, U32]
    start_cycle: Annotated[int, U64]
    cluster: Annotated[Dimensions, Fixed(U32, 3)]
    workspace: Annotated[int, U64]
    parameters: Annotated[bytes, BYTES]


@dataclass(frozen=True, slots=True)
class Unload:
    """Forget a module."""

    module: Annotated[int, U64]


@dataclass(frozen=True, slots=True)
class Link:
    """Make one image of several. ``images`` are what cuLinkAddData was given."""

    images: Annotated[tuple[bytes, ...], Sequence(BYTES)]


Request: TypeAlias = Load | Place | Describe | Launch | Unload | Link
REQUESTS: Final[dict[int, type[Request]]] = {1: Load, 2: Place, 3: Describe, 4: Launch, 5: Unload, 6: Link}


@dataclass(frozen=True, slots=True)
class Variable:
    """A variable of a module. ``initial`` has as many bytes as it, or none for zeros."""

    name: Annotated[str, TEXT]
    space: Annotated[int, U32]
    size: Annotated[int, U64]
    align: Annotated[int, U64]
    initial: Annotated[bytes, BYTES]


@dataclass(frozen=True, slots=True)
class Loaded:
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
class Described:
    """Reply to Describe. ``registers`` is -1 where the image has no machine code to tell; then there is an estimate.

    ``cluster`` is what the kernel asks for, in blocks, all 0 for none.
    """

    static_shared_bytes: Annotated[int, U32]
    local_bytes: Annotated[int, U32]
    max_threads: Annotated[int, U32]
    registers: Annotated[int, I32]
    estimated_registers: Annotated[int, U32]
    cluster: Annotated[Dimensions, Fixed(U32, 3)]
    parameters: Annotated[tuple[Parameter, ...], Sequence(Record(Parameter))]


@dataclass(frozen=True, slots=True)
class Executed:
    """Reply to Launch: cycles from start to end, instructions, counted once for each warp that executed one, and what
    threads printed."""

    cycles: Annotated[int, U64]
    instructions: Annotated[int, U64]
    printed: Annotated[bytes, BYTES] = b""


@dataclass(frozen=True, slots=True)
class Linked:
    """Reply to Link: an image that can be loaded."""

    image: Annotated[bytes, BYTES]


@dataclass(frozen=True, slots=True)
class Done:
    """Reply to Place and Unload."""


@dataclass(frozen=True, slots=True)
class Failure:
    """Reply with any other status than OK: what went wrong, for a person, and what threads printed before that."""

    message: Annotated[str, TEXT]
    printed: Annotated[bytes, BYTES] = b""


Reply: TypeAlias = Loaded | Described | Executed | Linked | Done


def decode_request(kind: int, body: bytes) -> Request:
    """The request in ``body``. Raises SimulationError for an unknown kind and for a body that does not fit."""
    if kind not in REQUESTS:
        raise SimulationError(f"the driver sent a request of unknown kind {kind}")
    return unpack(REQUESTS[kind], body)
