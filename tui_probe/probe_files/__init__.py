"""The files in which probes are written: where they are, and a probe out of each, no matter what its language."""

from __future__ import annotations

from typing import Final

DEFAULT_PROBE: Final = "survey"
"""The set of probes of a run that names none: it answers what is slow, in which line, and why."""
