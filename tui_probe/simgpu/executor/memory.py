"""The memories of the simulated GPU: device memory, the shared, local and parameter spaces, and located addresses.

Each space maps an address to an index into a typed view of its bytes, after checking bounds and
alignment for all lanes at the same time. A generic address below ``GLOBAL_START`` is in one of the windows; any other
one is a device address.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Protocol

import numpy as np

from tui_probe.simgpu.executor.faults import MemoryFaultError, MisalignedAddressError
from tui_probe.simgpu.executor.scalars import S64, U8, U64, DType, Value

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from tui_probe.simgpu.executor.lanes import Lanes

# Generic addresses: each space has a window below global memory, as on a device, so that an address tells its space and
# a null pointer or an offset that is used as a pointer is in none.
WINDOW_BYTES: Final = 1 << 24
CTA_BYTES: Final = 1 << 19
"""Bytes of the shared memory window per block of a cluster; see ``clusters``."""
SHARED_WINDOW: Final = 1 * WINDOW_BYTES
LOCAL_WINDOW: Final = 2 * WINDOW_BYTES
PARAMETER_WINDOW: Final = 3 * WINDOW_BYTES
FUNCTION_WINDOW: Final = 4 * WINDOW_BYTES
GLOBAL_START: Final = 8 * WINDOW_BYTES


class AccessFault(Exception):  # noqa: N818 - becomes a MemoryFaultError as soon as the line is known
    """An access that failed, before it is known which instruction made it."""

    def __init__(self, space: str, address: int, size: int, position: int, limit: int, *, is_misaligned: bool) -> None:
        super().__init__(space, address, size)
        self.space, self.address, self.size, self.limit = space, address, size, limit
        self.position = position
        self.is_misaligned = is_misaligned

    def as_error(self, line: int, location: str, place: int | None = None) -> MemoryFaultError:
        """The error to tell a user, ``location`` naming the thread, whose place (see ``lanes``) is ``place``."""
        kind = MisalignedAddressError if self.is_misaligned else MemoryFaultError
        return kind(self.space, self.address, self.size, line, location, place, self.limit)


class Space(Protocol):
    """A state space.

    An access goes in three steps, so that what several accesses have in common is done once: ``offsets`` turns
    addresses into offsets that begin at 0, ``check`` makes sure of them, ``indices`` gives the elements.
    """

    name: str
    limit: int

    @property
    def stride(self) -> int:
        """Bytes from the memory of a block or thread to that of the next one."""

    @property
    def is_divided(self) -> bool:
        """True if an address between two valid ones may be invalid, or lead elsewhere."""

    def view(self, dtype: DType) -> Value:
        """All bytes of the space as elements of ``dtype``."""

    def offsets(self, address: Value) -> Value:
        """Offsets in bytes of unsigned addresses, unsigned. They may lie outside the space."""

    def check(self, offset: Value, size: int) -> None:
        """Raise AccessFault unless all accesses of ``size`` bytes are aligned and end at or before ``limit``."""

    def indices(self, lanes: Lanes, offset: Value, size: int) -> Value:
        """Indices (int64) of checked offsets into a view with elements of ``size`` bytes, a power of two."""


def check_offsets(space: str, offset: Value, size: int, limit: int, origin: int = 0) -> None:
    """Raise AccessFault for the first of ``offset`` that is misaligned or ends after ``limit``.

    ``origin`` is added to offsets in messages.
    """
    # One pass: the union of all bits has a low bit if any offset is misaligned, and is at least the largest.
    union = int(np.bitwise_or.reduce(offset)) if offset.ndim else int(offset)
    if union & (size - 1) or (union + size > limit and _max_offset(offset) + size > limit):
        raise _fault(space, offset, size, limit, origin)


def element_indices(offset: Value, size: int) -> Value:
    """``offset // size`` as int64."""
    index: Value = offset >> offset.dtype.type(size.bit_length() - 1)
    return index.view(S64) if index.dtype == U64 else index.astype(S64)


def _max_offset(offset: Value) -> int:
    return int(offset.max(initial=0)) if offset.ndim else int(offset)


def _fault(space: str, offset: Value, size: int, limit: int, origin: int) -> AccessFault:
    offsets = np.atleast_1d(offset)
    is_outside = (offsets > max(limit - size, 0)) | (limit < size)
    position = int(np.argmax(is_outside | ((offsets & offsets.dtype.type(size - 1)) != 0)))
    address = (int(offsets[position]) + origin) & ((1 << 64) - 1)
    return AccessFault(space, address, size, position, limit, is_misaligned=not is_outside[position])


class _Bytes:
    """Typed views of one buffer of bytes."""

    def __init__(self, buffer: NDArray[np.uint8]) -> None:
        self.buffer = buffer
        self._views: dict[DType, Value] = {U8: buffer}

    def view(self, dtype: DType) -> Value:
        """All whole elements of ``dtype`` that the buffer holds."""
        view = self._views.get(dtype)
        if view is None:
            whole_bytes = len(self.buffer) // dtype.itemsize * dtype.itemsize
            view = self._views[dtype] = self.buffer[:whole_bytes].view(dtype)
        return view


class DeviceMemory(_Bytes):
    """Device memory: ``buffer`` (uint8, contiguous) mapped at the device address ``base``.

    ``base`` is a multiple of 16 and at least ``GLOBAL_START``. ``allocations``, if given, is an array of shape (n, 2)
    of ascending ``[start, end)`` device addresses; an access outside all of them is then illegal too.
    """

    name = "global"

    def __init__(self, buffer: NDArray[np.uint8], base: int, allocations: NDArray[np.uint64] | None = None) -> None:
        if base % 16 or base < GLOBAL_START:
            message = f"device memory must start at a multiple of 16, at {GLOBAL_START:#x} or above, not at {base:#x}"
            raise ValueError(message)
        super().__init__(buffer)
        self.base = base
        self.limit = len(buffer)
        self._base = np.uint64(base)
        self._bounds = None if allocations is None else np.asarray(allocations, np.uint64).reshape(-1, 2) - self._base

    @property
    def stride(self) -> int:
        """See Space."""
        return self.limit

    @property
    def is_divided(self) -> bool:
        """True if there are allocations, so that an address between two valid ones may be invalid."""
        return self._bounds is not None

    def offsets(self, address: Value) -> Value:
        """Offsets from ``base`` of absolute addresses (uint64)."""
        offset: Value = address - self._base
        return offset

    def check(self, offset: Value, size: int) -> None:
        """Raise AccessFault for accesses outside the memory, or outside its allocations."""
        check_offsets(self.name, offset, size, self.limit, self.base)
        if self._bounds is not None:
            self._check_allocated(np.atleast_1d(offset), size, self._bounds)

    def indices(self, lanes: Lanes, offset: Value, size: int) -> Value:  # noqa: ARG002 - the same for all lanes
        """See Space."""
        return element_indices(offset, size)

    def _check_allocated(self, offset: Value, size: int, bounds: NDArray[np.uint64]) -> None:
        allocation_index = np.searchsorted(bounds[:, 0], offset, side="right") - 1
        range_ends = np.append(bounds[:, 1], np.uint64(0))
        # Before the first allocation, the index is -1: the end that was appended.
        is_outside = offset + np.uint64(size) > range_ends[allocation_index]
        if is_outside.any():
            position = int(np.argmax(is_outside))
            address = int(offset[position]) + self.base
            raise AccessFault(self.name, address, size, position, self.limit, is_misaligned=False)

    def scatter(self, address: NDArray[np.uint64], values: Value) -> None:
        """Store ``values`` at absolute addresses; of equal addresses the last one wins. Raises MemoryFaultError."""
        self.view(values.dtype)[self._elements(address, values.dtype.itemsize)] = values

    def _elements(self, address: NDArray[np.uint64], size: int) -> Value:
        offset = self.offsets(address)
        try:
            self.check(offset, size)
        except AccessFault as fault:
            raise fault.as_error(0, f"element {fault.position}") from None
        return element_indices(offset, size)


class _Window(_Bytes):
    """A space whose addresses are offsets already."""

    name: str
    limit: int

    @property
    def stride(self) -> int:
        """See Space."""
        return self.limit

    @property
    def is_divided(self) -> bool:
        """See Space."""
        return False

    def offsets(self, address: Value) -> Value:
        """See Space."""
        return address

    def check(self, offset: Value, size: int) -> None:
        """See Space."""
        check_offsets(self.name, offset, size, self.limit)


class SharedMemory(_Window):
    """The shared memory of all blocks of a batch, ``limit`` bytes each, zero at the start."""

    name = "shared"

    def __init__(self, block_count: int, limit: int) -> None:
        self.limit = limit
        self._stride = -(-limit // 16) * 16
        super().__init__(np.zeros(block_count * self._stride, np.uint8))

    @property
    def stride(self) -> int:
        """See Space."""
        return self._stride

    def indices(self, lanes: Lanes, offset: Value, size: int) -> Value:
        """See Space."""
        index = element_indices(offset, size)
        if lanes.block_count == 1:
            return index
        return index + _origin(lanes, lanes.block, self._stride // size)


class ClusterMemory(SharedMemory):
    """Shared memory where ``cluster_size`` blocks in a row are a cluster, and reach each other's; see ``clusters``."""

    def __init__(self, block_count: int, limit: int, cluster_size: int) -> None:
        super().__init__(block_count, limit)
        self._cluster_size = cluster_size

    @property
    def is_divided(self) -> bool:
        """See Space."""
        return True

    def check(self, offset: Value, size: int) -> None:
        """See Space."""
        check_offsets(self.name, offset & offset.dtype.type(CTA_BYTES - 1), size, self.limit)
        # No block beyond the cluster: nothing of it lies inside.
        check_offsets(self.name, offset, size, (self._cluster_size + 1) * CTA_BYTES)

    def indices(self, lanes: Lanes, offset: Value, size: int) -> Value:
        """See Space."""
        window_number = (offset // offset.dtype.type(CTA_BYTES)).astype(np.int64)
        first_block = lanes.block - lanes.block % self._cluster_size
        owner = np.where(window_number > 0, first_block + window_number - 1, lanes.block)
        index: Value = element_indices(offset & offset.dtype.type(CTA_BYTES - 1), size) + owner * (self._stride // size)
        return index


class LocalMemory(_Window):
    """The local memory of all threads of a batch, ``limit`` bytes each, zero at the start."""

    name = "local"

    def __init__(self, place_count: int, limit: int) -> None:
        self.limit = -(-limit // 16) * 16
        self._place_count = place_count
        super().__init__(np.zeros(place_count * self.limit, np.uint8))

    def grow(self, limit: int) -> LocalMemory:
        """A larger one with the same contents, for a stack that recursion makes deeper."""
        larger_memory = LocalMemory(self._place_count, max(limit, 2 * self.limit))
        rows = larger_memory.buffer.reshape(self._place_count, larger_memory.limit)
        rows[:, : self.limit] = self.buffer.reshape(self._place_count, self.limit)
        return larger_memory

    def indices(self, lanes: Lanes, offset: Value, size: int) -> Value:
        """See Space."""
        return element_indices(offset, size) + _origin(lanes, lanes.places, self.limit // size)


class ParameterMemory(_Window):
    """The parameters of the kernel. They are read-only."""

    name = "param"

    def __init__(self, parameters: bytes) -> None:
        padded_parameters = parameters + bytes(-len(parameters) % 16)
        super().__init__(np.frombuffer(padded_parameters, np.uint8))
        self.limit = len(parameters)

    def indices(self, lanes: Lanes, offset: Value, size: int) -> Value:  # noqa: ARG002 - the same for all lanes
        """See Space."""
        return element_indices(offset, size)


def _origin(lanes: Lanes, owner: Value, stride: int) -> Value:
    key = ("origin", owner is lanes.block, stride)
    origin = lanes.cache.get(key)
    if origin is None:
        origin = lanes.cache[key] = owner.astype(np.int64) * stride
    result: Value = origin
    return result


@dataclass(slots=True)
class LocatedAddress:
    """Location found for the value ``register`` of a register plus ``displacement``, for ``lanes``.

    ``min_offset`` and ``max_offset`` are the extremes of ``offset``, -1 until they are needed.
    """

    register: Value
    lanes: Lanes
    displacement: int
    space: Space
    offset: Value
    index: Value
    min_offset: int = -1
    max_offset: int = -1

    def element_distance(self, displacement: int, size: int) -> int | None:
        """Return the element offset of an access at ``displacement``; None if it must be located again."""
        if displacement == self.displacement:
            return 0
        steps, remainder = divmod(displacement - self.displacement, size)
        if remainder or steps < 0:
            return None
        if self.min_offset < 0:
            self.min_offset = int(self.offset.min())
            self.max_offset = int(self.offset.max())
        is_inside = self.max_offset + displacement - self.displacement + size <= self.space.limit
        return steps if is_inside else None
