"""Kinds of JSON files, by their content: Chrome traces, results of our own commands, trees of Proton."""

from __future__ import annotations

import zlib
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple

from tui_probe.draw.shell import shell_word
from tui_probe.draw.table import safe
from tui_probe.nsight.importers.formats import PROTON, PYTORCH
from tui_probe.nsight.importers.json_stream import JsonStream, Truncated
from tui_probe.nsight.importers.packing import unpacked

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import IO

JsonKind = Literal["chrome", "bandwidth", "report", "proton", "other"]
_SCHEMAS: Final = "tui-probe."
_HEAD: Final = 3
"""Members behind the schema of a document of tui-probe: version, page, trace."""
_LOOKED_AT: Final = 1 << 16
_CHROME_MARKS: Final = (b'"traceEvents"', b'"ph"', b'"deviceProperties"')
_UNREADABLE: Final = (OSError, EOFError, ValueError, RecursionError, zlib.error, Truncated)


class JsonFile(NamedTuple):
    """Kind of a JSON file; of a report of tui-probe its page and the trace that it names."""

    kind: JsonKind
    page: str = ""
    trace: str = ""


def json_file(path: Path) -> JsonFile | None:
    """The kind of a file; None if it is not JSON or cannot be read. The first key that only one kind has decides."""
    start = _start(path)
    if start[:1] not in (b"{", b"["):
        return None
    try:
        with unpacked(path) as file:
            kind = _of_array(file) if start[:1] == b"[" else _of_object(file)
    except _UNREADABLE:
        kind = None  # cut off or damaged: marks in its beginning decide
    if kind is not None:
        return kind
    return JsonFile("chrome" if any(mark in start for mark in _CHROME_MARKS) else "other")


def _start(path: Path) -> bytes:
    """As much of the beginning as can be unpacked, from the first character on."""
    start = b""
    try:
        with unpacked(path) as file:
            read = getattr(file, "read1", file.read)
            while len(start) < _LOOKED_AT and (part := read(_LOOKED_AT)):
                start += part
    except _UNREADABLE:
        pass
    return start.removeprefix(b"\xef\xbb\xbf").lstrip()


def _of_object(file: IO[bytes]) -> JsonFile | None:
    stream = JsonStream(file)
    members = stream.members()
    seen: dict[str, Any] = {}
    for key in members:
        if key == "traceEvents":
            return JsonFile("chrome")
        if key == "bandwidth" and stream.peek() == "[":
            return JsonFile("bandwidth")
        seen[key] = value = stream.value()
        if key == "schema" and isinstance(value, str) and value.startswith(_SCHEMAS):
            seen |= {name: stream.value() for name in islice(members, _HEAD)}
            page, trace = (str(seen.get(name, "")) for name in ("page", "trace"))
            return JsonFile("bandwidth" if page == "bandwidth" else "report", page, trace)
    return None


def _of_array(file: IO[bytes]) -> JsonFile | None:
    stream = JsonStream(file)
    for _ in stream.elements():
        first = stream.value()
        if isinstance(first, dict) and "ph" in first:
            return JsonFile("chrome")
        if isinstance(first, dict) and {"frame", "metrics"} <= first.keys():
            return JsonFile("proton")
        return None
    return None


def is_chrome(path: Path) -> bool:
    """Return whether a file is a Chrome trace; False if it cannot be read."""
    description = json_file(path)
    return description is not None and description.kind == "chrome"


def chrome_files(paths: Sequence[Path]) -> bool:
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
        page = f" (page {safe(description.page)})" if description.page else ""
        known = _is_directory(description.trace)
        source = (
            f"tui-probe open {shell_word(description.trace)}" if known else "open the trace or file that it is about"
        )
        return f"JSON that tui-probe wrote{page}, not a profile: {source}"
    if description.kind == "proton":
        return f"a tree of Proton, which has only sums: make a trace with {PROTON.made_with}"
    return (
        "JSON without traceEvents, so not a Chrome trace, nor a bandwidth result: make a trace with"
        f" {PYTORCH.made_with}"
    )


def _is_directory(name: str) -> bool:
    try:
        return bool(name) and Path(name).is_dir()
    except (OSError, ValueError):
        return False
