"""Which blocks a result file is of, where a run measured only a sample of them.

The grid in the header of such a file is a row of the measured blocks alone, in the order of their numbers, so that all
else is read as in any other file. Behind what is said of the maps, at the next multiple of 8, stands of which blocks of
which grid these are: eight bytes ``sampled\\1``; u32 ``gridDim.xyz, first, step, count``: the blocks first,
first + step, … by their linear number.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from tui_probe.errors import TraceError

if TYPE_CHECKING:
    from pathlib import Path

    from tui_probe.trace.result_file import ResultFile
    from tui_probe.trace.shapes import Dim3

_MAGIC: Final = b"sampled\1"
_SAMPLE: Final = struct.Struct("<6I")
_ALIGNMENT: Final = 8


@dataclass(frozen=True, slots=True)
class Sample:
    """The grid that was launched, and the linear numbers of the blocks of it that were measured."""

    grid: Dim3
    blocks: range


def read_sample(path: Path, data: ResultFile, end: int, measured: int) -> Sample | None:
    """What stands behind ``end``; None if all blocks were measured.

    TraceError if it cannot be true of a file with ``measured`` blocks.
    """
    at = -(-end // _ALIGNMENT) * _ALIGNMENT
    if data.head(at, len(_MAGIC)) != _MAGIC:
        return None
    if len(data) < at + len(_MAGIC) + _SAMPLE.size:
        raise TraceError(f"{path}, offset {at}: what is said of the sample of blocks was cut off")
    x, y, z, first, step, count = data.unpack(_SAMPLE, at + len(_MAGIC))
    if count != measured or not step or first + (count - 1) * step >= x * y * z:
        raise TraceError(
            f"{path}, offset {at}: {count} blocks from {first} on, each {step}, of a grid of {x}×{y}×{z}, in a file of "
            f"{measured}: not a result file"
        )
    return Sample((x, y, z), range(first, first + count * step, step))
