"""Results of ``dmat`` and ``dmat_compact`` with known accesses, and what a naive reading of them gives."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tests.trace.make import result_bytes
from tui_probe.probes.dmat.accesses import COMPACT, RECORD, WARP, Accesses, read_accesses
from tui_probe.trace.device_memory import LaunchMemory
from tui_probe.trace.results import read_result

START = 7_000_000_000_000
"""The clock of the first warp: more than 32 bits."""


@dataclass
class Launch:
    """Accesses of a launch of ``blocks`` × ``threads``: a list of (cycle since its block began, address, line) each."""

    blocks: int
    threads: int
    accesses: dict[tuple[int, int], list[tuple[int, int, int]]]
    entries: list[int]
    """The cycle at which each block began."""

    def points(self) -> list[tuple[int, int, int]]:
        """(cycle from the first block on, address, line) of all accesses."""
        first = min(self.entries)
        return [
            (self.entries[block] - first + cycle, address, line)
            for (block, _), made in self.accesses.items()
            for cycle, address, line in made
        ]

    def content(self, capacity: int, *, compact: bool = False, counted: bool = True) -> bytes:
        """The file, without (or, ``counted``, with) the map of attempts."""
        warps = np.zeros((self.blocks, -(-self.threads // 32), 1), dtype=WARP)
        warps["start"] = (START + np.array(self.entries))[:, np.newaxis, np.newaxis]
        warps["time"] = 10**18 + np.array(self.entries)[:, np.newaxis, np.newaxis]
        records = np.zeros((self.blocks, self.threads, capacity), dtype=COMPACT if compact else RECORD)
        attempts = np.zeros((self.blocks, self.threads, 1), dtype="<u4")
        for (block, thread), made in self.accesses.items():
            attempts[block, thread] = len(made)
            for place, (cycle, address, line) in enumerate(made[:capacity]):
                clock = (START + self.entries[block] + cycle) & 0xFFFFFFFF
                fields = (clock, address >> 5 & 0xFFFFFFFF) if compact else (address, clock, line)
                records[block, thread, place] = fields
        maps = [(32, as_bytes(warps)), (1, as_bytes(records))] + ([(1, as_bytes(attempts))] if counted else [])
        return result_bytes((self.blocks, 1, 1), (self.threads, 1, 1), maps)


def as_bytes(records: NDArray[Any]) -> NDArray[np.uint8]:
    """Records as slots of bytes."""
    blocks, slots = records.shape[:2]
    return np.ascontiguousarray(records).view(np.uint8).reshape(blocks, slots, -1)


def opened(folder: Path, content: bytes, *, compact: bool = False, memory: LaunchMemory | None = None) -> Accesses:
    """The accesses in a file."""
    path = folder / "1.000000.bin"
    path.write_bytes(content)
    return read_accesses(read_result(path), compact=compact, memory=memory or LaunchMemory(), simulated=True)
