"""What event.log tells of launches: how they were asked for, what became of them, and their times."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tui_probe.reasons import Reason
    from tui_probe.trace.shapes import Dim3, Shape


@dataclass(frozen=True, slots=True)
class Parameters:
    """The parameters of the launch that follows, as the words of the line, and its time in ns since 1970."""

    time_ns: int
    text: bytes

    @property
    def words(self) -> tuple[str, ...]:
        return tuple(word.decode("ascii", "backslashreplace") for word in self.text.split())


@dataclass(frozen=True, slots=True)
class LaunchStarted:
    """A probed launch. ``number`` counts the process's launches."""

    shape: Shape
    kernel: int | None
    number: int | None
    stream: int | None


@dataclass(frozen=True, slots=True)
class MapSize:
    """The memory of one map: ``slots`` warps or threads per block, ``size`` bytes each, ``total`` bytes."""

    blocks: int
    level: str
    slots: int
    size: int
    total: int


@dataclass(frozen=True, slots=True)
class ProbeMemory:
    """Bytes of the records of the launch at hand, or of launch ``number``, and those that they take on the device.

    ``probe`` is told of a sized launch of a run with several.
    """

    size: int
    device: int | None = None
    number: int | None = None
    probe: str | None = None


@dataclass(frozen=True, slots=True)
class LaunchEnded:
    """What the driver answered to the probed launch (a CUresult)."""

    succeeded: bool
    status: int


@dataclass(frozen=True, slots=True)
class Saved:
    """A result file; ``probe`` is told where the run had several."""

    path: str
    size: int
    kernel: int | None
    number: int | None
    probe: str | None = None


@dataclass(frozen=True, slots=True)
class PassedThrough:
    """A launch of the original kernel, and why it was not probed."""

    shape: Shape
    kernel: int | None
    number: int | None
    time_ns: int | None
    reason: Reason | None


@dataclass(frozen=True, slots=True)
class KeyNamed:
    """Which launches of a kernel have a key: those of one shape, or those of ``blocks`` (from, to) without another.

    ``cluster`` is None where the launches ask for none.
    """

    key: int
    kernel: int
    shape: Shape | None
    cluster: Dim3 | None
    blocks: tuple[int, int] | None


@dataclass(frozen=True, slots=True)
class Packed:
    """Launches of originals, in one line, which is kept as it is (see ``trace.packed_lines``)."""

    line: bytes


@dataclass(frozen=True, slots=True)
class PassedLost:
    """Launches of a key that the log had no room for."""

    key: int
    count: int


@dataclass(frozen=True, slots=True)
class LaunchTimes:
    """Milliseconds of one probed launch; ``ratio`` is their sum over ``kernel`` and not the slowdown."""

    prologue: float | None
    kernel: float | None
    epilogue: float | None
    ratio: float | None


@dataclass(frozen=True, slots=True)
class Benchmark:
    """Milliseconds of a kernel probed (``kernel``) and not (``original``); ``impact`` is their ratio, the slowdown."""

    prologue: float | None
    kernel: float | None
    epilogue: float | None
    original: float | None
    impact: float | None
    status: int
    index: int | None
    number: int | None


@dataclass(frozen=True, slots=True)
class GpuTimed:
    """GPU time of a sampled launch; ``weight`` launches are stood for. ``host_ns`` is what the call took that launched,
    where the device had nothing to do before it returned."""

    number: int
    kernel: int
    key: int | None
    probed: bool
    ns: int
    weight: int
    host_ns: int | None


@dataclass(frozen=True, slots=True)
class EmptyPair:
    """Nanoseconds between two events with nothing in between, which times of launches are without."""

    ns: int


@dataclass(frozen=True, slots=True)
class Counted:
    size: int


@dataclass(frozen=True, slots=True)
class Unlisted:
    """Launches of a kernel for which the log had no room: they were counted, and passed through."""

    kernel: int
    launches: int
