"""Records of warps that name the instruction at which they were saved, in the order of time.

Records have the fields ``time`` (ns), ``clock`` (cycles), ``line`` (of ``pruned.ptx``) and ``lane``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from tui_probe.trace.launch_shape import WARP_SIZE, index_in

if TYPE_CHECKING:
    from tui_probe.records.probed_sites import ProbedSites
    from tui_probe.trace.launch_shape import Dim3
    from tui_probe.trace.results import Result
    from tui_probe.trace.source_lines import SourceLine


@dataclass(frozen=True, slots=True)
class InstructionRecord:
    """One record. ``block`` and ``thread`` are indices as in CUDA, (x, y, z); ``warp`` is its number in the block."""

    fields: np.void
    block: Dim3
    warp: int
    thread: Dim3
    line: int
    opcode: str
    """Opcode of the instruction; "" if it is not known."""
    source: SourceLine | None


def records_by_time(
    result: Result, layout: np.dtype[np.void], known: ProbedSites
) -> tuple[InstructionRecord, ...] | None:
    """Return the kept records of map 0, those of equal times by clock, block and warp; None without such records."""
    counts = result.kept(0)
    if counts is None or result.attempts(0) is None or result.sections[0].level != "warp":
        return None
    records = result.records(0, layout)
    block, warp, number = np.nonzero(np.arange(records.shape[2]) < counts[:, :, np.newaxis])
    record = records[block, warp, number]
    opcodes = {instruction.line: instruction.opcode for instruction in known.instructions()}
    grid, size = result.header.grid, result.header.block
    return tuple(
        InstructionRecord(
            record[i],
            index_in(result.blocks[block[i]], grid),
            int(warp[i]),
            index_in(int(warp[i]) * WARP_SIZE + int(record[i]["lane"]), size),
            line := int(record[i]["line"]),
            opcodes.get(line, ""),
            known.ptx_line(line),
        )
        for i in np.lexsort((warp, block, record["clock"], record["time"])).tolist()
    )
