"""Records of lines of ``event.log`` about kernels, launches and CUDA graphs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, NamedTuple, TypeAlias

if TYPE_CHECKING:
    from tui_probe.reasons import Reason
    from tui_probe.trace.launch_shape import Dim3, Shape

PrepareResult: TypeAlias = Literal["probed", "skipped", "failed", "excluded"]
ProbeMode: TypeAlias = Literal["ptx", "graft"]
"""Form of a probe in a kernel: in its PTX, which was assembled anew, or grafted into its SASS."""
GraphChange: TypeAlias = Literal["untwinned", "passed", "given back", "destroyed"]


class ModuleCall(NamedTuple):
    """A module, library or function call: the handle that it gave, what that came from, and its name."""

    call: str
    status: int | None
    handle: int | None
    parent: int | None
    name: str | None


class Image(NamedTuple):
    """A kernel image as it was loaded: ``elf``, ``fatbin``, ``warpped_fatbin`` or ``ptx``."""

    kind: str
    size: int


class FunctionMissing(NamedTuple):
    """A function launched for the first time."""

    function: int


class FunctionFound(NamedTuple):
    function: int
    succeeded: bool


class ImageFound(NamedTuple):
    """The image from which a function came; ``name`` is None where no image was found."""

    function: int
    name: str | None
    size: int | None


class KernelFolder(NamedTuple):
    name: str
    folder: str


class FileStep(NamedTuple):
    """A folder or file that was made (``mkdir``, ``write``) or could not be (``can't-…``)."""

    step: str
    path: str


class EngineStarted(NamedTuple):
    text: str


class EngineAnswer(NamedTuple):
    """Answer of the probe engine for a kernel: ``ok``, ``skipped`` or ``failed``, and the reason."""

    outcome: str
    reason: Reason | None


class InfoRead(NamedTuple):
    name: str
    parameters: int
    maps: int | None
    callback: str | None


class KernelReady(NamedTuple):
    function: int
    name: str


class FunctionResources(NamedTuple):
    """Resources of a function, from the driver.

    Registers and ``local_bytes`` (stack and spills) per thread, static ``shared_bytes`` per block, and ``blocks`` that
    are resident on an SM, by its occupancy calculator at the function's first block size.
    """

    registers: int | None
    local_bytes: int | None
    shared_bytes: int | None
    blocks: int | None


@dataclass(frozen=True, slots=True)
class KernelPrepared:
    """A kernel once its status is known; ``resources`` are those of the original function."""

    index: int
    status: PrepareResult
    resources: FunctionResources
    name: str
    reason: Reason | None


@dataclass(frozen=True, slots=True)
class ProbePrepared:
    """A kernel with one of several probes; ``resources`` are those of the probed function."""

    index: int
    status: PrepareResult
    resources: FunctionResources
    probe: str
    reason: Reason | None


@dataclass(frozen=True, slots=True)
class ProbesFused:
    """A kernel gets the counting ``probes`` of a run together, or for a ``reason`` one at a time; None if together."""

    index: int
    probes: tuple[str, ...]
    reason: Reason | None


@dataclass(frozen=True, slots=True)
class NotReplayed:
    """A launch of a kernel that was not repeated for its other probes, and why."""

    index: int
    number: int
    reason: Reason | None


@dataclass(frozen=True, slots=True)
class TurnsEnded:
    """The launch after which a probe has no more launches of that shape of a kernel, since it found nothing of note."""

    index: int
    number: int
    probe: str


@dataclass(frozen=True, slots=True)
class LaunchKept:
    """A launch that was saved with the memory that it reaches; bytes of that memory."""

    index: int
    number: int
    size: int
    unknown: int
    """Words that point into memory that was not saved."""
    failure: Reason | None = None
    """Error with which the launch ended, so that the memory after it was not saved."""


@dataclass(frozen=True, slots=True)
class LaunchNotKept:
    """A launch that was to be saved and was not, and why."""

    index: int
    number: int
    reason: Reason | None


@dataclass(frozen=True, slots=True)
class ProbedFunction:
    """The function that is launched instead of a kernel, and how the probe came into it; None: by its PTX."""

    index: int
    resources: FunctionResources
    way: ProbeMode | None = None


@dataclass(frozen=True, slots=True)
class Alternating:
    """A kernel that cannot be run twice: its launches are alternately the original's and the probed one's."""

    index: int
    reason: Reason


class Parameters(NamedTuple):
    """The parameters of the launch that follows, as the words of the line, and its time in ns since 1970."""

    time_ns: int
    text: bytes

    @property
    def words(self) -> tuple[str, ...]:
        return tuple(word.decode("ascii", "backslashreplace") for word in self.text.split())


class LaunchStarted(NamedTuple):
    """A probed launch. ``number`` counts the process's launches."""

    shape: Shape
    kernel: int | None
    number: int | None
    stream: int | None


class MapSize(NamedTuple):
    """The memory of one map: ``slots`` warps or threads per block, ``size`` bytes each, ``total`` bytes."""

    blocks: int
    level: str
    slots: int
    size: int
    total: int


class ProbeMemory(NamedTuple):
    """Bytes of the records of the launch at hand, or of launch ``number``, and those that they take on the device.

    ``probe`` is given for a sized launch of a run with several.
    """

    size: int
    device: int | None = None
    number: int | None = None
    probe: str | None = None


class LaunchEnded(NamedTuple):
    """Answer of the driver to the probed launch (a CUresult)."""

    succeeded: bool
    status: int


class ResultSaved(NamedTuple):
    """A result file; ``probe`` is given where the run had several."""

    path: str
    size: int
    kernel: int | None
    number: int | None
    probe: str | None = None


class LaunchUnprobed(NamedTuple):
    """A launch of the original kernel, and why it was not probed."""

    shape: Shape
    kernel: int | None
    number: int | None
    time_ns: int | None
    reason: Reason | None


class ShapeGroupNamed(NamedTuple):
    """Launches of a kernel with one key: those of one shape, or those of ``blocks`` (from, to) without another.

    ``cluster`` is None where the launches ask for none.
    """

    key: int
    kernel: int
    shape: Shape | None
    cluster: Dim3 | None
    blocks: tuple[int, int] | None


class PackedLine(NamedTuple):
    """Launches of originals, in one line, which is kept as it is (see ``trace.unprobed``)."""

    line: bytes


@dataclass(frozen=True, slots=True)
class UnprobedDropped:
    """Launches of a key that the log had no room for."""

    key: int
    count: int


class LaunchTimes(NamedTuple):
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
    probe: str | None = None


class GpuTimed(NamedTuple):
    """GPU time of a sampled launch; ``weight`` launches are stood for. ``host_ns`` is what the call took that launched,
    where the device had nothing to do before it returned.
    """

    number: int
    kernel: int
    key: int
    is_probed: bool
    ns: int
    weight: int
    host_ns: int | None


class EmptyPair(NamedTuple):
    """Nanoseconds between two events with nothing in between, which times of launches are without."""

    ns: int


class SlotsCounted(NamedTuple):
    size: int


class UnlistedLaunches(NamedTuple):
    """Launches of a kernel for which the log had no room: they were counted, and ran unprobed."""

    kernel: int
    launches: int


class GraphInstantiated(NamedTuple):
    """An executable, whose nodes follow: when it is made, and again when they have become others."""

    graph: int
    nodes: int
    kernels: int
    flags: int


@dataclass(frozen=True, slots=True)
class GraphNode:
    """A node, by its index. ``parent`` is the node of the child graph that it is in, ``dependencies`` are the nodes
    that it waits for, ``captured`` is the number of the launch that it was captured from.
    """

    graph: int
    index: int
    kind: str
    parent: int | None
    dependencies: tuple[int, ...]
    bytes: int | None = None
    kernel: int | None = None
    shape: Shape | None = None
    captured: int | None = None


@dataclass(frozen=True, slots=True)
class GraphReplayed:
    """Number of replays that have no line of their own."""

    graph: int
    count: int


@dataclass(frozen=True, slots=True)
class GraphReplay:
    """A probed replay. Its kernels are ``count`` launches from ``first_launch`` on; ``probed_counts`` says, by
    kernel, how many of them have lines of their own, as probed launches.
    """

    graph: int
    replay: int
    time_ns: int
    first_launch: int
    count: int
    probed_counts: tuple[tuple[int, int], ...]


class GraphTimed(NamedTuple):
    """The time of a replay, between events before and behind it; ``weight`` replays are stood for. ``call_ns`` is what
    the call took that launched; ``was_idle``: the device had nothing to do before that.
    """

    graph: int
    replay: int
    is_probed: bool
    ns: int
    weight: int
    call_ns: int
    was_idle: bool


class GraphChanged(NamedTuple):
    """Result for an executable's probed copy, or for the executable itself."""

    graph: int
    change: GraphChange
    reason: Reason | None = None


GraphEvent: TypeAlias = GraphInstantiated | GraphNode | GraphReplayed | GraphReplay | GraphTimed | GraphChanged
