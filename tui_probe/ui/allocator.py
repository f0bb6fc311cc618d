"""Memory that the C library keeps for itself, given back by a screen that lives for hours."""

from __future__ import annotations

import ctypes
from contextlib import suppress

EACH = 120.0
"""Seconds after which it is given back again."""


def give_back() -> None:
    """Return free pages to the system, where the C library (glibc) can: it does so by itself only at the heap's end."""
    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).malloc_trim(0)
