"""What a report can be asked for. Imports nothing heavy: the command line's help needs no more than this."""

from __future__ import annotations

from typing import Final, Literal

RENAMED: Final = {"counts": "results", "log": "events"}
"""Pages of a report that had another name before; they are shown under the name that is asked for."""

Format = Literal["table", "json", "csv", "md"]
FORMATS: Final[tuple[Format, ...]] = ("table", "json", "csv", "md")
