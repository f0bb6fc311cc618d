"""Facts of an array in device memory, read from the framework that it belongs to."""

from __future__ import annotations

import os
import sys
from typing import Any, Callable, Dict, NamedTuple, Optional, Tuple


class Array(NamedTuple):
    """``size`` is that of the memory which holds the array, in bytes; ``strides`` are in elements."""

    start: int
    size: int
    shape: Tuple[int, ...]
    dtype: str
    itemsize: int
    strides: Tuple[int, ...]
    storage: int


Reader = Callable[[Any], Optional[Array]]


class Frameworks:
    """The types of arrays of those frameworks that the program has imported so far.

    Only these types themselves: a subclass may run code of its own when it is asked, and a tracer has no memory.
    """

    def __init__(self) -> None:
        self.readers: Dict[type, Reader] = {}
        self.folders: Tuple[str, ...] = ()
        """Directories of the frameworks' own code, with a slash at the end."""
        self.are_coming = False
        """True while one is being imported."""
        self._missing = dict(_FRAMEWORKS)

    def learn(self) -> bool:
        """Look for frameworks imported since the last call; return True if there is one."""
        has_new = self.are_coming = False
        for name, (place, types, reader) in list(self._missing.items()):
            module = sys.modules.get(place)
            kinds = [getattr(module, type_name, None) for type_name in types]
            if module is None:
                continue
            if not all(isinstance(kind, type) for kind in kinds):
                self.are_coming = True
                continue
            del self._missing[name]
            if reader is not None:
                self.readers.update(dict.fromkeys((kind for kind in kinds if isinstance(kind, type)), reader))
            self.folders += _folder_of(name)
            has_new = True
        return has_new

    def read(self, value: Any) -> Array | None:
        """None for what is not an array, is not in device memory, or does not tell."""
        reader = self.readers.get(type(value))
        if reader is None:
            return None
        try:
            array = reader(value)
        except Exception:  # noqa: BLE001 - freed, traced, sparse: a framework has many ways to say no
            return None
        return array if array is not None and array.start > 0 and array.size > 0 else None


def _folder_of(name: str) -> Tuple[str, ...]:
    file = getattr(sys.modules.get(name), "__file__", None)
    return (os.path.dirname(file) + os.sep,) if file else ()


def _of_torch(value: Any) -> Array | None:
    torch = sys.modules["torch"]
    # A mode that the program has entered would see what is asked here.
    with torch._C.DisableTorchFunction():
        if not value.is_cuda:
            return None
        storage = value.untyped_storage() if hasattr(value, "untyped_storage") else value.storage()
        itemsize = int(value.element_size())
        offset = int(value.storage_offset()) * itemsize
        # The address by ``data_ptr`` would copy a tensor that is only copied when it is written to.
        ask = getattr(torch._C, "_data_address", None)
        start = int(value.data_ptr() if ask is None else ask(value))
        return Array(
            start, int(storage.nbytes()), tuple(map(int, value.shape)), str(value.dtype), itemsize,
            tuple(map(int, value.stride())), start - offset,
        )  # fmt: skip


def _of_cupy(value: Any) -> Array:
    itemsize = int(value.itemsize)
    strides = tuple(int(stride) // itemsize for stride in value.strides)
    return Array(
        int(value.data.ptr), int(value.nbytes), tuple(map(int, value.shape)), str(value.dtype), itemsize, strides,
        int(value.data.mem.ptr),
    )  # fmt: skip


def _of_jax(value: Any) -> Array | None:
    devices = list(value.devices())
    if value.is_deleted() or len(devices) != 1 or devices[0].platform not in ("gpu", "cuda"):
        return None
    start, shape, strides, count = int(value.unsafe_buffer_pointer()), tuple(map(int, value.shape)), [], 1
    for side in reversed(shape):
        strides.append(count)
        count *= side
    itemsize = int(value.dtype.itemsize)
    return Array(start, int(value.nbytes), shape, str(value.dtype), itemsize, tuple(reversed(strides)), start)


_FRAMEWORKS: Dict[str, Tuple[str, Tuple[str, ...], Optional[Reader]]] = {
    "torch": ("torch", ("Tensor",), _of_torch),
    "torch.nn": ("torch.nn", ("Parameter",), _of_torch),
    "cupy": ("cupy", ("ndarray",), _of_cupy),
    "jax": ("jax._src.array", ("ArrayImpl",), _of_jax),
    "triton": ("triton", (), None),
    "numpy": ("numpy", (), None),
}
"""Module of the array types, and their names there, by package whose code is not inspected; some have no types."""
