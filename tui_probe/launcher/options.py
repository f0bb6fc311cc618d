"""Options of a run, and the refusal of a command that is tui-probe itself."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Any, Final

from tui_probe.probe_files import DEFAULT_PROBE

from .control import NO_LIMIT

if TYPE_CHECKING:
    from collections.abc import Sequence

MAX_TRACE_BYTES = 1 << 30
"""Default limit of bytes of a run on disk."""
MAX_RESULT_FILES = 2000
MAX_KEPT_BYTES = 1 << 30
"""Default limit of the memory of saved launches."""
MAX_WRITE_RATE = 256 << 20
"""Bytes per second."""
MAX_LOG_BYTES = 128 << 20
"""Byte limit of event.log over all processes."""
OUTPUT_PART, LEAST_OUTPUT = 8, 64 << 10
SOURCES_PART, MOST_SOURCES = 16, 16 << 20
AUTO = "auto"
ALL = "all"
OFF = "off"
MACHINE_CODE = (AUTO, ALL, OFF)
ARCHITECTURES = ("sm_80", "sm_90")
"""Architectures of the simulated GPU."""
NAME: Final = "tui-probe"
_PYTHON: Final = re.compile(r"python[\d.]*")


@dataclass(frozen=True)
class RunOptions:
    """The options of ``tui-probe run``, checked. Sizes are bytes; None means the hook's own default."""

    command: tuple[str, ...]
    probes: tuple[str, ...] = (DEFAULT_PROBE,)
    """Probes as the user names them: ``NAME``, ``NAME:SAMPLE``, the name of a set."""
    trace_root: Path = Path("trace")
    kernels: str | None = None
    excluded: str | None = None
    launches: str = AUTO
    """``auto``: those that the hook's schedule chooses; ``all``; or places among a kernel's launches, ``0-9,20``."""
    sample: str | None = None
    benchmark: bool = False
    save_results: bool = False
    """True to also save the records of measured launches, with ``benchmark``."""
    watchdog: float | None = None
    """Seconds after which a launch counts as one that does not end; None: none does."""
    replay: bool = False
    """Launch a kernel again for probes that none of its launches had."""
    wait: bool = False
    """Let every launch wait until its kernel is prepared."""
    memusage: bool = False
    """Compute the memory that records of the launches would take, and probe none of them."""
    detail: bool = False
    """Save all records of a probe, and not only what its pages need by default."""
    machine_code: str = AUTO
    """Kernels without PTX to probe in SASS: ``auto``: not those of closed libraries; ``all``;
    ``off``: none.
    """
    times: bool = True
    """Take the GPU time of some launches of every kernel."""
    driver: Path | None = None
    simulated: bool = False
    simulated_architecture: str | None = None
    """One of ``ARCHITECTURES``; None: what ``TUI_PROBE_SIM_ARCH`` says in the environment, else the first of them."""
    checked: bool | None = None
    """Check accesses on the simulated GPU. None: what ``TUI_PROBE_SIM_CHECK`` says in the environment, else True."""
    max_trace_bytes: int = MAX_TRACE_BYTES
    """Byte limit of the trace. It and the next two may be ``NO_LIMIT``; 0 leaves logs unchanged."""
    min_free_disk: str | None = None
    """Space that results leave free on the trace's disk, as ``2147483648,5%``: both hold; ``0``: nothing. None: what
    ``TUI_PROBE_MIN_FREE_DISK`` says in the environment, else the hook's default.
    """
    max_result_files: int = MAX_RESULT_FILES
    max_log_bytes: int = MAX_LOG_BYTES
    max_write_rate: int = MAX_WRITE_RATE
    """Bytes of results per second where launches are sampled; ``NO_LIMIT``: any."""
    shares: bool = True
    """The user limited neither the size nor the launches: each launch gets its share."""
    kept_launches: tuple[str, ...] = ()
    """Launches to save with the memory that they reach, as ``KERNEL@LAUNCH``."""
    max_kept_bytes: int = MAX_KEPT_BYTES
    """Bytes of that memory, before and after; ``NO_LIMIT``: any."""
    max_probe_memory: int | None = None
    max_host_memory: int | None = None
    after: float = 0.0
    """Seconds from the target's start until launches are recorded."""
    duration: float | None = None
    """Seconds from then until they no longer are; None: to the end."""
    capture_range: bool = False
    """Only between cuProfilerStart and cuProfilerStop."""
    nvtx: str | None = None
    """Only in NVTX ranges of this text."""
    tensors: bool = False
    """Name the tensors of Python programs in ``tensor.trace``."""
    cache: bool = True
    sources: bool = True
    """Copy the source files that kernels came from into the trace."""
    keep_secrets: bool = False
    """Keep what looks like a password or token in the command line, as the trace has it."""
    name: str | None = None
    """The name of the run, which commands take instead of a path."""

    def limits(self) -> dict[str, int]:
        """The budgets of the run, by their names in the control page."""
        return {
            "trace_bytes": self.max_trace_bytes,
            "result_files": self.max_result_files,
            "log_bytes": self.max_log_bytes,
        }

    def output_limit(self) -> int | None:
        """Bytes that the copy of each stream of the target may have; None: as many as there are."""
        unlimited = self.max_trace_bytes == NO_LIMIT
        return None if unlimited else max(LEAST_OUTPUT, self.max_trace_bytes // OUTPUT_PART)

    def source_bytes(self) -> int:
        """Bytes that the copies of source files may have, per trace; 0: there are none."""
        if not self.sources:
            return 0
        return min(MOST_SOURCES, self.max_trace_bytes // SOURCES_PART)

    def record(self) -> dict[str, Any]:
        """Return the options for run.json: those that change what is measured."""
        return {
            "kernels": self.kernels,
            "filter": self.excluded,
            "launches": self.launches,
            "sample": self.sample,
            "benchmark": self.benchmark,
            "save_results": self.save_results or not self.benchmark,
            "memusage": self.memusage,
            "detail": self.detail,
            "machine_code": self.machine_code,
            "times": self.times,
            "max_trace_bytes": limit_in_json(self.max_trace_bytes),
            "max_result_files": limit_in_json(self.max_result_files),
            "max_log_bytes": limit_in_json(self.max_log_bytes),
            "max_write_rate": limit_in_json(self.max_write_rate),
            "min_free_disk": self.min_free_disk,
            "max_probe_memory": self.max_probe_memory,
            "max_host_memory": self.max_host_memory,
            "after": self.after or None,
            "for": self.duration,
            "capture_range": self.capture_range,
            "nvtx": self.nvtx,
            "tensors": self.tensors,
            "replay": self.replay,
            "wait": self.wait,
            "watchdog": self.watchdog,
            "keep_launch": list(self.kept_launches),
            "max_kept_bytes": limit_in_json(self.max_kept_bytes),
        }


def limit_in_json(limit: int) -> int | None:
    """A limit in JSON; None where there is none."""
    return None if limit == NO_LIMIT else limit


def why_not_itself(command: Sequence[str]) -> str:
    """Return advice if ``command`` is tui-probe itself; "" for another program."""
    name = PurePath(command[0]).name if command else ""
    if name == NAME:
        arguments = command[1:]
    elif _PYTHON.fullmatch(name) and tuple(command[1:3]) == ("-m", "tui_probe"):
        arguments = command[3:]
    else:
        return ""
    if "run" in arguments[:1]:
        return f"{NAME} does not profile itself; pass the program without “{NAME} run”"
    if "demo" in arguments[:1]:
        return (
            f"{NAME} does not profile itself; run the demo from a shell or from the command palette of the home screen"
        )
    return f"{NAME} does not profile itself; pass the program to profile"
