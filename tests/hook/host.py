"""A driver-API program in Python, for scripts that run under the hook: thin ctypes calls that check results.

It imports little, since hundreds of programs import it: ``pathlib`` takes a third of their start.
"""

from __future__ import annotations

import ctypes
import os
import time
from collections.abc import Callable
from ctypes import byref, c_int, c_size_t, c_uint, c_uint64, c_void_p

LIBRARY = os.environ.get("HOST_LIBRARY", "libcuda.so.1")
cuda = ctypes.CDLL(LIBRARY)

PTX = b".version 8.0\n.target sm_80\n"


class DriverError(Exception):
    """A call did not return 0; args are its name and the code."""


def call(name: str, *arguments: object) -> None:
    """Calls a driver function and raises DriverError unless it returns 0."""
    code = getattr(cuda, name)(*arguments)
    if code:
        raise DriverError(name, code)


class Config(ctypes.Structure):
    """CUlaunchConfig."""

    _fields_ = [
        ("grid", c_uint * 3),
        ("block", c_uint * 3),
        ("shared", c_uint),
        ("stream", c_void_p),
        ("attributes", c_void_p),
        ("count", c_uint),
    ]


def context() -> c_void_p:
    """Initialises the driver and makes a context current."""
    call("cuInit", 0)
    made = c_void_p()
    call("cuCtxCreate_v2", byref(made), 0, 0)
    return made


def unseen_driver() -> ctypes.CDLL:
    """The driver itself, past the audit library: by the path by which the hook has opened it."""
    folder, name = os.path.split(os.environ["TUI_PROBE_DRIVER"])
    return ctypes.CDLL(f"{folder}/./{name}")


def module(image: bytes = PTX) -> c_void_p:
    """Loads an image from memory."""
    loaded = c_void_p()
    call("cuModuleLoadData", byref(loaded), ctypes.c_char_p(image))
    return loaded


def function(owner: c_void_p, name: str) -> c_void_p:
    """A function of a module."""
    handle = c_void_p()
    call("cuModuleGetFunction", byref(handle), owner, name.encode())
    return handle


def library(image: bytes = PTX) -> c_void_p:
    """Loads an image as a library."""
    loaded = c_void_p()
    call("cuLibraryLoadData", byref(loaded), ctypes.c_char_p(image), None, None, 0, None, None, 0)
    return loaded


def kernel(owner: c_void_p, name: str) -> c_void_p:
    """A kernel of a library."""
    handle = c_void_p()
    call("cuLibraryGetKernel", byref(handle), owner, name.encode())
    return handle


def word(value: int = 0) -> c_uint64:
    """Eight bytes of device memory, holding VALUE."""
    memory = c_uint64()
    call("cuMemAlloc_v2", byref(memory), c_size_t(8))
    c_uint64.from_address(memory.value).value = value
    return memory


def read(memory: c_uint64) -> int:
    """Return the eight bytes at an address: the stub's device memory is host memory."""
    return c_uint64.from_address(memory.value).value


def pointers(*values: ctypes._SimpleCData) -> ctypes.Array[c_void_p]:  # type: ignore[type-arg]
    """kernelParams for these values, which must outlive it."""
    return (c_void_p * max(1, len(values)))(*[ctypes.addressof(value) for value in values])


def launch(
    what: c_void_p,
    *values: ctypes._SimpleCData,  # type: ignore[type-arg]
    grid: int | tuple[int, int, int] = 2,
    block: int = 64,
    stream: c_void_p | int | None = None,
    name: str = "cuLaunchKernel",
    cluster: int = 0,
) -> None:
    """Launches with kernelParams."""
    x, y, z = (grid, 1, 1) if isinstance(grid, int) else grid
    parameters = pointers(*values) if values else None
    stream = c_void_p(stream) if isinstance(stream, int) else stream  # a bare int would be passed as 32 bits
    if "Cooperative" in name:
        call(name, what, x, y, z, block, 1, 1, 0, stream, parameters)
    elif "Ex" in name:
        attribute = (c_uint * 18)(4, 0, cluster, 1, 1)
        asked = ctypes.cast(attribute, c_void_p) if cluster else None
        config = Config((c_uint * 3)(x, y, z), (c_uint * 3)(block, 1, 1), 0, stream, asked, int(cluster > 0))
        call(name, byref(config), what, parameters, None)
    else:
        call(name, what, x, y, z, block, 1, 1, 0, stream, parameters, None)


def wait_for(done: Callable[[], object]) -> None:
    """Waits until something holds, and not for ever."""
    until = time.monotonic() + 30
    while not done():
        assert time.monotonic() < until
        time.sleep(0.005)


def logged(start: str) -> int:
    """Count the lines of this process's event.log with this start."""
    from pathlib import Path

    (directory,) = Path(os.environ["TUI_PROBE_TRACE_ROOT"]).glob(f"*_{os.getpid()}")
    return sum(line.startswith(start) for line in (directory / "event.log").read_text().splitlines())


def called(line: str) -> int:
    """Count the records of this line in the stub driver."""
    from pathlib import Path

    return Path(os.environ["STUB_LOG"]).read_text().splitlines().count(line)


def unused() -> int:
    """Bytes of device memory that are free."""
    free, total = c_size_t(), c_size_t()
    call("cuMemGetInfo_v2", byref(free), byref(total))
    return free.value


def stream() -> c_void_p:
    """A new stream."""
    made = c_void_p()
    call("cuStreamCreate", byref(made), 0)
    return made


__all__ = [name for name in dir() if not name.startswith("_")] + ["c_int"]
