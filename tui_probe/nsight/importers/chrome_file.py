"""Chrome traces among other files, told by how they begin; unpacked where they are packed with gzip."""

from __future__ import annotations

import gzip
from contextlib import contextmanager
from typing import IO, TYPE_CHECKING, Final, cast

from tui_probe.trace.plain_file import open_plain

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

_GZIP: Final = b"\x1f\x8b"
_LOOKED_AT: Final = 1 << 16
_MARKS: Final = (b'"traceEvents"', b'"ph"', b'"deviceProperties"')


def is_chrome(path: Path) -> bool:
    """Whether a file begins as a Chrome trace; False if it cannot be read."""
    try:
        with unpacked(path) as file:
            start = file.read(_LOOKED_AT).removeprefix(b"\xef\xbb\xbf").lstrip()
    except (OSError, EOFError, ValueError):
        return False
    return start[:1] in (b"{", b"[") and any(mark in start for mark in _MARKS)


def chrome_files(paths: Sequence[Path]) -> bool:
    """Whether all files are Chrome traces."""
    return all(map(is_chrome, paths))


@contextmanager
def unpacked(path: Path) -> Iterator[IO[bytes]]:
    """A file, unpacked if it is packed with gzip."""
    with open_plain(path) as raw:
        packed = raw.read(len(_GZIP)) == _GZIP
        raw.seek(0)
        if not packed:
            yield raw
            return
        with gzip.GzipFile(fileobj=raw) as inside:
            yield cast("IO[bytes]", inside)
