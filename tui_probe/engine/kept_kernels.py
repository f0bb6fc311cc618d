"""Prepared kernels in the cache: what is kept of one, under which key, and how its folder is made from it.

The key is the digest of all that decides what comes out: the image's bytes, the kernel's name, the device, the
probe's name and text, our own code, the assemblers, and what the driver is given. So nothing is parsed to look one up.
"""

from __future__ import annotations

from enum import StrEnum
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from tui_probe.engine.cache import Cache, digest
from tui_probe.engine.files import read_file, write_file
from tui_probe.engine.registers import LARGEST_BLOCK
from tui_probe.engine.shared_files import link_to, put
from tui_probe.trace.sites import NAME

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence

    from tui_probe.engine.model import Probe
    from tui_probe.engine.toolchain import Tool

_CODE: Final = (
    "engine/**/*.py",
    "ptx/**/*.py",
    "sass/**/*.py",
    "dsl/**/*.py",
    "trace/sites.py",
    "trace/source_lines.py",
)
"""Patterns of our files that decide what is written."""
PREPARED_FILES: Final = ("pruned.ptx", "probed.ptx", "kernel.info", NAME, "pruned.bin", "probed.bin")
_ORIGINAL: Final = "original.ptx"
_DIRECTORY: Final = "\0directory\0"
"""Stands in kept words of ptxas for the folder in which it worked."""


class Need(StrEnum):
    """What a kernel was prepared with that may not be allowed on the next driver."""

    SLOTS = "slots"
    """Values kept in slots."""
    PRUNED = "pruned"
    """A cubin of its own."""


class Restored(NamedTuple):
    """A kernel prepared before: the file to ``load``, where the PTX was ``found``, what assemblers ``said``, and the
    text of kernel.info.
    """

    load: str
    found: str
    said: str
    info: str


class KeptKernels:
    """The prepared kernels of one probe, one choice of what is loaded and one set of assemblers."""

    def __init__(self, cache: Cache, probe: Probe, load: str, tools: Sequence[Tool], *, sampled: bool = False) -> None:
        self._cache = cache
        assemblers = repr([(str(tool.path), tool.version) for tool in tools])
        self._surroundings = digest(
            *(part.encode() for part in (code_digest(), assemblers, load, repr(sampled), probe.name, probe.source))
        )
        self._written: dict[str, Path] = {}

    def key(self, image: bytes, arch: str, name: str) -> str:
        """The key of one kernel of an image on a device of ``arch``."""
        return digest(self._surroundings.encode(), arch.encode(), name.encode("utf-8", "surrogateescape"), image)

    def place(self, key: str) -> Path:
        """Where the entry of a key lies."""
        return self._cache.path(key)

    def restore(
        self,
        key: str,
        directory: Path,
        kernel: Path | None = None,
        threads: int = 0,
        *,
        allows: Callable[[Need], bool] = lambda _: True,
    ) -> Restored | None:
        """Fill a folder from the cache; None if that kernel is not in it, or not all of it, or needs what is not
        allowed any more, or has too many registers for a block of ``threads``. What does not depend on the probe goes
        to the folder ``kernel``, if that is another one. Raises OSError.
        """
        entry = self._cache.get(key)
        if entry is None or not all(allows(Need(need)) for need in entry["needs"].decode().split()):
            return None
        if threads > int(entry["threads"]):
            return None
        original = entry["original"].decode()
        if original and not self._write_original(original, (kernel or directory) / _ORIGINAL):
            return None
        for file in PREPARED_FILES:
            if file in entry:
                write_file(directory / file, entry[file])
        said = entry["said"].decode().replace(_DIRECTORY, str(directory))
        return Restored(entry["load"].decode(), entry["found"].decode(), said, entry["kernel.info"].decode())

    def keep(
        self,
        key: str,
        directory: Path,
        kernel: Path,
        load: str,
        found: str,
        said: Sequence[str],
        needs: Collection[Need] = (),
        threads: int = LARGEST_BLOCK,
    ) -> None:
        """Put the kernel of finished folders into the cache, good for blocks of so many ``threads``. Raises OSError."""
        name = self._keep_original(kernel / _ORIGINAL) if (kernel / _ORIGINAL).exists() else ""
        words = "\n".join(said).replace(str(directory), _DIRECTORY)
        files = {file: (directory / file).read_bytes() for file in PREPARED_FILES if (directory / file).exists()}
        told = {
            "original": name,
            "load": load,
            "found": found,
            "said": words,
            "needs": " ".join(needs),
            "threads": str(threads),
        }
        self._cache.put(key, files | {about: text.encode() for about, text in told.items()})

    def _keep_original(self, path: Path) -> str:
        """Put the image's PTX into the cache; the name of its entry."""
        original = read_file(path)
        name = digest(original)
        if name not in self._written:  # many kernels of an image have it in common
            self._cache.put(name, {_ORIGINAL: original})
            self._written[name] = path
        return name

    def _write_original(self, name: str, path: Path) -> bool:
        """Put the image's PTX there: as a link to a copy that this process wrote, else from its own entry."""
        if (written := self._written.get(name)) is not None and link_to(written, path):
            return True
        entry = self._cache.get(name)
        if entry is None:
            return False
        put(path, entry[_ORIGINAL])
        self._written[name] = path
        return True


@lru_cache(maxsize=1)
def code_digest() -> str:
    """The digest of our own code that prepares kernels: a new version of it must not get what an older one made."""
    package = Path(__file__).parents[1]
    sources = (path for pattern in _CODE for path in sorted(package.glob(pattern)))
    return digest(*(part for path in sources for part in (str(path.relative_to(package)).encode(), path.read_bytes())))
