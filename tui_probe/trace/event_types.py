"""The kinds of lines in ``event.log``, as immutable records.

Integers that a line may leave out (or write as ``-``) are ``None``. Addresses and handles are integers. Texts are
decoded as UTF-8 with other bytes written as ``\\xNN``, so that any log can be shown. The grammar of each line is in
``tui_probe.trace.events``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, NamedTuple, TypeAlias

from tui_probe.trace.graph_events import GraphEvent

if TYPE_CHECKING:
    from tui_probe.reasons import Reason

Dim3: TypeAlias = tuple[int, int, int]
Shape: TypeAlias = tuple[int, int, int, int, int, int, int]
"""Grid x y z, block x y z in threads, dynamic shared memory in bytes per block; each at most the largest u32."""
Fate: TypeAlias = Literal["probed", "skipped", "failed", "excluded"]
Way: TypeAlias = Literal["ptx", "graft"]
"""How a probe is in a kernel: in its PTX, which was assembled anew, or grafted into its machine code."""


@dataclass(frozen=True, slots=True)
class Unknown:
    """Any line that is none of the others: cut, interleaved, or of a kind not known here."""

    line: bytes


@dataclass(frozen=True, slots=True)
class ProcessStarted:
    pid: int


@dataclass(frozen=True, slots=True)
class Command:
    """The command line of the process, its arguments separated by blanks."""

    text: str


@dataclass(frozen=True, slots=True)
class DriverOpened:
    handle: int


@dataclass(frozen=True, slots=True)
class Epoch:
    """Zero of the result file names, in nanoseconds since 1970."""

    ns: int


@dataclass(frozen=True, slots=True)
class Device:
    """A device on which the process has a context. ``clock_khz`` is the highest SM clock."""

    ordinal: int
    sms: int
    clock_khz: int
    capability: str
    name: str


@dataclass(frozen=True, slots=True)
class Initialised:
    pass


@dataclass(frozen=True, slots=True)
class BenchmarkEnabled:
    """Benchmark mode, with the bytes of L2 cache flushed before each timed launch."""

    flush_bytes: int


@dataclass(frozen=True, slots=True)
class MemoryCall:
    """An allocation (with ``size`` in bytes) or a release of device memory."""

    call: str
    status: int
    pointer: int
    size: int | None


@dataclass(frozen=True, slots=True)
class ModuleCall:
    """A module, library or function call: the handle that it gave, what that came from, and its name."""

    call: str
    status: int | None
    handle: int | None
    parent: int | None
    name: str | None


@dataclass(frozen=True, slots=True)
class Image:
    """A kernel image as it was loaded: ``elf``, ``fatbin``, ``warpped_fatbin`` or ``ptx``."""

    kind: str
    size: int


@dataclass(frozen=True, slots=True)
class FunctionMissing:
    """A function launched for the first time."""

    function: int


@dataclass(frozen=True, slots=True)
class FunctionFound:
    function: int
    succeeded: bool


@dataclass(frozen=True, slots=True)
class ImageFound:
    """The image from which a function came; ``name`` is None where no image was found."""

    function: int
    name: str | None
    size: int | None


@dataclass(frozen=True, slots=True)
class KernelFolder:
    name: str
    folder: str


@dataclass(frozen=True, slots=True)
class FileStep:
    """A folder or file that was made (``mkdir``, ``write``) or could not be (``can't-…``)."""

    step: str
    path: str


@dataclass(frozen=True, slots=True)
class EngineStarted:
    text: str


@dataclass(frozen=True, slots=True)
class EngineAnswer:
    """What the probe engine made of a kernel: ``ok``, ``skipped`` or ``failed``, and why."""

    outcome: str
    reason: Reason | None


@dataclass(frozen=True, slots=True)
class InfoRead:
    name: str
    parameters: int
    maps: int | None
    callback: str | None


@dataclass(frozen=True, slots=True)
class KernelReady:
    function: int
    name: str


class FunctionFigures(NamedTuple):
    """What the driver tells of a function.

    Registers per thread, ``local`` bytes per thread (stack and spills), ``shared`` static bytes per block, and
    ``blocks`` that are resident on an SM, by its occupancy calculator at the function's first block size.
    """

    registers: int | None
    local: int | None
    shared: int | None
    blocks: int | None


@dataclass(frozen=True, slots=True)
class KernelFate:
    """A kernel once its fate is known; ``figures`` are those of the original function."""

    index: int
    status: Fate
    figures: FunctionFigures
    name: str
    reason: Reason | None


@dataclass(frozen=True, slots=True)
class ProbingFate:
    """A kernel with one of several probes; ``figures`` are those of the probed function."""

    index: int
    status: Fate
    figures: FunctionFigures
    probe: str
    reason: Reason | None


@dataclass(frozen=True, slots=True)
class ProbedFunction:
    """The function that is launched in the place of a kernel, and how the probe came into it; None: by its PTX."""

    index: int
    figures: FunctionFigures
    way: Way | None = None


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
class ReasonNamed:
    """The number that a reason has in packed lines."""

    number: int
    reason: Reason


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
class Callback:
    step: str
    text: str


@dataclass(frozen=True, slots=True)
class Alternating:
    """A kernel that cannot be run twice: its launches are by turns the original's and the probed one's."""

    index: int
    reason: Reason


@dataclass(frozen=True, slots=True)
class NvtxRange:
    """An NVTX range of the program, or a part of one; ``runs`` are first and last launch of each run of launches.

    ``thread`` is None for a range of all threads, ``domain`` for the default one, ``end_ns`` where it went on.
    """

    id: int
    parent: int | None
    thread: int | None
    start_ns: int
    end_ns: int | None
    runs: tuple[tuple[int, int], ...]
    domain: str | None
    text: str


@dataclass(frozen=True, slots=True)
class BudgetTold:
    """A budget of the run is ``reached``, or gives each launch its share alone; ``limit`` and ``used`` at that moment.

    ``name`` is ``trace-bytes``, ``result-files``, ``log-bytes`` or ``share``; ``advice`` says what to do.
    """

    name: str
    reached: bool
    limit: int
    used: int
    advice: str


@dataclass(frozen=True, slots=True)
class Unlisted:
    """Launches of a kernel for which the log had no room: they were counted, and passed through."""

    kernel: int
    launches: int


@dataclass(frozen=True, slots=True)
class Trouble:
    """Something that the hook could not do, in its own words; the program itself went on."""

    text: str


@dataclass(frozen=True, slots=True)
class Ending:
    """How the process is going to end: one of the two is None."""

    status: int | None
    signal: int | None


@dataclass(frozen=True, slots=True)
class Exited:
    launches: int
    probed: int
    dropped: int
    reason: Reason | None


Event: TypeAlias = (
    Unknown
    | ProcessStarted
    | Command
    | DriverOpened
    | Epoch
    | Device
    | Initialised
    | BenchmarkEnabled
    | MemoryCall
    | ModuleCall
    | Image
    | FunctionMissing
    | FunctionFound
    | ImageFound
    | KernelFolder
    | FileStep
    | EngineStarted
    | EngineAnswer
    | InfoRead
    | KernelReady
    | KernelFate
    | ProbedFunction
    | ProbingFate
    | Parameters
    | LaunchStarted
    | MapSize
    | ProbeMemory
    | LaunchEnded
    | Saved
    | PassedThrough
    | KeyNamed
    | ReasonNamed
    | Packed
    | PassedLost
    | LaunchTimes
    | Benchmark
    | GpuTimed
    | EmptyPair
    | Counted
    | Callback
    | Alternating
    | NvtxRange
    | BudgetTold
    | Unlisted
    | Trouble
    | Ending
    | Exited
    | GraphEvent
)
