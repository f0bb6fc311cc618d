"""What the trial of grafts that save records at single instructions saves, and what that must be.

A warp saves when it begins, a thread its address, the clock and the instruction at each access of global memory. The
address of the first output tells those of all others; what is at one other address, the same of all threads, is the
total, to which the compiler may add for several lanes at once.
"""

from __future__ import annotations

import itertools
import struct
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from tui_probe.engine.model import Field, Level, Map, Place, Position, Probe, ProbePoint
from tui_probe.engine.snippet import parse_snippet
from tui_probe.engine.storage import WARP_THREADS, storage_of
from tui_probe.engine.trial_kernel import ACTIVE, KERNEL, MOST_SMS, THREADS_OF_GRID, Trial, TrialFailedError
from tui_probe.sass.words import WORD_BYTES

if TYPE_CHECKING:
    from collections.abc import Sequence

MOST: Final = 4
"""Records of a thread: a load, a store, an addition, and room for one that must not be."""
_WORD: Final = 4
_BEGUN: Final = struct.Struct("<QIxxxxI12x")
_ACCESS: Final = struct.Struct("<QII")
_COUNT: Final = struct.Struct("<I12x")
_HALF: Final = 1 << 31
_POSITIONS: Final = (
    Position("ld", ("global",)),
    Position("st", ("global",), ("bulk",)),
    Position("atom", ("global",)),
    Position("red", ("global",), ("bulk",)),
)
_WARPS: Final = THREADS_OF_GRID // WARP_THREADS
_BEGUN_BYTES: Final = _WARPS * _BEGUN.size
_ROW: Final = WARP_THREADS * _COUNT.size


class Access(NamedTuple):
    """A record: the address, the low half of the clock before it, and the instruction's place."""

    address: int
    clock: int
    place: int


def record_trial() -> Trial:
    """Records of warps and of threads, in one launch."""
    begun = Map("begun", Level.WARP, (Field("start", "u64", 0), Field("smid", "u32", 8)), 16)
    fields = Field("address", "u64", 0), Field("clock", "u32", 8), Field("line", "u32", 12)
    accesses = Map("accesses", Level.THREAD, fields, _ACCESS.size, MOST)
    entry = parse_snippet("SAVE [ begun ] {%clock64, %smid};", Place(KERNEL, 0), KERNEL)
    access = parse_snippet("SAVE [ accesses ] {ADDR, %clock, LINE};", Place(KERNEL, 0), KERNEL)
    points = (
        ProbePoint("entry", (Position(""),), entry.snippet, None),
        ProbePoint("access", _POSITIONS, access.snippet, None),
    )
    probe = Probe(KERNEL, Path(KERNEL), "", "", {}, (begun, accesses), points)
    sizes = _BEGUN_BYTES, _WARPS * storage_of(probe, accesses).slot_bytes
    return Trial(probe, sizes, check_records)


def check_records(content: bytes) -> None:
    """Raises TrialFailedError unless warps and threads left the records that they must."""
    _check_warps(content[:_BEGUN_BYTES])
    threads = _threads(content[_BEGUN_BYTES:])
    first = threads[0]
    if not first:
        raise TrialFailedError("the grafted kernel saved no access of its first thread")
    output = first[0].address
    others = {record.address for number, records in enumerate(threads) for record in records} - {
        output + _WORD * number for number in range(THREADS_OF_GRID)
    }
    if len(others) != 1:
        raise TrialFailedError(f"the grafted kernel saved accesses to {len(others)} addresses that it has no use for")
    for number, records in enumerate(threads):
        _check_thread(number, records, output + _WORD * number, others)
    for warp in range(-(-ACTIVE // WARP_THREADS)):
        lanes = threads[warp * WARP_THREADS : (warp + 1) * WARP_THREADS]
        if not any(record.address in others for records in lanes for record in records):
            raise TrialFailedError(f"warp {warp} of the grafted kernel saved no addition")


def _check_warps(content: bytes) -> None:
    for start, sm, mark in _BEGUN.iter_unpack(content):
        if mark != 1 or not start or sm >= MOST_SMS:
            raise TrialFailedError(f"a warp's record cannot be true: start {start}, SM {sm}, mark {mark}")


def _threads(content: bytes) -> list[list[Access]]:
    """The records of each thread, in the order in which it saved them."""
    found: list[list[Access]] = []
    pitch = _ROW + MOST * WARP_THREADS * _ACCESS.size
    for warp in range(_WARPS):
        counts = list(_COUNT.iter_unpack(content[warp * pitch : warp * pitch + _ROW]))
        records = [Access(*each) for each in _ACCESS.iter_unpack(content[warp * pitch + _ROW : (warp + 1) * pitch])]
        for lane, (count,) in enumerate(counts):
            if not 1 <= count <= MOST:
                raise TrialFailedError(f"lane {lane} of warp {warp} counted {count - 1} accesses")
            found.append([records[lane + WARP_THREADS * index] for index in range(count - 1)])
    return found


def _check_thread(number: int, records: Sequence[Access], own: int, others: set[int]) -> None:
    """An odd thread loads and stores its own word, an even one stores it; those that leave at once do nothing."""
    expected = 0 if number >= ACTIVE else 1 + number % 2
    at_own = [record for record in records if record.address == own]
    if len(at_own) != expected or any(record.address not in {own, *others} for record in records):
        raise TrialFailedError(f"thread {number} saved {len(at_own)} accesses to its word, not {expected}")
    for before, after in itertools.pairwise(records):
        if (after.clock - before.clock) % (2 * _HALF) >= _HALF:
            raise TrialFailedError(f"thread {number} saved an access before one that came earlier")
    if any(not record.place or record.place % WORD_BYTES for record in records):
        raise TrialFailedError(f"thread {number} saved an access of no instruction")
