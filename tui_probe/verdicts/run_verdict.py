"""Verdict on a run in one line, its change against another run, and a cache of verdicts in the state directory."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Final

from tui_probe.draw import units
from tui_probe.draw.printable import printable
from tui_probe.draw.shorten import shorten
from tui_probe.errors import ProbeError
from tui_probe.trace.follow import open_trace
from tui_probe.trace.locate import LOG
from tui_probe.trace.user_state import read_state_record, write_state
from tui_probe.verdicts.finding_summary import summarize_findings
from tui_probe.verdicts.findings import FLAG
from tui_probe.verdicts.limiter import kernel_limiter

if TYPE_CHECKING:
    from pathlib import Path

    from tui_probe.trace.model import Kernel, Trace

VERDICTS_FILE: Final = "verdicts.json"
MAX_VERDICTS: Final = 1000
"""Verdicts that are kept, those that were asked for last."""
MAX_LOG_BYTES: Final = 64 << 20
"""Bytes of a log up to which it is read for a line in a list, unasked."""
_NAME_WIDTH: Final = 24
"""Cells of a kernel's name."""
_MAX_KERNELS: Final = 20
"""Kernels whose results are read if none was timed."""
_SAME_TIME_SHARE: Final = 0.01
"""Times that differ by less are called the same."""
_FIELD_TYPES: Final[dict[str, tuple[type, ...]]] = {
    "kernel": (str,),
    "text": (str,),
    "limit": (str, type(None)),
    "share": (float, type(None)),
    "milliseconds": (float, type(None)),
}


@dataclass(frozen=True, slots=True)
class RunVerdict:
    """Verdict on a run in a line.

    It is the limiter of the kernel with most time, else its first flagged finding; without times, that of the kernel
    with most findings. ``kernel`` is the demangled name of that kernel, "" where there is none, ``text`` the limiter or
    finding, "" for none. ``limit`` is what limits it (``memory (L2)``), None if not known; ``share`` its part of the
    GPU time, from 0 to 1, ``milliseconds`` the median time of a launch without a probe; None: not measured.
    """

    kernel: str = ""
    text: str = ""
    limit: str | None = None
    share: float | None = None
    milliseconds: float | None = None

    @property
    def sentence(self) -> str:
        """``matmul, 62% of the time: memory (L2) 83%``; "" where nothing was found."""
        share = "" if self.share is None else f", {self.share:.0%} of the time"
        return f"{_short_name(self.kernel)}{share}: {self.text}" if self.text else ""

    @property
    def column(self) -> str:
        """Text for a column, the limiter first: ``memory (L2) 83%, matmul``."""
        return f"{self.text}, {_short_name(self.kernel)}" if self.text else ""

    def change_since(self, earlier: RunVerdict, *, same_probe: bool) -> str:
        """``matmul 1.20 ms → 810 µs (-32.5%); limiter latency → memory (L2)``; "" where nothing is known to differ.

        Without times, kernel and finding depend on the probe, so findings are compared only for the ``same_probe``.
        """
        if not self.kernel or not earlier.kernel:
            return ""
        if self.kernel != earlier.kernel:
            if self.share is not None and earlier.share is not None:
                return f"most time: {_short_name(earlier.kernel)} → {_short_name(self.kernel)}"
            return f"was {earlier.sentence}" if same_probe and earlier.text else ""
        parts = [_time_change(self, earlier)]
        if self.limit and earlier.limit:
            parts.append(f"limiter {earlier.limit} → {self.limit}" if self.limit != earlier.limit else "")
        elif same_probe and earlier.text and self.text != earlier.text:
            parts.append(f"was {earlier.text}")
        return "; ".join(filter(None, parts))


def _short_name(name: str) -> str:
    return shorten(printable(name), _NAME_WIDTH)


def _time_change(current: RunVerdict, earlier: RunVerdict) -> str:
    if current.milliseconds is None or not earlier.milliseconds:
        return ""
    change = current.milliseconds / earlier.milliseconds - 1
    if abs(change) < _SAME_TIME_SHARE:
        return "time unchanged"
    time_before, time_now = (units.duration(value / 1e3) for value in (earlier.milliseconds, current.milliseconds))
    return f"{_short_name(current.kernel)} {time_before} → {time_now} ({change * 100:+.1f}%)"


def run_verdict(trace: Trace) -> RunVerdict:
    """Return the verdict on a trace; reads the newest result of one kernel, or of the first few if none was timed."""
    measured_kernels = [kernel for kernel in trace.kernels if kernel.result_rows]
    timed = [kernel for kernel in measured_kernels if kernel.time_share is not None]
    if timed:
        return _kernel_verdict(trace, max(timed, key=lambda kernel: kernel.time_share or 0.0))
    verdicts = [_kernel_verdict(trace, kernel) for kernel in measured_kernels[:_MAX_KERNELS]]
    return max(verdicts, key=_rank, default=RunVerdict())


def _kernel_verdict(trace: Trace, kernel: Kernel) -> RunVerdict:
    limiter = kernel_limiter(kernel)
    limit = limiter.limit if limiter is not None else None
    text = limiter.short_text if limiter is not None and limit else _flagged_text(trace, kernel)
    return RunVerdict(kernel.demangled, text, limit, kernel.time_share, kernel.time_ms)


def _rank(verdict: RunVerdict) -> int:
    """Flagged findings before others, these before none."""
    return (2 if verdict.text.startswith(FLAG) else 1) if verdict.text else 0


def _flagged_text(trace: Trace, kernel: Kernel) -> str:
    """Return the first finding of its probes; "" where a result is too large for this, or cannot be read."""
    summary = summarize_findings(trace, kernel)
    return summary.text if summary.results and not any(result.problem for result in summary.results) else ""


class VerdictCache:
    """Verdicts in the user's state directory, and those of other runs once they were read, which takes up to a second.

    The key of a verdict is the trace directory, with size and mtime of its log. Not thread-safe.
    """

    def __init__(self) -> None:
        self._records = read_state_record(VERDICTS_FILE)
        self._has_changes = False

    def verdict_of(self, directory: Path) -> RunVerdict:
        """Return the verdict on a run that has ended, cached or read; an empty one if it cannot be read."""
        try:
            log = (directory / LOG).stat()
        except OSError:
            return RunVerdict()
        stamp, name = [log.st_size, log.st_mtime_ns], str(directory.absolute())
        cached = _verdict_from_record(self._records.get(name), stamp)
        if cached is not None:
            return cached
        verdict = RunVerdict() if log.st_size > MAX_LOG_BYTES else _verdict_of_directory(directory)
        self._records.pop(name, None)
        self._records[name] = {"stamp": stamp, **asdict(verdict)}
        self._has_changes = True
        return verdict

    def keep(self) -> None:
        """Write them into the user's state folder, if there are new ones."""
        if self._has_changes:
            self._has_changes = False
            write_state(VERDICTS_FILE, json.dumps(dict([*self._records.items()][-MAX_VERDICTS:])))


def _verdict_of_directory(directory: Path) -> RunVerdict:
    try:
        return run_verdict(open_trace(directory))
    except (ProbeError, OSError):
        return RunVerdict()


def _verdict_from_record(record: object, stamp: list[int]) -> RunVerdict | None:
    """A verdict as the file has it; None where it is of another state of the trace, or is none."""
    if not isinstance(record, dict) or record.get("stamp") != stamp:
        return None
    fields = {name: record.get(name) for name in _FIELD_TYPES}
    fits = all(isinstance(fields[name], kinds) for name, kinds in _FIELD_TYPES.items())
    return RunVerdict(**fields) if fits else None  # type: ignore[arg-type]
