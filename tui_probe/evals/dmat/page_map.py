"""``.dmat`` files of existing systems: accesses to each page at each clock of a launch.

Little-endian: u64 number of pages, u64 number of clocks, the pages' addresses as u64; then per clock u64 clock, u64
number of entries, and per entry u64 page and a count of 4 bytes (in files of some versions 8). Neither pages nor clocks
are in order.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from tui_probe.errors import TraceError
from tui_probe.input_limits import PAGE_MAP
from tui_probe.trace.plain_file import read_within

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from numpy.typing import NDArray

SUFFIX: Final = ".dmat"
PAGE: Final = 1 << 16
"""Bytes of a page."""
_HEAD: Final = struct.Struct("<QQ")
_ENTRIES: Final = tuple(np.dtype([("page", "<u8"), ("count", count)]) for count in ("<u4", "<u8"))
_STEP: Final = 1 << 14
"""Clocks between two words of progress."""


@dataclass(frozen=True, slots=True)
class PageMap:
    """Entries by clock: ``clocks``, ``pages`` (addresses) and ``counts`` are u8 arrays of shape (entries,)."""

    clocks: NDArray[np.uint64]
    pages: NDArray[np.uint64]
    counts: NDArray[np.uint64]


def read_page_map(path: Path, progress: Callable[[float], object] = lambda _: None) -> PageMap:
    """Read a file. Raises TraceError for one that cannot be read, or is none or cut off."""
    try:
        data = read_within(path, PAGE_MAP)
    except OSError as error:
        raise TraceError(f"{path}: {error.strerror or error}") from error
    if len(data) < _HEAD.size:
        raise TraceError(f"{path}: {len(data)} bytes are not page map")
    pages, clocks = _HEAD.unpack_from(data)
    begin = _HEAD.size + 8 * pages
    if begin + _HEAD.size * clocks > len(data):
        raise TraceError(f"{path}: no page map, or cut off: {pages} pages and {clocks} clocks do not fit into it")
    for entry in _ENTRIES:
        groups = _groups(data, begin, clocks, entry, progress)
        if groups is not None:
            return groups
    raise TraceError(f"{path}: no page map, or cut off: its {clocks} clocks do not end where it ends")


def _groups(
    data: bytes, begin: int, clocks: int, entry: np.dtype[np.void], progress: Callable[[float], object]
) -> PageMap | None:
    """None if the groups of entries of that form do not end where the file does."""
    at, times, sizes, parts = begin, [], [], []
    for number in range(clocks):
        if at + _HEAD.size > len(data):
            return None
        clock, count = _HEAD.unpack_from(data, at)
        at += _HEAD.size
        end = at + count * entry.itemsize
        if end > len(data):
            return None
        times.append(clock)
        sizes.append(count)
        parts.append(data[at:end])
        at = end
        if number % _STEP == 0:
            progress(at / len(data))
    if at != len(data):
        return None
    entries = np.frombuffer(b"".join(parts), entry)
    clock = np.repeat(np.array(times, "u8"), np.array(sizes, "i8"))
    by_clock = np.argsort(clock, kind="stable")
    return PageMap(clock[by_clock], entries["page"][by_clock], entries["count"][by_clock].astype("u8"))
