"""What a report can be asked for. Imports nothing heavy: the command line's help needs no more than this."""

from __future__ import annotations

from typing import Final, Literal

Page = Literal["kernels", "summary", "launches", "blocks", "counts", "ranges", "log"]
PAGES: Final[tuple[Page, ...]] = ("kernels", "summary", "launches", "blocks", "counts", "ranges", "log")

Format = Literal["table", "json", "csv", "md"]
FORMATS: Final[tuple[Format, ...]] = ("table", "json", "csv", "md")
