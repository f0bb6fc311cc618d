"""Limits of readers: the most that one file from elsewhere may cost; JSON and TOML are parsed within them.

Readers of traces, probes, settings and files of other profilers take their limits from here; the others stream.
``tui-probe help formats`` lists all of ``LIMITS``.
"""

from __future__ import annotations

import json
import re
from typing import Any, Final, NamedTuple

_UNITS: Final = ((20, "GiB"), (10, "MiB"), (0, "KiB"))
_ERROR: Final = "an error"
_REST_IGNORED: Final = "the remaining content is not read"
_EXTRACT: Final = "cuobjdump -xelf all -xptx all"
BYTES_PER_ROW: Final = 4
"""Bytes that a row of an sqlite table takes at least: with more rows than that, its pages are linked in a circle."""
_KEY_PART: Final = r"""(?:[\w-]++|"(?:[^"\\\n]|\\.|){0,64}+"|'[^'\n]{0,64}+')[ \t]{0,64}+"""
"""Pattern of the short quoted parts: a file has few others, and a search for their ends takes time."""


class InputLimit(NamedTuple):
    """A limit on input: its subject, the most, and what a reader does above it."""

    subject: str
    maximum: int
    """Bytes, unless ``subject`` names another unit."""
    consequence: str
    """The words of the help for that."""
    remedy: str = ""
    """The user's remedy, unless the reader's own message has it."""

    @property
    def size(self) -> str:
        """The limit as text."""
        if self.maximum < 1 << 10:
            return str(self.maximum)
        kib = self.maximum >> 10
        return next(f"{kib >> shift} {unit}" for shift, unit in _UNITS if kib >> shift << shift == kib and kib >> shift)


KERNEL_FILE: Final = InputLimit("a file of kernels", 2 << 30, _ERROR, f"extract its kernels with {_EXTRACT}")
UNPACKED_IMAGES: Final = InputLimit(
    "decompressed images of a fatbin, plus 64 bytes per byte of the fatbin", 64 << 20, _ERROR
)
ORIGINAL_IMAGE: Final = InputLimit("SASS of original.bin", 1 << 30, _ERROR, f"extract the kernel with {_EXTRACT}")
CUBIN: Final = InputLimit("line tables of a cubin in a trace", 64 << 20, "source lines are missing")
PTX_TEXT: Final = InputLimit("the PTX of a kernel in a trace", 64 << 20, "pages do not show its lines")
SHOWN_TEXT: Final = InputLimit("a text file shown on the screen", 256 << 20, _REST_IGNORED)
SOURCE_FILE: Final = InputLimit("a source file", 1 << 20, "the file is not copied to the trace")
SITES: Final = InputLimit("sites.json", 64 << 20, _ERROR)
LOG_LINE: Final = InputLimit("a line of event.log", 1 << 20, "the line is split")
RUN_JSON: Final = InputLimit("run.json", 16 << 20, "the file is ignored")
KERNEL_INFO: Final = InputLimit("kernel.info", 4 << 20, _ERROR, "the file is corrupt; record the trace again")
LAUNCH_INFO: Final = InputLimit("launch.info of a saved launch", 64 << 20, _ERROR, "the file is corrupt")
PROCESS_LOG: Final = InputLimit("process.log", 4 << 20, _REST_IGNORED)
TENSOR_TRACE: Final = InputLimit("tensor.trace", 64 << 20, _REST_IGNORED)
PAGE_MAP: Final = InputLimit("a page map (*.dmat)", 1 << 30, _ERROR, "record fewer launches")
ACCESSES: Final = InputLimit("a decompressed JSON file of accesses", 256 << 20, _ERROR)
COLLECTION: Final = InputLimit("the list of runs of an evaluation", 16 << 20, _ERROR)
MEDIANS: Final = InputLimit("a table of medians", 16 << 20, _ERROR, "pass only a CSV file of medians")
PROGRAM_OUTPUT: Final = InputLimit("the output of an evaluation program", 16 << 20, _REST_IGNORED)
BANDWIDTH_RESULT: Final = InputLimit("a bandwidth result", 16 << 20, _ERROR)
LINE_OF_CSV: Final = InputLimit("one line of a CSV file", 16 << 20, "the error message has the line number")
CSV_OF_NSYS: Final = InputLimit(
    "a CSV file of nsys stats", 1 << 30, "the error message advises to use the sqlite export"
)
PROBE_FILE: Final = InputLimit("a probe file, a set of probes, a study or settings.toml", 256 << 10, _ERROR)
TOML_KEY: Final = InputLimit("parts of one key or header in TOML", 16, "the error message has the line number")
JSON_VALUE: Final = InputLimit("one event of a Chrome trace", 16 << 20, _ERROR)
SQLITE_VALUE: Final = InputLimit("one value of an sqlite export", 16 << 20, _ERROR)
LIMITS: Final = tuple(limit for limit in tuple(globals().values()) if isinstance(limit, InputLimit))


def markdown_table() -> str:
    """All limits, for the help."""
    rows = [f"| {limit.subject} | {limit.size} | {limit.consequence} |" for limit in LIMITS]
    return "\n".join(["| Input | Limit | Above the limit |", "|---|---|---|", *rows])


def parse_json(text: str | bytes) -> Any:
    """Parse as ``json.loads``. Raises ValueError for all that is not JSON, and for what nests deeper than Python
    follows.
    """
    try:
        return json.loads(text)
    except RecursionError:
        raise ValueError("nested too deeply") from None


_LONG_KEY: Final = re.compile(rf"(?<![\w-])(?:{_KEY_PART}\.[ \t]{{0,64}}+){{{TOML_KEY.maximum}}}")


def parse_toml(text: str) -> dict[str, Any]:
    """Parse as ``tomllib.loads``. Raises ValueError for all that is not TOML, nests too deep, or has a key of too many
    parts.

    The time that ``tomllib`` takes for a key grows with the square of its parts.
    """
    if long_key := _LONG_KEY.search(text):
        line = text.count("\n", 0, long_key.start()) + 1
        raise ValueError(f"line {line}: a key with more than {TOML_KEY.maximum} parts")
    import tomllib  # most runs read no TOML: it takes 3 ms

    try:
        return tomllib.loads(text)
    except RecursionError:
        raise ValueError("nested too deeply") from None
