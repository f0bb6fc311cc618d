"""Page maps of existing systems: both widths of counts, and files that are none."""

from __future__ import annotations

import contextlib
import struct
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tui_probe.errors import TraceError
from tui_probe.evals.dmat.raster import read_page_map

ENTRIES = {7: {0x7F00_0001_0000: 2, 0x7F00_0000_0000: 1}, 3: {0x7F00_0000_0000: 5}, 9: {}}


def written(entries: dict[int, dict[int, int]], count: str = "<I") -> bytes:
    """As the program that merges records writes it."""
    pages = {page for own in entries.values() for page in own}
    data = struct.pack(f"<QQ{len(pages)}Q", len(pages), len(entries), *pages)
    for clock, own in entries.items():
        data += struct.pack("<QQ", clock, len(own))
        data += b"".join(struct.pack("<Q", page) + struct.pack(count, number) for page, number in own.items())
    return data


@pytest.mark.parametrize("count", ["<I", "<Q"])
def test_entries_by_clock(tmp_path: Path, count: str) -> None:
    path = tmp_path / "fig1.dmat"
    path.write_bytes(written(ENTRIES, count))
    page_map = read_page_map(path)
    assert page_map.clocks.tolist() == [3, 7, 7]
    assert page_map.pages.tolist() == [0x7F00_0000_0000, 0x7F00_0001_0000, 0x7F00_0000_0000]
    assert page_map.counts.tolist() == [5, 2, 1]


@given(st.binary(max_size=200), st.integers(0, 60))
def test_damaged_files_are_reported(tmp_path_factory: pytest.TempPathFactory, more: bytes, cut: int) -> None:
    path = tmp_path_factory.mktemp("m") / "x.dmat"
    complete = written(ENTRIES)
    path.write_bytes(complete[: len(complete) - 1 - cut] + more)
    with contextlib.suppress(TraceError):  # and nothing else
        read_page_map(path)


def test_missing_page_map(tmp_path: Path) -> None:
    with pytest.raises(TraceError, match="No such file"):
        read_page_map(tmp_path / "x.dmat")
