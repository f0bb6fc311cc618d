"""Functions that the driver has for kernels, and PTX only declares: ``printf``, assertions, a heap."""

from __future__ import annotations

import re
import struct
from typing import TYPE_CHECKING, Final

import numpy as np

from tui_probe.ptx.tree import OperandList as Parenthesised
from tui_probe.ptx.tree import Symbol
from tui_probe.simgpu.executor.addressing import PointerAccess
from tui_probe.simgpu.executor.faults import KernelAssertionError, TrapError
from tui_probe.simgpu.executor.scalars import U8, U32, U64
from tui_probe.simgpu.executor.scope import BytesName, FunctionName

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import TypeAlias

    from tui_probe.ptx.tree import Instruction, Operand
    from tui_probe.simgpu.executor.memory import DeviceMemory
    from tui_probe.simgpu.executor.operands import Binder
    from tui_probe.simgpu.executor.operations import Operation
    from tui_probe.simgpu.executor.scalars import Value
    from tui_probe.simgpu.executor.threads import ThreadGroup

_SPECIFIER: Final = re.compile(
    rb"%(?P<flags>[-+ #0]*)(?P<width>\*|\d*)(?:\.(?P<precision>\*|\d*))?(?P<length>hh|h|ll|l|j|z|t|L|)(?P<kind>.)",
    re.DOTALL,
)
_WIDE_LENGTHS: Final = frozenset({b"l", b"ll", b"j", b"z", b"t"})
_INTEGERS: Final = b"diuoxXc"
_FLOATS: Final = b"aAeEfFgG"


class _Arguments:
    """Reads arguments in order, each at a multiple of its size."""

    def __init__(self, read_bytes: Callable[[int, int], bytes]) -> None:
        self._read_bytes = read_bytes
        self._offset = 0

    def read_next(self, code: str) -> int | float:
        size = struct.calcsize(code)
        start = -(-self._offset // size) * size
        self._offset = start + size
        value: int | float = struct.unpack(f"<{code}", self._read_bytes(start, size))[0]
        return value


def format_text(text: bytes, read_bytes: Callable[[int, int], bytes], read_string: Callable[[int], bytes]) -> bytes:
    """Return ``text`` with its specifiers replaced by arguments.

    ``read_bytes`` gives bytes of the arguments (offset, size), ``read_string`` the string at a device address. Text
    that is not a specifier in the CUDA guide is not changed.
    """
    arguments = _Arguments(read_bytes)

    def replace(match: re.Match[bytes]) -> bytes:
        return _format_argument(match, arguments, read_string)

    return _SPECIFIER.sub(replace, text)


def argument_count(text: bytes) -> int:
    """Count the arguments of a format, which is the return value of ``printf`` in a kernel."""
    return sum(match["kind"] in _INTEGERS + _FLOATS + b"ps" for match in _SPECIFIER.finditer(text))


def _format_argument(match: re.Match[bytes], arguments: _Arguments, read_string: Callable[[int], bytes]) -> bytes:
    flags, width, precision, length, kind = match.group("flags", "width", "precision", "length", "kind")
    if kind == b"%":
        return b"%"
    if kind not in _INTEGERS + _FLOATS + b"ps":
        return match[0]
    width = _number_text(width, arguments)
    specifier = b"%" + flags + width + (b"" if precision is None else b"." + _number_text(precision, arguments))
    if kind == b"s":
        return (specifier + b"s") % read_string(int(arguments.read_next("Q")))
    if kind == b"p":
        return (b"%" + flags + width + b"s") % (b"0x%x" % int(arguments.read_next("Q")))
    if kind in _FLOATS:
        return _float_text(specifier, kind, float(arguments.read_next("d")))
    return _integer_text(specifier, kind, length, arguments)


def _number_text(text: bytes, arguments: _Arguments) -> bytes:
    return b"%d" % int(arguments.read_next("i")) if text == b"*" else text


def _float_text(shape: bytes, kind: bytes, value: float) -> bytes:
    if kind in b"aA":
        return value.hex().encode()
    return (shape + kind) % value


def _integer_text(shape: bytes, kind: bytes, length: bytes, arguments: _Arguments) -> bytes:
    signed = kind in b"di"
    code = ("q" if signed else "Q") if length in _WIDE_LENGTHS else ("i" if signed else "I")
    value = int(arguments.read_next(code))
    if length in (b"h", b"hh"):
        bits = 16 if length == b"h" else 8
        value &= (1 << bits) - 1
        value -= (value >> (bits - 1) << bits) if signed else 0
    if kind == b"c":
        return (shape + b"c") % (value & 0xFF)
    return ((shape + (b"d" if kind == b"u" else kind)) % value).replace(b"0o", b"0")


# ``malloc`` and ``free`` of kernels: pieces of a variable that holds the heap, in device memory.
#
# The heap is a chain of pieces without gaps, each behind a header of 16 bytes: its size with the header (u64), and
# whether it is taken (u64). A heap of zeros, as a module that was loaded has it, is one free piece. So all that is
# known of it is in its memory, which lasts as long as the module.

HEAP: Final = "tui_probe_heap"
"""The name of that variable."""
HEAP_BYTES: Final = 8 << 20
"""Default heap size of the driver."""
HEADER_BYTES: Final = 16


class Heap:
    """The heap at an address of device memory."""

    def __init__(self, memory: DeviceMemory, address: int) -> None:
        start = address - memory.base
        self._address = address
        self._words = memory.view(U64)[start // 8 : (start + HEAP_BYTES) // 8]
        if not self._words[0]:
            self._words[0] = HEAP_BYTES

    def allocate(self, size: int) -> int:
        """Return the address of ``size`` bytes, a multiple of 16; 0 if no free piece is large enough."""
        needed_bytes = HEADER_BYTES + -(-max(size, 1) // 16) * 16
        offset = 0
        while offset < HEAP_BYTES:
            word = offset // 8
            if not self._words[word + 1]:
                self._join_free(word)
                if self._words[word] >= needed_bytes:
                    self._split_piece(word, needed_bytes)
                    return self._address + offset + HEADER_BYTES
            offset = 8 * self._next_piece(word)
        return 0

    def free(self, address: int) -> None:
        """Free a piece that ``allocate`` returned. Raises TrapError for any other address."""
        offset = address - HEADER_BYTES - self._address
        if not 0 <= offset < HEAP_BYTES or offset % 16 or self._words[offset // 8 + 1] != 1:
            text = (
                f"free of {address:#x}: malloc of this module did not return this address, or a store out of bounds"
                " overwrote its malloc header"
            )
            raise TrapError(text, text)
        self._words[offset // 8 + 1] = 0

    def _join_free(self, piece: int) -> None:
        """Make one of a free piece and the free ones right behind it."""
        next_piece = self._next_piece(piece)
        while next_piece < len(self._words) and not self._words[next_piece + 1]:
            self._words[piece] = 8 * (self._next_piece(next_piece) - piece)
            next_piece = self._next_piece(piece)

    def _next_piece(self, piece: int) -> int:
        """The piece behind one, as the number of its first word. Raises TrapError if the header has no valid size."""
        size = int(self._words[piece])
        if size < HEADER_BYTES or size % 16 or piece + size // 8 > len(self._words):
            address = self._address + 8 * piece + HEADER_BYTES
            text = f"a store out of bounds overwrote the malloc header of the memory at {address:#x}"
            raise TrapError(text, text)
        return piece + size // 8

    def _split_piece(self, piece: int, needed_bytes: int) -> None:
        rest_bytes = int(self._words[piece]) - needed_bytes
        if rest_bytes > HEADER_BYTES:
            self._words[piece] = needed_bytes
            self._words[piece + needed_bytes // 8 : piece + needed_bytes // 8 + 2] = rest_bytes, 0
        self._words[piece + 1] = 1


if TYPE_CHECKING:
    DeviceFunction: TypeAlias = Callable[[ThreadGroup, "_ThreadMemory", list[Value]], Value | None]

_MAX_STRING_BYTES: Final = 1 << 16
"""Bytes of a string, after which it is taken for none."""


class _ThreadMemory:
    """Bytes at generic addresses, as a thread sees them."""

    def __init__(self, line: int) -> None:
        self._access_by_size = {kind.itemsize: (PointerAccess(kind.itemsize, line), kind) for kind in (U8, U32, U64)}

    def read_bytes(self, group: ThreadGroup, lane: int, address: int, size: int) -> bytes:
        """Return the bytes at an address of a lane. Raises MemoryFaultError."""
        one_lane = group.select(np.array([lane]), group.block, ())
        step = size if size in self._access_by_size and address % size == 0 else 1
        access, kind = self._access_by_size[step]
        return b"".join(
            part.view(kind)[part.element].tobytes()
            for start in np.uint64(address) + np.arange(0, size, step, dtype=U64)
            for part in access.parts_at(one_lane, start.reshape(1))
        )

    def read_string(self, group: ThreadGroup, lane: int, address: int) -> bytes:
        """The bytes up to a NUL."""
        content = bytearray()
        while (
            len(content) < _MAX_STRING_BYTES
            and (byte := self.read_bytes(group, lane, address + len(content), 1)) != b"\0"
        ):
            content += byte
        return bytes(content)


def build_device_call(instruction: Instruction, bind: Binder) -> Operation | None:
    """The call of such a function; None for another one."""
    callee = next((operand for operand in instruction.operands if isinstance(operand, Symbol)), None)
    entity = bind.names.find(callee.name) if callee is not None else None
    if callee is None or callee.name not in FUNCTIONS:
        return None
    if not isinstance(entity, FunctionName) or entity.function.body is not None:
        return None
    groups = [operand for operand in instruction.operands if isinstance(operand, Parenthesised)]
    has_result = isinstance(instruction.operands[0], Parenthesised)
    arguments = [_bytes_name(element, bind) for group in groups[has_result:] for element in group.elements]
    result = _bytes_name(groups[0].elements[0], bind) if has_result else None
    bind.effects.source_registers.update(entity.index for entity in arguments)
    if result is not None:
        bind.effects.target_registers.add(result.index)
    return _call_operation(FUNCTIONS[callee.name], arguments, result, bind.line)


def _bytes_name(operand: Operand, bind: Binder) -> BytesName:
    entity = bind.names.find(operand.name) if isinstance(operand, Symbol) else None
    return entity if isinstance(entity, BytesName) else bind.unsupported()


def _call_operation(
    function: DeviceFunction, arguments: list[BytesName], result: BytesName | None, line: int
) -> Operation:
    memory = _ThreadMemory(line)

    def run(group: ThreadGroup) -> None:
        values = []
        for entity in arguments:
            argument_bytes = np.ascontiguousarray(group.registers[entity.index])
            values.append(argument_bytes.view(U64 if entity.size == 8 else U32)[:, 0])
        returned = function(group, memory, values)
        if result is not None:
            kind = U64 if result.size == 8 else U32
            value = np.zeros(group.lanes.count, kind) if returned is None else returned.astype(kind)
            group.registers[result.index] = value.reshape(-1, 1).view(U8)

    return run


def _print_texts(group: ThreadGroup, memory: _ThreadMemory, values: list[Value]) -> Value:
    """``vprintf(format, arguments)``: what each thread prints, lane after lane."""
    formats, lists = values
    texts: dict[int, bytes] = {}
    for lane in range(group.lanes.count):
        format_address, start = int(formats[lane]), int(lists[lane])
        if format_address not in texts:
            texts[format_address] = memory.read_string(group, lane, format_address)

        def read_argument(offset: int, size: int, lane: int = lane, start: int = start) -> bytes:
            return memory.read_bytes(group, lane, start + offset, size)

        def read_string(address: int, lane: int = lane) -> bytes:
            return memory.read_string(group, lane, address)

        group.batch.printf_output.append(format_text(texts[format_address], read_argument, read_string))
    return np.array([argument_count(texts[int(format_address)]) for format_address in formats], U32)


def _fail_assertion(group: ThreadGroup, memory: _ThreadMemory, values: list[Value]) -> Value | None:
    """``__assertfail(message, file, line, function, size of a character)``."""
    message, file, line, function = (int(value[0]) for value in values[:4])
    addresses = (message, file, function)
    assertion, file_name, function_name = (
        memory.read_string(group, 0, place).decode("utf-8", "replace") for place in addresses
    )
    thread = group.batch.describe(group.lanes, 0)
    place = f"{file_name}:{line}"
    raise KernelAssertionError(
        f"{place}: {function_name}: {thread}: assertion `{assertion}` failed", f"`{assertion}` at {place}"
    )


def _allocate(group: ThreadGroup, memory: _ThreadMemory, values: list[Value]) -> Value:  # noqa: ARG001
    """``malloc(size)``: lane after lane."""
    heap = Heap(group.batch.memory, group.batch.launch.address(HEAP))
    return np.array([heap.allocate(int(size)) for size in values[0]], U64)


def _free(group: ThreadGroup, memory: _ThreadMemory, values: list[Value]) -> Value | None:  # noqa: ARG001
    """``free(address)``; of 0, nothing."""
    heap = Heap(group.batch.memory, group.batch.launch.address(HEAP))
    for address in values[0]:
        if address:
            heap.free(int(address))
    return None


FUNCTIONS: Final[dict[str, DeviceFunction]] = {
    "vprintf": _print_texts,
    "__assertfail": _fail_assertion,
    "malloc": _allocate,
    "free": _free,
}
