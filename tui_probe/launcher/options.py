"""Options of a run, and their way through ``run.json``: what a run records there, and the command line that repeats it.

A new option is a field, a key of ``RunOptions.record`` and, to be repeated, an entry of the tables before
``repeated_options``.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from tui_probe.probe_files import DEFAULT_PROBE
from tui_probe.trace.run_info import rerun_command

from .control import NO_LIMIT

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from tui_probe.trace.run_info import RunInfo

MAX_TRACE_BYTES = 1 << 30
"""Default limit of bytes of a run on disk."""
MAX_RESULT_FILES = 2000
"""Default limit of files with results."""
MAX_KEPT_BYTES = 1 << 30
"""Default limit of the memory of saved launches."""
MAX_WRITE_RATE = 256 << 20
"""Default limit of bytes of results per second."""
MAX_LOG_BYTES = 128 << 20
"""Default limit of bytes of event.log over all processes."""
OUTPUT_PART = 8
"""The copy of a stream may take 1/8 of the trace's byte limit."""
MIN_OUTPUT_BYTES = 64 << 10
"""Bytes that the copy of a stream may take with any limit."""
SOURCES_PART = 16
"""The copies of source files may take 1/16 of the trace's byte limit."""
MAX_SOURCES_BYTES = 16 << 20
"""Max bytes of the copies of source files, with any limit."""
AUTO = "auto"
ALL = "all"
OFF = "off"
MACHINE_CODE = (AUTO, ALL, OFF)
ARCHITECTURES = ("sm_80", "sm_90")
"""Architectures of the simulated GPU."""


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
    """Byte limit of the trace. ``NO_LIMIT``: none; 0: only logs are written."""
    min_free_disk: str | None = None
    """Space that results leave free on the trace's disk, as ``2147483648,5%``: both hold; ``0``: nothing. None: what
    ``TUI_PROBE_MIN_FREE_DISK`` says in the environment, else the hook's default.
    """
    max_result_files: int = MAX_RESULT_FILES
    """Limit of files with results; ``NO_LIMIT``: none."""
    max_log_bytes: int = MAX_LOG_BYTES
    """Limit of bytes of event.log over all processes; ``NO_LIMIT``: none."""
    max_write_rate: int = MAX_WRITE_RATE
    """Bytes of results per second where launches are sampled; ``NO_LIMIT``: any."""
    shares: bool = True
    """True if the user limited neither sizes nor launches: the budget is divided among the launches."""
    kept_launches: tuple[str, ...] = ()
    """Launches to save with the memory that they reach, as ``KERNEL@LAUNCH``."""
    max_kept_bytes: int = MAX_KEPT_BYTES
    """Bytes of that memory, before and after; ``NO_LIMIT``: any."""
    max_probe_memory: int | None = None
    max_host_memory: int | None = None
    after: float = 0.0
    """Seconds from the target's start to the start of recording."""
    duration: float | None = None
    """Seconds of recording; None: until the program ends."""
    capture_range: bool = False
    """True to record only between cuProfilerStart and cuProfilerStop."""
    nvtx: str | None = None
    """Record only in NVTX ranges with this text; None: everywhere."""
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
        """Return the budgets of the run, by their names in the control page."""
        return {
            "trace_bytes": self.max_trace_bytes,
            "result_files": self.max_result_files,
            "log_bytes": self.max_log_bytes,
        }

    def output_limit(self) -> int | None:
        """Return the max bytes of the copy of each stream of the target; None: no limit."""
        unlimited = self.max_trace_bytes == NO_LIMIT
        return None if unlimited else max(MIN_OUTPUT_BYTES, self.max_trace_bytes // OUTPUT_PART)

    def source_bytes(self) -> int:
        """Return the max bytes of the copies of source files in a trace; 0: no copies."""
        if not self.sources:
            return 0
        return min(MAX_SOURCES_BYTES, self.max_trace_bytes // SOURCES_PART)

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
            "sim_arch": self.simulated_architecture,
            "check": self.checked,
            "keep_launch": list(self.kept_launches),
            "max_kept_bytes": limit_in_json(self.max_kept_bytes),
        }


def limit_in_json(limit: int) -> int | None:
    """Return a limit as JSON has it; None for ``NO_LIMIT``."""
    return None if limit == NO_LIMIT else limit


_TEXT_OPTIONS: Final = {
    "kernel": "kernels", "exclude": "filter", "launches": "launches", "sample": "sample", "nvtx": "nvtx",
    "machine_code": "machine_code", "min_free_disk": "min_free_disk", "sim_arch": "sim_arch",
}  # fmt: skip
"""Options with text values: argument name to run.json key."""
_TIME_OPTIONS: Final = {"after": "after", "duration": "for", "watchdog": "watchdog"}
"""Options in seconds: argument name to run.json key."""
_LIMIT_OPTIONS: Final = (
    "max_trace_bytes", "max_result_files", "max_log_bytes", "max_write_rate", "max_probe_memory", "max_host_memory",
    "max_kept_bytes",
)  # fmt: skip
_SWITCH_OPTIONS: Final = (
    "benchmark",
    "save_results",
    "memusage",
    "replay",
    "wait",
    "detail",
    "capture_range",
    "tensors",
)
_PROBE_MODES: Final = ("benchmark", "save_results", "memusage")
"""Options of the use of a probe: dropped if another probe is given."""
_UNWATCHED: Final = ("replay", "sample")
"""Options that ``--watchdog`` excludes, with those above."""
_OPTION_NAMES: Final = {"kernel": "-k", "duration": "--for"}
"""Options whose names differ from those of their arguments."""


def repeated_options(info: RunInfo, new_options: Sequence[str] = ()) -> dict[str, Any]:
    """Return the options of a run that are not the defaults, by their names in the arguments.

    ``new_options`` replace options of the run: with probes or ``--watchdog``, the modes of the old probes are not
    repeated. Values of another type than run.json has are ignored.
    """
    recorded, defaults = dict(info.options), RunOptions(()).record()
    if "-p" in new_options and any(recorded.get(name) for name in ("benchmark", "memusage")):
        recorded |= dict.fromkeys((*_PROBE_MODES, "launches"))  # there every launch is the default
    if "--watchdog" in new_options:
        recorded |= dict.fromkeys((*_PROBE_MODES, *_UNWATCHED))
    texts = {name: recorded.get(key) for name, key in _TEXT_OPTIONS.items() if isinstance(recorded.get(key), str)}
    numbers: dict[str, Any] = {name: recorded.get(key) for name, key in _TIME_OPTIONS.items()}
    has_limits = "max_log_bytes" in recorded  # in older records, null is a limit that was not given
    for name in _LIMIT_OPTIONS:
        is_unlimited = has_limits and name in recorded and recorded[name] is None and defaults[name] is not None
        numbers[name] = NO_LIMIT if is_unlimited else recorded.get(name)
    numbers = {name: value for name, value in numbers.items() if type(value) in (int, float)}
    keys = {**_TEXT_OPTIONS, **_TIME_OPTIONS}
    values = {name: value for name, value in {**texts, **numbers}.items() if value != defaults[keys.get(name, name)]}
    values |= {name: True for name in _SWITCH_OPTIONS if recorded.get(name) is True}
    if "benchmark" not in values:
        values.pop("save_results", None)  # run.json has it of all other runs, too
    values |= {f"no_{name}": True for name in ("times", "check") if recorded.get(name) is False}
    kept_launches = recorded.get("keep_launch")
    launches = (
        [launch for launch in kept_launches if isinstance(launch, str)] if isinstance(kept_launches, list) else []
    )
    return values | ({"keep_launch": launches} if launches else {})


def again_command(info: RunInfo, new_options: Sequence[str] = ()) -> str:
    """Return the command line that runs a program again, with the options of its run and ``new_options``."""
    values = repeated_options(info, new_options)
    old_probes = (
        info.probe.split(", ") if info.probe and "-p" not in new_options and "--watchdog" not in new_options else ()
    )
    probes = [word for probe in old_probes for word in ("-p", probe)]
    simulated = ["--sim"] if info.simulated and "sim_arch" not in values else []
    return rerun_command(info, [*simulated, *_option_words(values), *probes, *new_options])


def _option_words(values: Mapping[str, Any]) -> Iterator[str]:
    """Yield the options as a user writes them."""
    for name, value in values.items():
        option = _OPTION_NAMES.get(name, option_name(name))
        if value is True:
            yield option
        elif isinstance(value, list):
            yield from (word for argument in value for word in (option, argument))
        elif name in _TIME_OPTIONS:
            yield from (option, f"{value:g}s")
        else:
            yield from (option, "none" if value == NO_LIMIT else str(value))


def option_name(name: str) -> str:
    """Return the option of an argument, as a user writes it."""
    return f"--{name.replace('_', '-')}"
