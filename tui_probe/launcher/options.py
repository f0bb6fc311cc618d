"""What a run was asked to do."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tui_probe.probe_files.folders import DEFAULT

MAX_TRACE_BYTES = 1 << 30
"""How many bytes of results a run saves if nobody says otherwise."""


@dataclass(frozen=True)
class RunOptions:
    """The options of ``tui-probe run``, checked. Sizes are bytes; None means the hook's own default."""

    command: tuple[str, ...]
    probe: str = DEFAULT
    trace_root: Path = Path("trace")
    kernels: str | None = None
    excluded: str | None = None
    launches: str | None = None
    sample: str | None = None
    benchmark: bool = False
    detail: bool = False
    """Save all records of a probe, and not only what its pages need by default."""
    driver: Path | None = None
    simulated: bool = False
    max_trace_bytes: int = MAX_TRACE_BYTES
    """0: as many as there are."""
    min_free_disk: str | None = None
    """What results leave free of the trace's disk, as ``2147483648,5%``: both hold; ``0``: nothing. None: what
    ``TUI_PROBE_MIN_FREE_DISK`` says in the environment, else the hook's default."""
    max_probe_memory: int | None = None
    cache: bool = True
    sources: bool = True
    """Copy the source files that kernels came from into the trace."""

    def record(self) -> dict[str, Any]:
        """What run.json keeps of the options: those that change what is measured."""
        return {
            "kernels": self.kernels,
            "filter": self.excluded,
            "launches": self.launches,
            "sample": self.sample,
            "benchmark": self.benchmark,
            "detail": self.detail,
            "max_trace_bytes": self.max_trace_bytes,
            "min_free_disk": self.min_free_disk,
            "max_probe_memory": self.max_probe_memory,
        }
