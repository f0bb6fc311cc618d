"""Text files of other programs: any encoding that they are written in, any bytes."""

from __future__ import annotations

import codecs
import io
import os
import shlex
from typing import TYPE_CHECKING, Final

from tui_probe.errors import ImportFileError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

_TELLING: Final = 1000
"""Lines between two words of how far reading is."""
_MARKS: Final = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
_PACKED: Final = {
    b"\xfd7zXZ\0": "xz -d",
    b"\x1f\x8b": "gzip -d",
    b"\x28\xb5\x2f\xfd": "zstd -d",
    b"BZh": "bzip2 -d",
    b"PK\3\4": "unzip",
}
"""How packed files begin, and what unpacks them."""


def lines_of(path: Path, progress: Callable[[float], object] = lambda _: None) -> Iterator[str]:
    """The lines of a file, with their ends. What is not a text in its encoding becomes U+FFFD. ImportFileError if there
    is no such file, or it cannot be read. ``progress`` is told the share that was read.
    """
    try:
        with path.open("rb") as file:
            start = file.read(4)
        encoding = next((name for mark, name in _MARKS if start.startswith(mark)), "utf-8")
        with path.open("rb") as raw, io.TextIOWrapper(raw, encoding, "replace", newline="\n") as text:
            size = max(os.fstat(raw.fileno()).st_size, 1)
            for number, line in enumerate(text):
                if number % _TELLING == 0:
                    progress(min(1.0, raw.tell() / size))
                yield line
    except OSError as error:
        raise ImportFileError(f"{path}: {error.strerror or error}: name a file that can be read") from error
    except (UnicodeError, ValueError) as error:
        raise ImportFileError(f"{path}: not text ({error}): name a CSV file") from error


def part_of(progress: Callable[[float], object], place: int, count: int) -> Callable[[float], object]:
    """What the reading of one of ``count`` files is told, as a share of all of them."""
    return lambda share: progress((place + share) / count)


def first_bytes(path: Path, count: int = 64) -> bytes:
    """The first bytes of a file; ImportFileError if it cannot be read, or is packed."""
    try:
        with path.open("rb") as file:
            start = file.read(max(count, 8))
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise ImportFileError(f"{path}: {reason}: name a file that can be read") from error
    for mark, command in _PACKED.items():
        if start.startswith(mark):
            raise ImportFileError(f"{path}: packed: unpack it with {command} {shlex.quote(str(path))}")
    return start[:count]
