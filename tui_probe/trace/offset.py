"""Where an instruction stands: on a line of ``pruned.ptx``, or at an offset in machine code that was probed itself."""

from __future__ import annotations


class Offset(int):
    """Bytes from the beginning of a kernel's machine code, where of a kernel in PTX a line would stand."""

    __slots__ = ()


def where(line: int) -> str:
    """``PTX:32``; of machine code ``0x0150``."""
    return f"{line:#06x}" if isinstance(line, Offset) else f"PTX:{line}"


def where_in_full(line: int) -> str:
    """``PTX line 32``; of machine code ``offset 0x0150``."""
    return f"offset {line:#06x}" if isinstance(line, Offset) else f"PTX line {line}"
