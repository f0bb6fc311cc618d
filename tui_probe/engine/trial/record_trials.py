"""Cases of the graft self-test that save records: of accesses by threads, of starts of phases, and of bulk copies.

Accesses: a warp saves when it begins, a thread its address, the clock and the instruction at each access of global
memory. The address of the first output tells those of all others; what is at one other address, the same of all
threads, is the total, to which the compiler may add for several lanes at the same time.

Starts of phases, recorded by short code: only lane 0 of a warp is recorded. In warp w it takes w modulo 8 turns, with
two marks per turn; other lanes take more or fewer turns. The longest loops have more starts than a warp has room for.

Bulk copies, in a kernel whose warps give registers away: warp w prefetches 16 bytes w modulo 8 times, and each second
time more bytes from the start of its part of the input, by an instruction with a uniform guard. Prefetches change
nothing.
"""

from __future__ import annotations

import itertools
import struct
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from tui_probe.engine.grafting.record_grafts import COPIES
from tui_probe.engine.grafting.sass_phases import sass_phases
from tui_probe.engine.grafting.sass_positions import copy_sites
from tui_probe.engine.snippet import parse_snippet
from tui_probe.engine.trial.trial_kernel import (
    ACTIVE_THREADS,
    MAX_SMS,
    MAX_TURNS,
    OUTPUT_WORD,
    THREADS_OF_GRID,
    TRIAL_KERNEL,
    TrialCase,
    TrialFailedError,
    trial_cubin,
)
from tui_probe.probe_model.positions import Position, parse_positions
from tui_probe.probe_model.probe import Field, FileLocation, Level, Map, Probe, ProbePoint
from tui_probe.probe_model.storage import QUEUE_HEADER, storage_of
from tui_probe.ptx.phase_names import MARK
from tui_probe.sass.target import GraftTarget
from tui_probe.sass.words import WORD_BYTES
from tui_probe.trace.launch_shape import WARP_SIZE

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from tui_probe.binaries.cubin import Cubin
    from tui_probe.engine.assembler import Assembler

MAX_RECORDS: Final = 4
"""Records of a thread: a load, a store, an addition, and room for one that would be a fault."""
_WARP_RECORD: Final = struct.Struct("<QIxxxxI12x")
_ACCESS_RECORD: Final = struct.Struct("<QII")
COUNT_WORD: Final = struct.Struct("<I")
_HALF_RANGE: Final = 1 << 31
_ACCESS_POSITIONS: Final = (
    Position("ld", ("global",)),
    Position("st", ("global",), ("bulk",)),
    Position("atom", ("global",)),
    Position("red", ("global",), ("bulk",)),
)
RECORD_WARPS: Final = THREADS_OF_GRID // WARP_SIZE
ENTRY_BYTES: Final = RECORD_WARPS * _WARP_RECORD.size
_COUNT_BYTES: Final = WARP_SIZE * COUNT_WORD.size
_COUNT_ROW_BYTES: Final = WARP_SIZE * _ACCESS_RECORD.size
"""The counts are at its start: see ``probe_model.storage``."""


class AccessRecord(NamedTuple):
    """A record: the address, the low half of the clock before it, and the instruction's place."""

    address: int
    clock: int
    place: int


def record_trial() -> TrialCase:
    """Return the case that saves records of warps and of threads in one launch."""
    entry_map = Map("begun", Level.WARP, (Field("start", "u64", 0), Field("smid", "u32", 8)), 16)
    fields = Field("address", "u64", 0), Field("clock", "u32", 8), Field("line", "u32", 12)
    accesses = Map("accesses", Level.THREAD, fields, _ACCESS_RECORD.size, MAX_RECORDS)
    entry = parse_snippet("SAVE [ begun ] {%clock64, %smid};", FileLocation(TRIAL_KERNEL, 0), TRIAL_KERNEL)
    access = parse_snippet("SAVE [ accesses ] {ADDR, %clock, LINE};", FileLocation(TRIAL_KERNEL, 0), TRIAL_KERNEL)
    points = (
        ProbePoint("entry", (Position(""),), entry.snippet, None),
        ProbePoint("access", _ACCESS_POSITIONS, access.snippet, None),
    )
    probe = Probe(TRIAL_KERNEL, Path(TRIAL_KERNEL), "", "", {}, (entry_map, accesses), points)
    sizes = ENTRY_BYTES, RECORD_WARPS * storage_of(probe, accesses).slot_bytes
    return TrialCase(probe, sizes, check_access_records)


def check_access_records(content: bytes) -> None:
    """Raise TrialFailedError unless warps and threads left the records that they must."""
    check_warp_entries(content[:ENTRY_BYTES])
    threads = _thread_records(content[ENTRY_BYTES:])
    first_thread = threads[0]
    if not first_thread:
        raise TrialFailedError("the probed kernel saved no access of its first thread")
    output = first_thread[0].address
    atomic_addresses = {record.address for number, records in enumerate(threads) for record in records} - {
        output + OUTPUT_WORD * number for number in range(THREADS_OF_GRID)
    }
    if len(atomic_addresses) != 1:
        raise TrialFailedError(
            f"besides its output, the probed kernel saved accesses to {len(atomic_addresses)} addresses, "
            "not to 1 address"
        )
    for number, records in enumerate(threads):
        _check_thread_records(number, records, output + OUTPUT_WORD * number, atomic_addresses)
    for warp in range(-(-ACTIVE_THREADS // WARP_SIZE)):
        lanes = threads[warp * WARP_SIZE : (warp + 1) * WARP_SIZE]
        if not any(record.address in atomic_addresses for records in lanes for record in records):
            raise TrialFailedError(f"warp {warp} of the probed kernel saved no atomic access")


def check_warp_entries(content: bytes) -> None:
    """Raise TrialFailedError unless each warp saved when it began."""
    for start, sm, mark in _WARP_RECORD.iter_unpack(content):
        if mark != 1 or not start or sm >= MAX_SMS:
            raise TrialFailedError(f"a record of a warp has impossible values: start {start}, SM {sm}, mark {mark}")


def _thread_records(content: bytes) -> list[list[AccessRecord]]:
    """Return the records of each thread, in the order in which it saved them."""
    by_thread: list[list[AccessRecord]] = []
    pitch = _COUNT_ROW_BYTES + MAX_RECORDS * WARP_SIZE * _ACCESS_RECORD.size
    for warp in range(RECORD_WARPS):
        counts = list(COUNT_WORD.iter_unpack(content[warp * pitch : warp * pitch + _COUNT_BYTES]))
        records = [
            AccessRecord(*record)
            for record in _ACCESS_RECORD.iter_unpack(content[warp * pitch + _COUNT_ROW_BYTES : (warp + 1) * pitch])
        ]
        for lane, (count,) in enumerate(counts):
            if not 1 <= count <= MAX_RECORDS:
                raise TrialFailedError(
                    f"lane {lane} of warp {warp} counted {count - 1} accesses, not 0 to {MAX_RECORDS - 1}"
                )
            by_thread.append([records[lane + WARP_SIZE * index] for index in range(count - 1)])
    return by_thread


def _is_later(clock: int, reference: int) -> bool:
    """Return whether a clock of 32 bits, which wraps around, was read after another one, or in the same cycle."""
    return (clock - reference) % (2 * _HALF_RANGE) < _HALF_RANGE


def _check_thread_records(
    number: int, records: Sequence[AccessRecord], word_address: int, atomic_addresses: set[int]
) -> None:
    """An odd thread loads and stores its own word, an even one stores it; those that leave immediately do nothing."""
    expected_count = 0 if number >= ACTIVE_THREADS else 1 + number % 2
    word_records = [record for record in records if record.address == word_address]
    if len(word_records) != expected_count or any(
        record.address not in {word_address, *atomic_addresses} for record in records
    ):
        raise TrialFailedError(f"thread {number} saved {len(word_records)} accesses to its word, not {expected_count}")
    for record, next_record in itertools.pairwise(records):
        if not _is_later(next_record.clock, record.clock):
            raise TrialFailedError(f"thread {number} saved accesses in the wrong order")
    if any(not record.place or record.place % WORD_BYTES for record in records):
        raise TrialFailedError(f"thread {number} saved an access with a wrong instruction offset")


_MARKED_LOOP_PTX: Final = f"""\
	{{
	.reg .pred %q<2>;
	.reg .b32 %i<4>;
	shr.u32 %i1, %r5, 5;
	add.u32 %i1, %i1, %r4;
	and.b32 %i1, %i1, {MAX_TURNS};
	mov.u32 %i2, 0;
$turn:
	.pragma "nounroll";
	setp.ge.u32 %q0, %i2, %i1;
	@%q0 bra $turned;
	pmevent 1;
	xor.b32 %r11, %r11, %i2;
	mul.lo.u32 %r11, %r11, 40503;
	xor.b32 %r11, %r11, %r5;
	mul.lo.u32 %r11, %r11, 40503;
	pmevent 2;
	shr.u32 %i3, %r11, 3;
	add.u32 %r11, %r11, %i3;
	mul.lo.u32 %r11, %r11, 40503;
	shr.u32 %i3, %r11, 5;
	xor.b32 %r11, %r11, %i3;
	add.u32 %i2, %i2, 1;
	bra $turn;
$turned:
	pmevent 3;
	}}
"""
MAX_STARTS: Final = 12
"""Records of a warp."""
_START: Final = struct.Struct("<II")


def phases_cubin(arch: int, assembler: Assembler, *, few_registers: bool) -> Cubin:
    """Return the trial's kernel with marks. With ``few_registers`` its warps release registers.

    Raises ToolchainError.
    """
    return trial_cubin(arch, assembler, loop=_MARKED_LOOP_PTX, few_registers=few_registers)


def phases_trial(cubin: Cubin) -> TrialCase:
    """Return the case that saves starts of phases in this kernel. Raises UnsupportedKernelError."""
    start_map = Map("starts", Level.WARP, (Field("clock", "u32", 0), Field("line", "u32", 4)), _START.size, MAX_STARTS)
    start_map = replace(start_map, leader=True)
    snippet = parse_snippet("SAVE [ starts ] {%clock, LINE};", FileLocation(TRIAL_KERNEL, 0), TRIAL_KERNEL).snippet
    point = ProbePoint("start", parse_positions("phase"), snippet, None)
    probe = Probe(TRIAL_KERNEL, Path(TRIAL_KERNEL), "", "", {}, (start_map,), (point,))
    phases, _ = sass_phases(probe, GraftTarget.from_cubin(cubin, TRIAL_KERNEL))
    marks = {phase.offset: phase.start.work for phase in phases if phase.start.head.opcode == MARK}
    sizes = (RECORD_WARPS * storage_of(probe, start_map).slot_bytes,)
    return TrialCase(probe, sizes, lambda content: check_starts(content, marks))


def check_starts(content: bytes, marks: Mapping[int, str]) -> None:
    """Raise TrialFailedError unless each warp left the starts that it must. ``marks`` are works by offset."""
    pitch = QUEUE_HEADER + 2 * MAX_STARTS * _START.size
    unmarked_counts: dict[bool, int] = {}  # starts that are not marks, of warps that skip the loop and of the others
    for warp in range(RECORD_WARPS - 1):  # the last one leaves before the loop
        turns = warp & MAX_TURNS
        slot = content[warp * pitch : (warp + 1) * pitch]
        attempts = COUNT_WORD.unpack_from(slot)[0] - 1
        start_records = list(_START.iter_unpack(slot[QUEUE_HEADER:]))[: min(attempts, MAX_STARTS)]
        expected_marks = ["pmevent 1", "pmevent 2"] * turns
        saved_marks = [marks[line] for _, line in start_records if line in marks]
        unmarked_count = unmarked_counts.setdefault(turns > 0, len(start_records) - len(saved_marks))
        if attempts != unmarked_count + len(expected_marks):
            raise TrialFailedError(
                f"warp {warp} counted {attempts} starts of phases, not {unmarked_count + len(expected_marks)}"
            )
        if saved_marks != expected_marks[: len(saved_marks)] or len(saved_marks) < min(
            len(expected_marks), MAX_STARTS - unmarked_count
        ):
            raise TrialFailedError(f"the saved phases of warp {warp} are wrong: {', '.join(saved_marks) or 'none'}")
        if not all(_is_later(next_clock, clock) for (clock, _), (next_clock, _) in itertools.pairwise(start_records)):
            raise TrialFailedError(f"warp {warp} saved starts of phases in the wrong order")


_PREFETCH_LOOP_PTX: Final = f"""\
	{{
	.reg .pred %q<3>;
	.reg .b32 %i<7>;
	.reg .b64 %a<4>;
	ld.param.u64 %a1, [output];
	shr.u32 %i1, %r5, 5;
	and.b32 %i2, %i1, {MAX_TURNS};
	mul.wide.u32 %a2, %i1, {WARP_SIZE * OUTPUT_WORD};
	add.s64 %a1, %a1, %a2;
	mov.u32 %i3, 0;
$copy:
	.pragma "nounroll";
	setp.ge.u32 %q0, %i3, %i2;
	@%q0 bra $copied;
	shl.b32 %i4, %i3, 4;
	cvt.u64.u32 %a3, %i4;
	add.s64 %a3, %a1, %a3;
	add.u32 %i5, %i4, 16;
	cp.async.bulk.prefetch.L2.global [%a3], 16;
	and.b32 %i6, %i3, 1;
	setp.eq.u32 %q1, %i6, 1;
	@%q1 cp.async.bulk.prefetch.L2.global [%a1], %i5;
	add.u32 %i3, %i3, 1;
	bra $copy;
$copied:
	}}
"""
_COPY: Final = struct.Struct("<4I")
_UNIT: Final = 16
"""Bytes that the size of a copy counts in."""


def copies_cubin(arch: int, assembler: Assembler) -> Cubin:
    """Return the trial's kernel with prefetches; its warps release registers. Raises ToolchainError."""
    return trial_cubin(arch, assembler, loop=_PREFETCH_LOOP_PTX, few_registers=True)


def copies_trial(cubin: Cubin) -> TrialCase:
    """Return the case that saves records of bulk copies in this kernel."""
    probe = replace(record_trial().probe, records_copies=True)
    sites = copy_sites(GraftTarget.from_cubin(cubin, TRIAL_KERNEL))
    sizes = ENTRY_BYTES, RECORD_WARPS * storage_of_copies()
    return TrialCase(probe, sizes, lambda content: check_copies(content, [site.offset for site in sites]))


def check_copies(content: bytes, offsets: Sequence[int]) -> None:
    """Raise TrialFailedError unless each warp left the copies that it must. ``offsets`` are the offsets of the two
    instructions.
    """
    check_warp_entries(content[:ENTRY_BYTES])
    pitch, input_address = storage_of_copies(), None
    for warp in range(RECORD_WARPS - 1):  # the last one leaves before the loop
        slot_offset = ENTRY_BYTES + warp * pitch
        attempts = COUNT_WORD.unpack_from(content, slot_offset)[0] - 1
        records = [
            _COPY.unpack_from(content, slot_offset + QUEUE_HEADER + _COPY.size * index) for index in range(attempts)
        ]
        copies = [(*header, *operands) for header, operands in zip(records[::2], records[1::2], strict=False)]
        expected = list(expected_copies(warp, offsets))
        if len(copies) != len(expected) or attempts % 2:
            raise TrialFailedError(f"warp {warp} saved {attempts} records of bulk copies, not {2 * len(expected)}")
        for copy, (place, offset, size) in zip(copies, expected, strict=True):
            clock, line, low_word, high_word, units, following = copy[:6]
            address = low_word | high_word << 32
            input_address = address - offset if input_address is None else input_address
            if (line, following, address - input_address, (units & 0xFFFF) * _UNIT) != (place, place | 1, offset, size):
                raise TrialFailedError(f"warp {warp} saved a record of a bulk copy at {line:#x} that it did not make")
            if not clock:
                raise TrialFailedError(f"warp {warp} saved a record of a bulk copy without a time")


def expected_copies(warp: int, offsets: Sequence[int]) -> Iterator[tuple[int, int, int]]:
    """Yield the place, the offset in the input and the bytes of each copy of a warp."""
    start = warp * WARP_SIZE * OUTPUT_WORD
    for turn in range(warp & MAX_TURNS):
        yield offsets[0], start + turn * _UNIT, _UNIT
        if turn % 2:
            yield offsets[1], start, (turn + 1) * _UNIT


def storage_of_copies() -> int:
    """Return the bytes of a warp's records of bulk copies."""
    return storage_of(record_trial().probe, COPIES).slot_bytes
