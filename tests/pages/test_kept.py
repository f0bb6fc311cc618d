"""Share of the records of a probe that is in a result."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tests.trace.make import result_bytes
from tui_probe.probekit.record_counts import record_counts_text
from tui_probe.trace.results import read_result

if TYPE_CHECKING:
    from pathlib import Path


def test_words(tmp_path: Path) -> None:
    """Two blocks of 40 threads: records of threads, for which one told nothing, and one record per warp."""
    attempts = np.zeros((2, 40, 1), "<u4")
    attempts[0, :3, 0] = [1, 2000, 0xFFFFFFFF]
    records, per_warp = np.zeros((2, 40, 32), np.uint8), np.zeros((2, 2, 16), np.uint8)
    maps = [(1, records), (1, attempts.view(np.uint8)), (32, per_warp)]
    path = tmp_path / "1.000000.bin"
    path.write_bytes(result_bytes((2, 1, 1), (40, 1, 1), maps, about=[(2, 8, b""), (3, 4, b""), (1, 16, b"\x0d")]))
    text = "kept 5 of 2 001 records (unknown for 1 slot); 3 of 4 slots written"
    assert record_counts_text(read_result(path)) == text
    path.write_bytes(result_bytes((2, 1, 1), (40, 1, 1), maps))
    assert record_counts_text(read_result(path)) == ""
