"""Files of other profilers: their text, packing and writer, and what to do with a file of another kind."""

from __future__ import annotations

import codecs
import gzip
import io
import os
import re
import shlex
from contextlib import contextmanager, suppress
from typing import IO, TYPE_CHECKING, Final, Literal, cast

from tui_probe.binaries import elf, fatbin
from tui_probe.errors import ImportFileError
from tui_probe.input_limits import LINE_OF_CSV
from tui_probe.trace.plain_file import open_plain

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    from tui_probe.input_limits import InputLimit

_TELLING: Final = 1000
"""Lines between two words of how far reading is."""
_ENCODING_MARKS: Final = (
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
    """What the reading of one of ``count`` files is told, as a share of all of them."""
    return lambda share: progress((place + share) / count)


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
            raise ImportFileError(f"{path}: packed: unpack it with {command} {shlex.quote(str(path))}")
    return start[:count]


_GZIP: Final = b"\x1f\x8b"
_LOOKED_AT: Final = 1 << 16
_CHROME_MARKS: Final = (b'"traceEvents"', b'"ph"', b'"deviceProperties"')


def is_chrome(path: Path) -> bool:
    """Whether a file begins as a Chrome trace; False if it cannot be read."""
    try:
        with unpacked(path) as file:
            start = file.read(_LOOKED_AT).removeprefix(b"\xef\xbb\xbf").lstrip()
    except (OSError, EOFError, ValueError):
        return False
    return start[:1] in (b"{", b"[") and any(mark in start for mark in _CHROME_MARKS)


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


Tool = Literal["ncu", "nsys", "chrome"]
SQLITE_MARK: Final = b"SQLite format 3\0"
_SUFFIXES: Final[dict[str, Tool]] = {
    ".ncu-rep": "ncu", ".nsys-rep": "nsys", ".qdrep": "nsys", ".sqlite": "nsys",
}  # fmt: skip
_HEAD_BYTES: Final = 1 << 18
_NCU_MARKS: Final = (b'"ID","Process ID"', b"ID,Process ID", b"==PROF==", b"==ERROR==")
_NSYS_MARKS: Final = (b"Start (ns),", b"Time (%),", b"Projected Start", b"Proj Start (ns)", b"Total Time")


def tool_of(path: Path) -> Tool | None:
    """By its suffix, else by its headings; None where neither tells. Raises ImportFileError as ``first_bytes`` does."""
    if path.suffix in _SUFFIXES:
        return _SUFFIXES[path.suffix]
    if is_chrome(path):
        return "chrome"
    start = first_bytes(path, _HEAD_BYTES)
    if start.startswith(SQLITE_MARK):
        return "nsys"
    ncu, nsys = (any(mark in start for mark in marks) for marks in (_NCU_MARKS, _NSYS_MARKS))
    return None if ncu == nsys else "ncu" if ncu else "nsys"


_OTHER_COMMAS: Final = (b"ID;Process ID", b"ID\tProcess ID")
_NSYS_OTHER_COMMAS: Final = tuple(
    mark + comma
    for mark in (b"Start (ns)", b"Time (%)", b"Total Time (ns)", b"Projected Start (ns)")
    for comma in (b";", b"\t")
)
"""Headings as a spreadsheet may save them."""
_REPORTS: Final = (".nsys-rep", ".qdrep")
_PTX: Final = re.compile(rb"^\s*\.version\s+\d+\.\d+\s+\.target\s+sm_", re.MULTILINE)
_TOOL_FILES: Final[dict[Tool, str]] = {
    "ncu": "a file of Nsight Compute",
    "nsys": "a file of Nsight Systems",
    "chrome": "a Chrome trace",
}


def mismatch(path: Path, asked: Tool) -> str | None:
    """Why a file that was not understood is none of ``asked``, ncu or nsys; None where it could be anything.

    Raises ImportFileError where it cannot be read, or is packed.
    """
    start, word = first_bytes(path, _LOOKED_AT), shlex.quote(str(path))
    if not start:
        return "the file is empty: did the program end, and did the profiler write it?"
    if code := code_file_advice(path):
        return code
    if asked == "ncu" and path.suffix in _REPORTS:
        return f"a report of Nsight Systems, which only nsys can read: nsys export --type sqlite {word}"
    if asked == "nsys" and start.startswith(b"NVR"):
        return f"a report of Nsight Compute: tui-probe import ncu {word}"
    tool = tool_of(path)
    if tool is not None and tool != asked:
        return f"{_TOOL_FILES[tool]}: tui-probe import {tool} {word}"
    if _has_other_commas(start, _OTHER_COMMAS if asked == "ncu" else _NSYS_OTHER_COMMAS):
        return f"its cells are not separated by commas: take the file that {asked} wrote, or save it anew with commas"
    return None


def _has_other_commas(start: bytes, headings: Sequence[bytes]) -> bool:
    return any(heading in start.replace(b'"', b"") for heading in headings)


def code_file_advice(path: Path) -> str:
    """That a file is a program or the code of kernels, and what takes it; "" for others. Raises as ``mismatch``."""
    start = first_bytes(path, _LOOKED_AT)
    if start.startswith((elf.MAGIC, fatbin.FATBIN_MAGIC)):
        what = "a program, library, object or code of a GPU"
    elif path.suffix == ".ptx" or _PTX.search(start):
        what = "PTX"
    else:
        return ""
    return f"{what}, not a profile: tui-probe check PROBE {shlex.quote(str(path))} tries a probe on its kernels"
