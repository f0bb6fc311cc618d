"""Lines of large text files, with progress and limits."""

from __future__ import annotations

import codecs
import io
import os
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from tui_probe.errors import ImportFileError
from tui_probe.input_limits import LINE_OF_CSV
from tui_probe.trace.plain_file import open_plain

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from tui_probe.input_limits import InputLimit

_TELLING: Final = 1000
"""Lines between two words of how far reading is."""
_ENCODING_MARKS: Final = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)


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
                    if number % _TELLING == 0:
                        progress(min(1.0, raw.tell() / size))
                    yield line
    except OSError as error:
        raise ImportFileError(f"{path}: {error.strerror or error}: name a file that can be read") from error
    except (UnicodeError, ValueError) as error:
        raise ImportFileError(f"{path}: not text ({error}): name a CSV file") from error


def _bounded_lines(text: io.TextIOWrapper, path: Path) -> Iterator[str]:
    number = 0
    while line := text.readline(LINE_OF_CSV.most + 1):
        number += 1
        if len(line) > LINE_OF_CSV.most:
            raise ImportFileError(
                f"{path}: line {number} has more than {LINE_OF_CSV.size}, so this is not a CSV file or it is damaged:"
                " export it again"
            )
        yield line


def refuse_larger(path: Path, limit: InputLimit, instead: str) -> None:
    """ImportFileError for a file above the limit; ``instead`` is what to do."""
    with suppress(OSError):
        if path.stat().st_size > limit.most:
            raise ImportFileError(f"{path}: larger than {limit.size}: {instead}")


def file_progress(progress: Callable[[float], object], place: int, count: int) -> Callable[[float], object]:
    """Return the progress callback for one of ``count`` files: its share of all of them."""
    return lambda share: progress((place + share) / count)
