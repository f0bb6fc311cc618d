"""Reading of files that users name: packed files, lines of large texts, progress and limits."""

from __future__ import annotations

import codecs
import gzip
import io
import os
import shlex
import zlib
from contextlib import contextmanager, suppress
from typing import IO, TYPE_CHECKING, Final, cast

from tui_probe.errors import ImportFileError
from tui_probe.input_limits import LINE_OF_CSV
from tui_probe.trace.plain_file import open_plain

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from tui_probe.input_limits import InputLimit

_GZIP: Final = b"\x1f\x8b"
_DECOMPRESSORS: Final = {
    b"\xfd7zXZ\0": "xz -d",
    _GZIP: "gzip -d",
    b"\x28\xb5\x2f\xfd": "zstd -d",
    b"BZh": "bzip2 -d",
    b"PK\3\4": "unzip",
}
"""First bytes of packed files, and the command that unpacks them."""
_TEST_BYTES: Final = 1 << 16
"""Bytes that are unpacked to see whether a file is cut off."""
_LINES_PER_REPORT: Final = 1000
"""Lines between two words of how far reading is."""
_ENCODING_MARKS: Final = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)


@contextmanager
def open_decompressed(path: Path) -> Iterator[IO[bytes]]:
    """Open a file, unpacked if it is packed with gzip."""
    with open_plain(path) as raw:
        packed = raw.read(len(_GZIP)) == _GZIP
        raw.seek(0)
        if not packed:
            yield raw
            return
        with gzip.GzipFile(fileobj=raw) as decompressed:
            yield cast("IO[bytes]", decompressed)


def first_bytes(path: Path, count: int = 64) -> bytes:
    """The first bytes of a file; ImportFileError if it cannot be read, or is packed."""
    try:
        with open_plain(path) as file:
            start = file.read(max(count, 8))
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise ImportFileError(f"{path}: {reason}; pass a readable file") from error
    for mark, command in _DECOMPRESSORS.items():
        if start.startswith(mark):
            if mark == _GZIP and (problem := _gzip_problem(path)):
                raise ImportFileError(f"{path}: compressed with gzip and {problem}; copy or record it again")
            raise ImportFileError(f"{path}: compressed; decompress it with {command} {shlex.quote(str(path))}")
    return start[:count]


def _gzip_problem(path: Path) -> str:
    """Return why a packed file cannot be unpacked; "" if its beginning can be."""
    try:
        with open_decompressed(path) as file:
            file.read(_TEST_BYTES)
    except EOFError:
        return "truncated"
    except (OSError, ValueError, zlib.error):
        return "damaged"
    return ""


def lines_of(path: Path, progress: Callable[[float], object] = lambda _: None) -> Iterator[str]:
    """Yield the lines of a file with their ends; U+FFFD replaces what the encoding does not allow. ImportFileError if
    the file cannot be read, or has a line above the limit. ``progress`` receives the share read so far.
    """
    try:
        with open_plain(path) as raw:
            start = raw.read(4)
            raw.seek(0)
            encoding = next((name for mark, name in _ENCODING_MARKS if start.startswith(mark)), "utf-8")
            size = max(os.fstat(raw.fileno()).st_size, 1)
            with io.TextIOWrapper(raw, encoding, "replace", newline="\n") as text:
                for number, line in enumerate(_bounded_lines(text, path)):
                    if number % _LINES_PER_REPORT == 0:
                        progress(min(1.0, raw.tell() / size))
                    yield line
    except OSError as error:
        raise ImportFileError(f"{path}: {error.strerror or error}; pass a readable file") from error
    except (UnicodeError, ValueError) as error:
        raise ImportFileError(f"{path}: not text ({error}); pass a CSV file") from error


def _bounded_lines(text: io.TextIOWrapper, path: Path) -> Iterator[str]:
    number = 0
    while line := text.readline(LINE_OF_CSV.maximum + 1):
        number += 1
        if len(line) > LINE_OF_CSV.maximum:
            raise ImportFileError(
                f"{path}: line {number} has more than {LINE_OF_CSV.size}, so it is not a CSV file or is damaged;"
                " export it again"
            )
        yield line


def refuse_larger(path: Path, limit: InputLimit, advice: str) -> None:
    """ImportFileError for a file above the limit; ``advice`` is what to do."""
    with suppress(OSError):
        if path.stat().st_size > limit.maximum:
            raise ImportFileError(f"{path}: larger than {limit.size}; {advice}")


def file_progress(progress: Callable[[float], object], index: int, count: int) -> Callable[[float], object]:
    """Return the progress callback for one of ``count`` files: its share of all of them."""
    return lambda share: progress((index + share) / count)
