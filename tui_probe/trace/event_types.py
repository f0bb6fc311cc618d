r"""Records of lines of ``event.log``: those of the process, and the union of all.

Integers that a line may leave out (or write as ``-``) are ``None``. Addresses and handles are integers. Texts are
decoded as UTF-8 with other bytes written as ``\xNN``, so that any log can be shown. The grammar of each line is in
``tui_probe.trace.events``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from tui_probe.trace.launch_events import (
    Alternating,
    Benchmark,
    EmptyPair,
    EngineAnswer,
    EngineStarted,
    FileStep,
    FunctionFound,
    FunctionMissing,
    GpuTimed,
    GraphEvent,
    Image,
    ImageFound,
    InfoRead,
    KernelFolder,
    KernelPrepared,
    KernelReady,
    LaunchEnded,
    LaunchKept,
    LaunchNotKept,
    LaunchStarted,
    LaunchTimes,
    LaunchUnprobed,
    MapSize,
    ModuleCall,
    NotReplayed,
    PackedLine,
    Parameters,
    ProbedFunction,
    ProbeMemory,
    ProbePrepared,
    ProbesFused,
    ResultSaved,
    ShapeGroupNamed,
    SlotsCounted,
    TurnsEnded,
    UnlistedLaunches,
    UnprobedDropped,
)

if TYPE_CHECKING:
    from tui_probe.reasons import Reason


class Unknown(NamedTuple):
    """Any line that is none of the others: cut, interleaved, or of a kind not known here."""

    line: bytes


class ProcessStarted(NamedTuple):
    pid: int


class Command(NamedTuple):
    """The command line of the process, its arguments separated by blanks."""

    text: str


class DriverOpened(NamedTuple):
    handle: int


class RankGiven(NamedTuple):
    """The process's place among those of a parallel program, as its launcher (torchrun, mpirun, srun) says."""

    rank: int
    size: int
    """Number of ranks; 0 if the launcher does not say it."""


class Epoch(NamedTuple):
    """Zero of the result file names, in nanoseconds since 1970."""

    ns: int


class Device(NamedTuple):
    """A device on which the process has a context. ``clock_khz`` is the highest SM clock."""

    ordinal: int
    sms: int
    clock_khz: int
    capability: str
    name: str


class Initialised(NamedTuple):
    pass


class BenchmarkEnabled(NamedTuple):
    """Benchmark mode, with the bytes of L2 cache flushed before each timed launch."""

    flush_bytes: int


class MemoryCall(NamedTuple):
    """An allocation (with ``size`` in bytes) or a release of device memory."""

    call: str
    status: int
    pointer: int
    size: int | None


class TensorMapLayout(NamedTuple):
    """Places of the parameters of a tensor map, as :mod:`tui_probe.engine.map_layout` reads it; None if not found."""

    layout: str | None


class TensorMapMade(NamedTuple):
    """A tensor map that the program encoded; lists have the innermost dimension first, strides are in bytes.

    ``content`` is the SHA-1 of its 128 bytes, None if the call failed. ``box`` is None for a map of pixels (im2col),
    ``origin`` the content whose address was replaced, without other properties.
    """

    call: str
    status: int
    content: str | None
    address: int
    element_type: int | None = None
    sizes: tuple[int, ...] = ()
    strides: tuple[int, ...] = ()
    box: tuple[int, ...] | None = None
    origin: str | None = None
    steps: tuple[int, ...] = ()
    """Element strides; () in a line without a box."""
    interleave: int = 0


class ReasonNamed(NamedTuple):
    """The number that a reason has in packed lines."""

    number: int
    reason: Reason


class NvtxRange(NamedTuple):
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


class BudgetEvent(NamedTuple):
    """A budget that ``is_reached``, or gives each launch its share only; ``limit`` and ``usage`` at that moment.

    ``name`` is ``trace-bytes``, ``result-files``, ``log-bytes``, ``share`` or ``write-rate``. ``advice`` says what
    to do.
    """

    name: str
    is_reached: bool
    limit: int
    usage: int
    advice: str


class Callback(NamedTuple):
    step: str
    text: str


class ContextFailed(NamedTuple):
    """The driver's error, of a kernel, that ended the GPU context; the kernels probed since the last result."""

    error: int
    name: str
    kernels: tuple[int, ...]
    fault: str = ""
    """``KERNEL: WORDS`` of the simulated GPU: which kernel it was, and what it did."""


class KernelFault(NamedTuple):
    """A fault that checks of the simulated GPU found, as JSON."""

    text: str


class MemoryHashed(NamedTuple):
    """Hash of the memory, after a launch, from an address in a parameter on to the end of its allocation."""

    launch: int
    kernel: int
    parameter: int
    offset: int
    bytes: int
    hash: str


class LaunchStuck(NamedTuple):
    """A launch that did not end for this many seconds. ``warps`` were on the device; ``reason`` is why there is no
    result with their places, None if there is one. ``is_deadlock``: the simulated GPU found that it cannot end.
    """

    launch: int
    kernel: int
    seconds: float
    warps: int
    left_out: int
    reason: Reason | None
    is_deadlock: bool = False


class Trouble(NamedTuple):
    """Something that the hook could not do, in its own words; the program itself went on."""

    text: str


class Ending(NamedTuple):
    """The announced end of the process: one of the two is None."""

    status: int | None
    signal: int | None


class Exited(NamedTuple):
    launches: int
    probed_launches: int
    dropped_results: int
    reason: Reason | None


Event: TypeAlias = (
    Unknown
    | ProcessStarted
    | Command
    | DriverOpened
    | Epoch
    | RankGiven
    | Device
    | Initialised
    | BenchmarkEnabled
    | MemoryCall
    | TensorMapLayout
    | TensorMapMade
    | ModuleCall
    | LaunchKept
    | LaunchNotKept
    | NotReplayed
    | TurnsEnded
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
    | KernelPrepared
    | ProbedFunction
    | ProbePrepared
    | ProbesFused
    | Parameters
    | LaunchStarted
    | MapSize
    | ProbeMemory
    | LaunchEnded
    | ResultSaved
    | LaunchUnprobed
    | ShapeGroupNamed
    | ReasonNamed
    | PackedLine
    | UnprobedDropped
    | LaunchTimes
    | Benchmark
    | GpuTimed
    | EmptyPair
    | SlotsCounted
    | Callback
    | Alternating
    | NvtxRange
    | BudgetEvent
    | UnlistedLaunches
    | ContextFailed
    | KernelFault
    | LaunchStuck
    | MemoryHashed
    | Trouble
    | Ending
    | Exited
    | GraphEvent
)
