"""Packed files: gzip is unpacked, others name the program that does."""

from __future__ import annotations

import gzip
import shlex
import zlib
from contextlib import contextmanager
from typing import IO, TYPE_CHECKING, Final, cast

from tui_probe.errors import ImportFileError
from tui_probe.trace.plain_file import open_plain

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_GZIP: Final = b"\x1f\x8b"
_PACKED: Final = {
    b"\xfd7zXZ\0": "xz -d",
    _GZIP: "gzip -d",
    b"\x28\xb5\x2f\xfd": "zstd -d",
    b"BZh": "bzip2 -d",
    b"PK\3\4": "unzip",
}
"""First bytes of packed files, and the command that unpacks them."""
_TRIED: Final = 1 << 16
"""Bytes that are unpacked to see whether a file is cut off."""


@contextmanager
def unpacked(path: Path) -> Iterator[IO[bytes]]:
    """Open a file, unpacked if it is packed with gzip."""
    with open_plain(path) as raw:
        packed = raw.read(len(_GZIP)) == _GZIP
        raw.seek(0)
        if not packed:
            yield raw
            return
        with gzip.GzipFile(fileobj=raw) as inside:
            yield cast("IO[bytes]", inside)


def first_bytes(path: Path, count: int = 64) -> bytes:
    """The first bytes of a file; ImportFileError if it cannot be read, or is packed."""
    try:
        with open_plain(path) as file:
            start = file.read(max(count, 8))
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise ImportFileError(f"{path}: {reason}: name a file that can be read") from error
    for mark, command in _PACKED.items():
        if start.startswith(mark):
            if mark == _GZIP and (problem := _gzip_problem(path)):
                raise ImportFileError(f"{path}: packed with gzip and {problem}: copy or record it again")
            raise ImportFileError(f"{path}: packed: unpack it with {command} {shlex.quote(str(path))}")
    return start[:count]


def _gzip_problem(path: Path) -> str:
    """Tell why a packed file cannot be unpacked; "" if its beginning can be."""
    try:
        with unpacked(path) as file:
            file.read(_TRIED)
    except EOFError:
        return "cut off"
    except (OSError, ValueError, zlib.error):
        return "damaged"
    return ""
