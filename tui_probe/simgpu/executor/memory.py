"""The memories of the simulated GPU: device memory, and the shared, local and parameter spaces of a batch.

Each space maps an address to an index into a typed view of its bytes, after checking bounds and
alignment for all lanes at once. A generic address below ``GLOBAL_START`` lies in one of the windows; any other one is
a device address.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Protocol

import numpy as np

from tui_probe.simgpu.executor.faults import MemoryFaultError, MisalignedAddressError
from tui_probe.simgpu.executor.scalars import U8, DType, Value

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from tui_probe.simgpu.executor.lanes import Lanes

WINDOW_BYTES: Final = 1 << 24
SHARED_WINDOW: Final = 1 * WINDOW_BYTES
LOCAL_WINDOW: Final = 2 * WINDOW_BYTES
PARAMETER_WINDOW: Final = 3 * WINDOW_BYTES
FUNCTION_WINDOW: Final = 4 * WINDOW_BYTES
GLOBAL_START: Final = 8 * WINDOW_BYTES


class AccessFault(Exception):  # noqa: N818 - becomes a MemoryFaultError as soon as the line is known
    """An access that failed, before it is known which instruction made it."""

    def __init__(self, space: str, address: int, size: int, position: int, misaligned: bool) -> None:
        super().__init__(space, address, size)
        self.space, self.address, self.size = space, address, size
        self.position = position
        self.misaligned = misaligned

    def at(self, line: int, where: str) -> MemoryFaultError:
        """The error to tell a person, ``where`` naming the thread."""
        kind = MisalignedAddressError if self.misaligned else MemoryFaultError
        return kind(self.space, self.address, self.size, line, where)


class Space(Protocol):
    """A state space."""

    name: str

    def view(self, dtype: DType) -> Value:
        """All bytes of the space as elements of ``dtype``."""

    def locate(self, lanes: Lanes, address: Value, size: int) -> Value:
        """Indices into a view with elements of ``size`` bytes (a power of two). Raises AccessFault."""


def checked_index(space: str, offset: Value, size: int, limit: int, origin: int) -> Value:
    """``offset // size`` if every offset is a multiple of ``size`` and the access ends at or before ``limit``.

    ``offset`` is unsigned; ``origin`` is added to it in messages.
    """
    # One pass: the union of all bits has a low bit if any offset is misaligned, and is at least the largest.
    union = int(np.bitwise_or.reduce(offset)) if offset.ndim else int(offset)
    if union & (size - 1) or (union + size > limit and _largest(offset) + size > limit):
        raise _fault(space, offset, size, limit, origin)
    shift = size.bit_length() - 1
    index: Value = (offset >> offset.dtype.type(shift)).astype(np.int64)
    return index


def _largest(offset: Value) -> int:
    return int(offset.max(initial=0)) if offset.ndim else int(offset)


def _fault(space: str, offset: Value, size: int, limit: int, origin: int) -> AccessFault:
    bad = np.atleast_1d(offset)
    outside = (bad > max(limit - size, 0)) | (limit < size)
    position = int(np.argmax(outside | ((bad & bad.dtype.type(size - 1)) != 0)))
    address = (int(bad[position]) + origin) & ((1 << 64) - 1)
    return AccessFault(space, address, size, position, misaligned=not bool(outside[position]))


class _Bytes:
    """Typed views of one buffer of bytes."""

    def __init__(self, buffer: NDArray[np.uint8]) -> None:
        self.buffer = buffer
        self._views: dict[DType, Value] = {U8: buffer}

    def view(self, dtype: DType) -> Value:
        """All whole elements of ``dtype`` that the buffer holds."""
        view = self._views.get(dtype)
        if view is None:
            whole = len(self.buffer) // dtype.itemsize * dtype.itemsize
            view = self._views[dtype] = self.buffer[:whole].view(dtype)
        return view


class DeviceMemory(_Bytes):
    """Device memory: ``buffer`` (uint8, contiguous) mapped at the device address ``base``.

    ``base`` is a multiple of 16 and at least ``GLOBAL_START``. ``allocations``, if given, is an array of shape (n, 2)
    of ascending ``[start, end)`` device addresses; an access outside all of them is then illegal too.
    """

    name = "global"

    def __init__(self, buffer: NDArray[np.uint8], base: int, allocations: NDArray[np.uint64] | None = None) -> None:
        if base % 16 or base < GLOBAL_START:
            message = f"device memory must start at a multiple of 16 of at least {GLOBAL_START:#x}, not {base:#x}"
            raise ValueError(message)
        super().__init__(buffer)
        self.base = base
        self._bounds = None if allocations is None else np.asarray(allocations, np.uint64).reshape(-1, 2)

    def locate(self, lanes: Lanes, address: Value, size: int) -> Value:  # noqa: ARG002 - the same for all lanes
        """Indices of ``address`` (absolute, uint64) into a view with elements of ``size`` bytes."""
        offset = address - np.uint64(self.base)
        index = checked_index(self.name, offset, size, len(self.buffer), self.base)
        if self._bounds is not None:
            self._check_allocated(np.atleast_1d(address), size, self._bounds)
        return index

    def _check_allocated(self, address: Value, size: int, bounds: NDArray[np.uint64]) -> None:
        if not len(bounds):
            raise AccessFault(self.name, int(address[0]), size, 0, misaligned=False)
        which = np.searchsorted(bounds[:, 0], address, side="right") - 1
        outside = (which < 0) | (address + np.uint64(size) > bounds[np.maximum(which, 0), 1])
        if outside.any():
            position = int(np.argmax(outside))
            raise AccessFault(self.name, int(address[position]), size, position, misaligned=False)

    def gather(self, address: NDArray[np.uint64], dtype: DType) -> Value:
        """The elements of ``dtype`` at absolute addresses. Raises MemoryFaultError."""
        return self.view(dtype)[self._indices(address, dtype.itemsize)]

    def scatter(self, address: NDArray[np.uint64], values: Value) -> None:
        """Stores ``values`` at absolute addresses; of equal addresses the last one wins. Raises MemoryFaultError."""
        self.view(values.dtype)[self._indices(address, values.dtype.itemsize)] = values

    def _indices(self, address: NDArray[np.uint64], size: int) -> Value:
        offset = np.asarray(address, np.uint64) - np.uint64(self.base)
        try:
            return checked_index(self.name, offset, size, len(self.buffer), self.base)
        except AccessFault as fault:
            raise fault.at(0, f"element {fault.position}") from None


class SharedMemory(_Bytes):
    """The shared memory of all blocks of a batch, ``limit`` bytes each, zero at the start."""

    name = "shared"

    def __init__(self, block_count: int, limit: int) -> None:
        self.limit = limit
        self._stride = -(-limit // 16) * 16
        super().__init__(np.zeros(block_count * self._stride, np.uint8))

    def locate(self, lanes: Lanes, address: Value, size: int) -> Value:
        """Indices of ``address`` (from the start of the block's shared memory, unsigned)."""
        index = checked_index(self.name, address, size, self.limit, 0)
        if lanes.block_count == 1:
            return index
        return index + _origin(lanes, lanes.block, self._stride // size)


class LocalMemory(_Bytes):
    """The local memory of all threads of a batch, ``limit`` bytes each, zero at the start."""

    name = "local"

    def __init__(self, place_count: int, limit: int) -> None:
        self.limit = -(-limit // 16) * 16
        self._place_count = place_count
        super().__init__(np.zeros(place_count * self.limit, np.uint8))

    def reserve(self, limit: int) -> None:
        """Makes room for ``limit`` bytes a thread, for a stack that recursion makes deeper."""
        if limit > self.limit:
            old, used = self.buffer, self.limit
            self.limit = max(-(-limit // 16) * 16, 2 * used)
            super().__init__(np.zeros(self._place_count * self.limit, np.uint8))
            self.buffer.reshape(self._place_count, self.limit)[:, :used] = old.reshape(self._place_count, used)

    def locate(self, lanes: Lanes, address: Value, size: int) -> Value:
        """Indices of ``address`` (from the start of the thread's local memory, unsigned)."""
        index = checked_index(self.name, address, size, self.limit, 0)
        return index + _origin(lanes, lanes.places, self.limit // size)


class ParameterMemory(_Bytes):
    """The parameters of the kernel. They can be read only."""

    name = "param"

    def __init__(self, parameters: bytes) -> None:
        padded = parameters + bytes(-len(parameters) % 16)
        super().__init__(np.frombuffer(padded, np.uint8))
        self._limit = len(parameters)

    def locate(self, lanes: Lanes, address: Value, size: int) -> Value:  # noqa: ARG002 - the same for all lanes
        """Indices of ``address`` (from the start of the parameters, unsigned)."""
        return checked_index(self.name, address, size, self._limit, 0)


def _origin(lanes: Lanes, owner: Value, stride: int) -> Value:
    key = ("origin", owner is lanes.block, stride)
    origin = lanes.cache.get(key)
    if origin is None:
        origin = lanes.cache[key] = owner.astype(np.int64) * stride
    result: Value = origin
    return result
