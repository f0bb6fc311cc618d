"""What the engine makes of kernels: the choices of a run, for one of its probes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

Load: TypeAlias = Literal["bin", "ptx"]
MachineCode: TypeAlias = Literal["auto", "all", "off"]
"""Which kernels without PTX are probed in machine code. Of closed libraries the hook asks with ``all`` alone."""


@dataclass(frozen=True, slots=True)
class Options:
    """``load``: what the driver is given, machine code or PTX. The filters are those of the run, for the log.

    ``sampled``: only the blocks of a sample are probed, which the hook tells each launch.
    """

    load: Load = "bin"
    kernels: str = ""
    filtered: str = ""
    sources: int = 0
    """Bytes that copies of source files may have in each trace; 0: there are none."""
    sampled: bool = False
    folder: str = ""
    """Where in a kernel's folder the files of this probe go, when it is one of several; "": they are the only ones."""
    machine_code: MachineCode = "auto"
    """Which kernels without PTX are probed in their machine code; the hook leaves out closed libraries."""
