"""What a report can be asked for. Imports nothing heavy: the command line's help needs no more than this."""

from __future__ import annotations

from typing import Final, Literal

REPORT_ONCE: Final = {"counts": "results", "log": "events"}
"""What ``report --page`` called pages before."""
SHOW_ONCE: Final = {"log": "process"}
"""What ``show`` called them."""

Format = Literal["table", "json", "csv", "md"]
FORMATS: Final[tuple[Format, ...]] = ("table", "json", "csv", "md")
