"""Kinds of files by their content: the tool that wrote one, JSON read value by value, and advice for files of other
kinds.
"""

from __future__ import annotations

import codecs
import json
import re
import shlex
import zlib
from decimal import Decimal
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple

from tui_probe.binaries import elf, fatbin
from tui_probe.draw.printable import printable, shell_word
from tui_probe.input_limits import JSON_VALUE
from tui_probe.nsight.importers.file_reading import first_bytes, open_decompressed
from tui_probe.nsight.importers.formats import PROTON, PYTORCH

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import IO

_READ_BYTES: Final = 1 << 20
"""Bytes that are read at a time."""
_SPACE: Final = " \t\r\n"
_LOOKAHEAD: Final = 64
"""Signs behind a value by which it is known to be whole: a number may continue in what is not read yet."""
JsonKind = Literal["chrome", "bandwidth", "report", "proton", "other"]
_SCHEMA_PREFIX: Final = "tui-probe."
_HEADER_MEMBERS: Final = 3
"""Members behind the schema of a document of tui-probe: version, page, trace."""
_KIND_BYTES: Final = 1 << 16
"""Beginning of a file by which its kind is recognised."""
_CHROME_MARKS: Final = (b'"traceEvents"', b'"ph"', b'"deviceProperties"')
Tool = Literal["ncu", "nsys", "chrome"]
SQLITE_MARK: Final = b"SQLite format 3\0"
_SUFFIXES: Final[dict[str, Tool]] = {
    ".ncu-rep": "ncu", ".nsys-rep": "nsys", ".qdrep": "nsys", ".sqlite": "nsys",
}  # fmt: skip
_TABLE_BYTES: Final = 1 << 18
_NCU_MARKS: Final = (b'"ID","Process ID"', b"ID,Process ID", b"==PROF==", b"==ERROR==")
_NSYS_MARKS: Final = (b"Start (ns),", b"Time (%),", b"Projected Start", b"Proj Start (ns)", b"Total Time")
_NCU_WRONG_SEPARATORS: Final = (b"ID;Process ID", b"ID\tProcess ID")
_NSYS_WRONG_SEPARATORS: Final = tuple(
    mark + comma
    for mark in (b"Start (ns)", b"Time (%)", b"Total Time (ns)", b"Projected Start (ns)")
    for comma in (b";", b"\t")
)
"""Headings as a spreadsheet may save them."""
_NSYS_SUFFIXES: Final = (".nsys-rep", ".qdrep")
_PTX: Final = re.compile(rb"^\s*\.version\s+\d+\.\d+\s+\.target\s+sm_", re.MULTILINE)
_TOOL_FILES: Final[dict[Tool, str]] = {
    "ncu": "a file of Nsight Compute",
    "nsys": "a file of Nsight Systems",
    "chrome": "a Chrome trace",
}


class Truncated(Exception):  # noqa: N818 - not an error where a part is enough
    """The document ends within a value."""


class JsonStream:
    """Goes through a document once. Raises ValueError where it is not JSON, Truncated where it ends early."""

    def __init__(self, file: IO[bytes]) -> None:
        self._read_bytes = getattr(file, "read1", file.read)
        """Gives what can be unpacked of a file that is cut off."""
        self._decode = codecs.getincrementaldecoder("utf-8-sig")("replace").decode
        self._scan = json.JSONDecoder(parse_float=Decimal).raw_decode
        self._text = ""
        self._position = 0
        self._is_at_end = False

    def peek(self) -> str:
        """The next sign that is not a blank. Truncated at the end."""
        while True:
            while self._position < len(self._text):
                if self._text[self._position] not in _SPACE:
                    return self._text[self._position]
                self._position += 1
            if not self._read_more():
                raise Truncated

    def take(self, sign: str) -> bool:
        """Return whether the next sign is this one; then it is passed."""
        is_next = self.peek() == sign
        if is_next:
            self._position += 1
        return is_next

    def value(self) -> Any:
        """The next value as a whole; numbers with a point are Decimal."""
        self.peek()
        while True:
            try:
                value, end = self._scan(self._text, self._position)
            except json.JSONDecodeError as error:
                if self._is_at_end:
                    raise (Truncated if self._is_cut_off(error) else error) from error
            else:
                if self._is_at_end or end + _LOOKAHEAD < len(self._text):
                    self._position = end
                    return value
            self._read_more()

    def _is_cut_off(self, error: json.JSONDecodeError) -> bool:
        """Return whether a value continues behind the end, rather than being wrong."""
        return error.msg.startswith("Unterminated") or error.pos + _LOOKAHEAD >= len(self._text)

    def members(self) -> Iterator[str]:
        """The keys of the object that begins here; the value of each has to be taken before the next."""
        yield from self._items("{", "}")

    def elements(self) -> Iterator[None]:
        """Yield per element of the array that begins here; each has to be read before the next."""
        for _ in self._items("[", "]"):
            yield None

    def _items(self, begin: str, end: str) -> Iterator[str]:
        if not self.take(begin):
            raise ValueError(f"expected {begin}, not {self.peek()}")
        if self.take(end):
            return
        while True:
            key = self.value() if begin == "{" else ""
            if begin == "{" and not self.take(":"):
                raise ValueError(f"expected a colon, not {self.peek()}")
            yield key
            if self.take(end):
                return
            if not self.take(","):
                raise ValueError(f"expected a comma, not {self.peek()}")

    def _read_more(self) -> bool:
        """Read on, and forget what was passed; False at the end. ValueError above the limit of one value."""
        if self._is_at_end:
            return False
        if len(self._text) - self._position > JSON_VALUE.maximum:
            raise ValueError(f"a value of more than {JSON_VALUE.maximum >> 20} MiB")
        data = self._read_bytes(_READ_BYTES)
        self._is_at_end = not data
        self._text = self._text[self._position :] + self._decode(data, final=self._is_at_end)
        self._position = 0
        return bool(data)


_UNREADABLE: Final = (OSError, EOFError, ValueError, RecursionError, zlib.error, Truncated)


class JsonFile(NamedTuple):
    """Kind of a JSON file; of a report of tui-probe its page and the trace that it names."""

    kind: JsonKind
    page: str = ""
    trace: str = ""


def json_file(path: Path) -> JsonFile | None:
    """The kind of a file; None if it is not JSON or cannot be read. The first key that only one kind has decides."""
    start = _beginning(path)
    if start[:1] not in (b"{", b"["):
        return None
    try:
        with open_decompressed(path) as file:
            kind = _kind_of_array(file) if start[:1] == b"[" else _kind_of_object(file)
    except _UNREADABLE:
        kind = None  # cut off or damaged: marks in its beginning decide
    if kind is not None:
        return kind
    return JsonFile("chrome" if any(mark in start for mark in _CHROME_MARKS) else "other")


def _beginning(path: Path) -> bytes:
    """Return as much of the beginning as can be unpacked, from the first character on."""
    start = b""
    try:
        with open_decompressed(path) as file:
            read_bytes = getattr(file, "read1", file.read)
            while len(start) < _KIND_BYTES and (part := read_bytes(_KIND_BYTES)):
                start += part
    except _UNREADABLE:
        pass
    return start.removeprefix(b"\xef\xbb\xbf").lstrip()


def _kind_of_object(file: IO[bytes]) -> JsonFile | None:
    stream = JsonStream(file)
    members = stream.members()
    values: dict[str, Any] = {}
    for key in members:
        if key == "traceEvents":
            return JsonFile("chrome")
        if key == "bandwidth" and stream.peek() == "[":
            return JsonFile("bandwidth")
        values[key] = value = stream.value()
        if key == "schema" and isinstance(value, str) and value.startswith(_SCHEMA_PREFIX):
            values |= {name: stream.value() for name in islice(members, _HEADER_MEMBERS)}
            page, trace = (str(values.get(name, "")) for name in ("page", "trace"))
            return JsonFile("bandwidth" if page == "bandwidth" else "report", page, trace)
    return None


def _kind_of_array(file: IO[bytes]) -> JsonFile | None:
    stream = JsonStream(file)
    for _ in stream.elements():
        element = stream.value()
        if isinstance(element, dict) and "ph" in element:
            return JsonFile("chrome")
        if isinstance(element, dict) and {"frame", "metrics"} <= element.keys():
            return JsonFile("proton")
        return None
    return None


def is_chrome(path: Path) -> bool:
    """Return whether a file is a Chrome trace; False if it cannot be read."""
    description = json_file(path)
    return description is not None and description.kind == "chrome"


def are_chrome(paths: Sequence[Path]) -> bool:
    """Return whether all files are Chrome traces."""
    return all(map(is_chrome, paths))


def json_advice(path: Path) -> str:
    """Name the kind of a JSON file that is not a Chrome trace, and what to do; "" for other files."""
    description = json_file(path)
    if description is None or description.kind == "chrome":
        return ""
    if description.kind == "bandwidth":
        return f"a bandwidth result: tui-probe open {shell_word(path)}"
    if description.kind == "report":
        page = f" (page {printable(description.page)})" if description.page else ""
        has_trace = _is_directory(description.trace)
        source = f"tui-probe open {shell_word(description.trace)}" if has_trace else "open the described trace or file"
        return f"JSON from tui-probe{page}, not a profile; {source}"
    if description.kind == "proton":
        return f"a tree of Proton, not a trace: it contains only sums; make a trace with {PROTON.made_with}"
    return (
        "JSON that is neither a Chrome trace (no traceEvents) nor a bandwidth result; make a trace with"
        f" {PYTORCH.made_with}"
    )


def _is_directory(name: str) -> bool:
    try:
        return bool(name) and Path(name).is_dir()
    except (OSError, ValueError):
        return False


def tool_of(path: Path) -> Tool | None:
    """Return the tool by suffix, else by headings; None if unknown. Raises ImportFileError as ``first_bytes`` does."""
    if path.suffix in _SUFFIXES:
        return _SUFFIXES[path.suffix]
    if is_chrome(path):
        return "chrome"
    start = first_bytes(path, _TABLE_BYTES)
    if start.startswith(SQLITE_MARK):
        return "nsys"
    ncu, nsys = (any(mark in start for mark in marks) for marks in (_NCU_MARKS, _NSYS_MARKS))
    return None if ncu == nsys else "ncu" if ncu else "nsys"


def mismatch_reason(path: Path, expected_tool: Tool) -> str | None:
    """Return why a file that was not understood is not of ``expected_tool``, ncu or nsys; None if it could be anything.

    Raises ImportFileError where it cannot be read, or is packed.
    """
    start, word = first_bytes(path, _KIND_BYTES), shlex.quote(str(path))
    if not start:
        return "the file is empty; check that the program ended and the profiler wrote the file"
    if code := code_file_advice(path):
        return code
    if expected_tool == "ncu" and path.suffix in _NSYS_SUFFIXES:
        return f"a report of Nsight Systems, which only nsys can read; convert it: nsys export --type sqlite {word}"
    if expected_tool == "nsys" and start.startswith(b"NVR"):
        return f"a report of Nsight Compute: tui-probe import ncu {word}"
    tool = tool_of(path)
    if tool is not None and tool != expected_tool:
        return f"{_TOOL_FILES[tool]}: tui-probe import {tool} {word}"
    if advice := json_advice(path):
        return advice
    if _has_wrong_separator(start, _NCU_WRONG_SEPARATORS if expected_tool == "ncu" else _NSYS_WRONG_SEPARATORS):
        return f"cells are not separated by commas; pass the file as {expected_tool} wrote it, or save it with commas"
    return None


def _has_wrong_separator(start: bytes, headings: Sequence[bytes]) -> bool:
    return any(heading in start.replace(b'"', b"") for heading in headings)


def code_file_advice(path: Path) -> str:
    """Name the command that takes a program or the code of kernels; "" for others. Raises as ``mismatch``."""
    start = first_bytes(path, _KIND_BYTES)
    if start.startswith((elf.MAGIC, fatbin.FATBIN_MAGIC)):
        noun = "a program, library, object file or GPU code"
    elif path.suffix == ".ptx" or _PTX.search(start):
        noun = "PTX"
    else:
        return ""
    return f"{noun}, not a profile; to test a probe on its kernels, use tui-probe check PROBE {shlex.quote(str(path))}"
