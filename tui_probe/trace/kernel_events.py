"""What event.log tells of kernels: the code that they come from, how they are prepared, and their fates."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, NamedTuple, TypeAlias

if TYPE_CHECKING:
    from tui_probe.reasons import Reason

Fate: TypeAlias = Literal["probed", "skipped", "failed", "excluded"]
Way: TypeAlias = Literal["ptx", "graft"]
"""How a probe is in a kernel: in its PTX, which was assembled anew, or grafted into its machine code."""


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
class Alternating:
    """A kernel that cannot be run twice: its launches are by turns the original's and the probed one's."""

    index: int
    reason: Reason
