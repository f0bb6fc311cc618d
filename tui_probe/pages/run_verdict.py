"""What a run found, in a line for a list of runs, and what is different from the run before.

Of the kernel that takes most of the time it says what limits that, else what stands out; where nothing was timed, of
the kernel that tells most. Reading a trace takes up to a second, so verdicts are kept in the user's state folder.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Final

from tui_probe.draw import units
from tui_probe.draw.shorten import shorten
from tui_probe.draw.table import safe
from tui_probe.errors import ProbeError
from tui_probe.json_data import parse_json
from tui_probe.pages.findings.brief import STANDS_OUT, brief
from tui_probe.pages.limits import limited
from tui_probe.trace.follow import open_trace
from tui_probe.trace.locate import LOG
from tui_probe.trace.state_folder import read_state, write_state

if TYPE_CHECKING:
    from pathlib import Path

    from tui_probe.trace.model import Kernel, Trace

FILE: Final = "verdicts.json"
MOST: Final = 1000
"""Verdicts that are kept, those that were asked for last."""
LARGEST_LOG: Final = 64 << 20
"""Bytes of a log up to which it is read for a line in a list, unasked."""
_NAME: Final = 24
_MOST_KERNELS: Final = 20
_SAME: Final = 0.01
"""Times that differ by less are called the same."""


@dataclass(frozen=True, slots=True)
class RunVerdict:
    """What a run found.

    ``kernel`` is the demangled name of the kernel that it is about, "" where there is none, ``told`` what is said of
    it, "" for nothing. ``limit`` is what limits it (``memory (L2)``), None where that cannot be told; ``share`` its
    part of the GPU time, from 0 to 1, ``milliseconds`` the median time of a launch without a probe; None: not measured.
    """

    kernel: str = ""
    told: str = ""
    limit: str | None = None
    share: float | None = None
    milliseconds: float | None = None

    @property
    def words(self) -> str:
        """``matmul, 62% of the time: memory (L2) 83%``; "" where nothing was found."""
        share = "" if self.share is None else f", {self.share:.0%} of the time"
        return f"{_short(self.kernel)}{share}: {self.told}" if self.told else ""

    @property
    def column(self) -> str:
        """The same for a column, what was found first: ``memory (L2) 83%, matmul``."""
        return f"{self.told}, {_short(self.kernel)}" if self.told else ""

    def against(self, before: RunVerdict, *, same_probe: bool) -> str:
        """``matmul 1.20 ms → 810 µs (-32.5%); limit latency → memory (L2)``; "" where nothing is known to differ.

        Without times it is by the probe which kernel is told of and what, so that is compared with the ``same_probe``.
        """
        if not self.kernel or not before.kernel:
            return ""
        if self.kernel != before.kernel:
            if self.share is not None and before.share is not None:
                return f"most time: {_short(before.kernel)} → {_short(self.kernel)}"
            return f"was {before.words}" if same_probe and before.told else ""
        parts = [_time_change(self, before)]
        if self.limit and before.limit:
            parts.append(f"limit {before.limit} → {self.limit}" if self.limit != before.limit else "")
        elif same_probe and before.told and self.told != before.told:
            parts.append(f"was {before.told}")
        return "; ".join(filter(None, parts))


def _short(name: str) -> str:
    return shorten(safe(name), _NAME)


def _time_change(now: RunVerdict, before: RunVerdict) -> str:
    if now.milliseconds is None or not before.milliseconds:
        return ""
    change = now.milliseconds / before.milliseconds - 1
    if abs(change) < _SAME:
        return "time as before"
    old, new = (units.duration(each / 1e3) for each in (before.milliseconds, now.milliseconds))
    return f"{_short(now.kernel)} {old} → {new} ({change * 100:+.1f}%)"


def verdict_of(trace: Trace) -> RunVerdict:
    """What the results of a trace tell; reads the newest of one kernel, or of the first few where none was timed."""
    measured = [kernel for kernel in trace.kernels if kernel.result_rows]
    timed = [kernel for kernel in measured if kernel.time_share is not None]
    if timed:
        return _of(trace, max(timed, key=lambda kernel: kernel.time_share or 0.0))
    found = [_of(trace, kernel) for kernel in measured[:_MOST_KERNELS]]
    return max(found, key=_tells, default=RunVerdict())


def _of(trace: Trace, kernel: Kernel) -> RunVerdict:
    found = limited(kernel)
    limit = found.limit if found is not None else None
    told = found.short if found is not None and limit else _stands_out(trace, kernel)
    return RunVerdict(kernel.demangled, told, limit, kernel.time_share, kernel.time_ms)


def _tells(found: RunVerdict) -> int:
    return (2 if found.told.startswith(STANDS_OUT) else 1) if found.told else 0


def _stands_out(trace: Trace, kernel: Kernel) -> str:
    """What its probes say first; "" where a result is too large to be read for this, or cannot be read."""
    told = brief(trace, kernel)
    return told.words if told.found and not any(one.problem for one in told.found) else ""


class Verdicts:
    """The verdicts that are kept, and those of other runs once they were read.

    A run is known by its folder and by the size and time of its log. All is done in one thread at a time.
    """

    def __init__(self) -> None:
        self._known = _kept()
        self._changed = False

    def of(self, directory: Path) -> RunVerdict:
        """What a run that has ended found, read only where it is not known; an empty one where it cannot be read."""
        try:
            log = (directory / LOG).stat()
        except OSError:
            return RunVerdict()
        stamp, name = [log.st_size, log.st_mtime_ns], str(directory.absolute())
        known = _checked(self._known.get(name), stamp)
        if known is not None:
            return known
        found = RunVerdict() if log.st_size > LARGEST_LOG else _read(directory)
        self._known.pop(name, None)
        self._known[name] = {"stamp": stamp, **asdict(found)}
        self._changed = True
        return found

    def keep(self) -> None:
        """Write them into the user's state folder, if there are new ones."""
        if self._changed:
            self._changed = False
            write_state(FILE, json.dumps(dict([*self._known.items()][-MOST:])))


def _read(directory: Path) -> RunVerdict:
    try:
        return verdict_of(open_trace(directory))
    except (ProbeError, OSError):
        return RunVerdict()


_KINDS: Final[dict[str, tuple[type, ...]]] = {
    "kernel": (str,),
    "told": (str,),
    "limit": (str, type(None)),
    "share": (float, type(None)),
    "milliseconds": (float, type(None)),
}


def _checked(kept: object, stamp: list[int]) -> RunVerdict | None:
    """A verdict as the file has it; None where it is of another state of the trace, or is none."""
    if not isinstance(kept, dict) or kept.get("stamp") != stamp:
        return None
    said = {name: kept.get(name) for name in _KINDS}
    fits = all(isinstance(said[name], kinds) for name, kinds in _KINDS.items())
    return RunVerdict(**said) if fits else None  # type: ignore[arg-type]


def _kept() -> dict[str, Any]:
    try:
        found = parse_json(read_state(FILE) or "{}")
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}
