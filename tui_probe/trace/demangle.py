"""C++ names through the C++ runtime of this machine; without one, names stay as they are."""

from __future__ import annotations

import ctypes
from functools import cache, lru_cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

_LONGEST_NAME = 16384


@lru_cache(maxsize=65536)
def demangle(name: str) -> str:
    """``_Z6squarePf`` -> ``square(float*)``; the name itself if it is not a C++ name or cannot be read."""
    if not name.startswith("_Z") or len(name) > _LONGEST_NAME:
        return name
    runtime = _runtime()
    if runtime is None:
        return name
    status = ctypes.c_int(0)
    text = runtime.__cxa_demangle(name.encode(), None, None, ctypes.byref(status))
    if not text:
        return name
    try:
        return (ctypes.string_at(text) if status.value == 0 else name.encode()).decode("utf-8", "backslashreplace")
    finally:
        _free()(text)


@cache
def _runtime() -> ctypes.CDLL | None:
    for library in ("libstdc++.so.6", "libc++abi.so.1"):
        try:
            runtime = ctypes.CDLL(library)
            runtime.__cxa_demangle.restype = ctypes.c_void_p
        except (OSError, AttributeError):
            continue
        runtime.__cxa_demangle.argtypes = [ctypes.c_char_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p]
        return runtime
    return None


@cache
def _free() -> Callable[[int], None]:
    free = ctypes.CDLL(None).free
    free.argtypes = [ctypes.c_void_p]
    free.restype = None
    return lambda address: free(address)
