"""Limit of a wait in tests."""

from typing import Final

HANG: Final = 300.0
"""Seconds. A wait that takes as long hangs, however busy the machine is."""
