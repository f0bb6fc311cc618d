"""Identity of a kernel: index, name, trace, probe, and the folder of its files.

C++ names are demangled by the C++ runtime of this machine; without one, names stay as they are.
"""

from __future__ import annotations

import ctypes
import hashlib
import os
from abc import ABC, abstractmethod
from functools import cache, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Final

from tui_probe.trace.locate import path_text_in_trace

if TYPE_CHECKING:
    from collections.abc import Callable

    from tui_probe.trace.run import Run

_LONGEST_NAME: Final = 16384
"""Characters of a name up to which it is demangled: in a damaged log a line may have any length."""
_SHARED_FILES: Final = ("original.bin", "original.ptx")
"""Files that are the same for all probes, and in the kernel's own folder."""


class KernelIdentity(ABC):
    """Index, name and trace of a kernel, its probe, and the folder of its files."""

    __slots__ = ()

    @property
    @abstractmethod
    def index(self) -> int: ...

    @property
    @abstractmethod
    def name(self) -> str: ...

    @property
    @abstractmethod
    def trace(self) -> Run: ...

    @property
    @abstractmethod
    def probe(self) -> str | None:
        """Name of the probe; None for a whole kernel, and where the run had one probe."""

    @property
    @abstractmethod
    def folder_name(self) -> str | None:
        """Name of its folder in the event log; None in older logs."""

    @property
    @abstractmethod
    def probe_folder(self) -> str | None:
        """Folder in its own: of this probe, else of the first one inserted; None in runs with one probe."""

    @property
    def demangled(self) -> str:
        return demangle(self.name)

    @property
    def folder(self) -> Path | None:
        """The folder of its files, or None if it never reached the engine.

        In a run with several probes each has a folder in that of the kernel; a whole kernel then has that of the first
        probe that was inserted.
        """
        path = self._path()
        return Path(path) if path is not None and os.path.isdir(path) else None  # noqa: PTH112 - thousands of kernels

    def file(self, name: str) -> Path | None:
        """A file of its folder, if it exists and no link leads out of the trace."""
        path = self._path(name)
        return Path(path) if path is not None and os.path.isfile(path) else None  # noqa: PTH113 - as above

    def _path(self, *names: str) -> str | None:
        """Path of its folder, or of a file in it, which need not exist; None if a link leads out of the trace."""
        folder = (
            self.folder_name or f"{self.index}_{hashlib.sha1(self.name.encode(), usedforsecurity=False).hexdigest()}"
        )
        shared = bool(names) and names[0] in _SHARED_FILES
        own = () if shared or self.probe_folder is None else (self.probe_folder,)
        return path_text_in_trace(self.trace.directory, "kernel", folder, *own, *names)


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
