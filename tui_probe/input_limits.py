"""Limits of readers: the most that one file from elsewhere may cost.

Readers of traces, probes, settings and files of other profilers take their limits from here; the others stream.
``tui-probe help formats`` lists them all.
"""

from __future__ import annotations

from typing import Final, NamedTuple

_UNITS: Final = ((20, "GiB"), (10, "MiB"), (0, "KiB"))


class InputLimit(NamedTuple):
    """What is limited, to how much, and what a reader does above it."""

    subject: str
    most: int
    """Bytes, unless ``subject`` names another unit."""
    above: str

    @property
    def size(self) -> str:
        """The limit as text, of bytes."""
        kib = self.most >> 10
        return next(f"{kib >> shift} {unit}" for shift, unit in _UNITS if kib >> shift << shift == kib and kib >> shift)


BANDWIDTH_RESULT: Final = InputLimit("a bandwidth result", 16 << 20, "an error")
LINE_OF_CSV: Final = InputLimit("one line of a CSV file", 16 << 20, "an error that names the line")
CSV_OF_NSYS: Final = InputLimit("a CSV file of nsys stats", 1 << 30, "an error that recommends the sqlite export")
PROBE_FILE: Final = InputLimit("a probe file, a set of probes, a study or settings.toml", 256 << 10, "an error")
TOML_KEY: Final = InputLimit("parts of one key or header in TOML", 16, "an error that names the line")
PTX_TEXT: Final = InputLimit("the PTX of a kernel in a trace, to find a line of source", 64 << 20, "no line of source")
JSON_VALUE: Final = InputLimit("one event of a Chrome trace", 16 << 20, "an error")
SQLITE_VALUE: Final = InputLimit("one value of an sqlite export", 16 << 20, "an error")
BYTES_PER_ROW: Final = 4
"""Bytes that a row of an sqlite table takes at least: with more rows than that, its pages are linked in a circle."""
