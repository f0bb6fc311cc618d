"""Reference in Python of the hook's rule for sampled blocks: the launches, and the blocks of each.

A launch gets a share of what is left of the run's bytes (``share``). If its file would take more, or its maps more
device memory than one launch may have, the records of a power of two of its blocks are kept: of so many as fit, sixteen
at least, spread evenly over the grid.
"""

from __future__ import annotations

from dataclasses import dataclass

LEAST_BLOCKS = 16
LONG_STEP = 16
ALIGNMENT = 256
HEADER = 32
PER_MAP = 16
PAGE, ENTRY = 4096, 64
LATER_BYTES = 64 << 20


@dataclass(frozen=True)
class Sample:
    """Blocks ``first``, ``first + step``, …: ``count`` of them."""

    first: int
    step: int
    count: int


def disk_bytes(size: int) -> int:
    """Return the disk space of a file of that many bytes: whole pages, and its directory entry."""
    return -(-size // PAGE) * PAGE + ENTRY


def share(left: int, held: int, *, first: bool) -> int:
    """The bytes that a launch may take of those ``left`` where its kernel has ``held`` some."""
    quota = max(left - held, 0) // 2
    return min(left // 8, quota) if first else min(left // 32, LATER_BYTES, quota)


def spread(blocks: int, most: int) -> Sample:
    """Return up to ``most`` blocks of a grid, from the first on; a long step is odd, so that it meets all columns."""
    step = blocks // most if blocks > most else 1
    if step >= LONG_STEP and step % 2 == 0:
        step -= 1
    return Sample(0, step, min(most, blocks))


def map_bytes(blocks: int, per_block: int) -> int:
    """The memory of a map, which is also what is booked for its part of the file."""
    return -(-blocks * per_block // ALIGNMENT) * ALIGNMENT


def recorded(blocks: int, per_block: int, room: int, device: int) -> Sample | None:
    """Return recorded blocks of a launch with one map, None for none. ``room``: its share, ``device``: its memory."""
    about = HEADER + PER_MAP
    full_size = map_bytes(blocks, per_block)
    if full_size <= device and disk_bytes(about + full_size) <= room:
        return Sample(0, 1, blocks)
    saved = max(room - disk_bytes(about), 0)
    most = 1
    while most < blocks:
        most *= 2
    while (most := most // 2) >= LEAST_BLOCKS:
        if map_bytes(most, per_block) <= min(saved, device):
            return spread(blocks, most)
    return None
