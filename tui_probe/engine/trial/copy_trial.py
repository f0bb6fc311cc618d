"""Case of the graft self-test with bulk copies, in a kernel whose warps give registers away.

Warp w prefetches 16 bytes w modulo 8 times, and each second time more bytes from the start of its part of the input, by
an instruction with a uniform guard. Prefetches change nothing.
"""

from __future__ import annotations

import struct
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from tui_probe.engine.grafting.sass_forms import COPIES
from tui_probe.engine.grafting.sass_positions import copy_sites
from tui_probe.engine.trial.trial_cases import (
    BEGUN_BYTES,
    COUNT_WORD,
    MAX_TURNS,
    RECORD_WARPS,
    check_begun_warps,
    record_trial,
)
from tui_probe.engine.trial.trial_kernel import TRIAL_KERNEL, TrialCase, TrialFailedError, trial_cubin
from tui_probe.probe_model.storage import QUEUE_HEADER, storage_of
from tui_probe.sass.target import GraftTarget
from tui_probe.trace.launch_shape import WARP_SIZE

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tui_probe.binaries.cubin import Cubin
    from tui_probe.engine.assembler import Assembler

_WORD: Final = 4
_PREFETCH_LOOP_PTX: Final = f"""\
	{{
	.reg .pred %q<3>;
	.reg .b32 %i<7>;
	.reg .b64 %a<4>;
	ld.param.u64 %a1, [output];
	shr.u32 %i1, %r5, 5;
	and.b32 %i2, %i1, {MAX_TURNS};
	mul.wide.u32 %a2, %i1, {WARP_SIZE * _WORD};
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
    """The trial's kernel with prefetches; warps give registers away. Raises ToolchainError."""
    return trial_cubin(arch, assembler, loop=_PREFETCH_LOOP_PTX, few_registers=True)


def copies_trial(cubin: Cubin) -> TrialCase:
    """Records of bulk copies in this kernel, whose instructions its code tells."""
    probe = replace(record_trial().probe, records_copies=True)
    sites = copy_sites(GraftTarget.of(cubin, TRIAL_KERNEL))
    sizes = BEGUN_BYTES, RECORD_WARPS * storage_of_copies()
    return TrialCase(probe, sizes, lambda content: check_copies(content, [site.at for site in sites]))


def check_copies(content: bytes, places: Sequence[int]) -> None:
    """Raise TrialFailedError unless each warp left the copies that it must. ``places`` are the offsets of the two
    instructions.
    """
    check_begun_warps(content[:BEGUN_BYTES])
    pitch, first = storage_of_copies(), None
    for warp in range(RECORD_WARPS - 1):  # the last one leaves before the loop
        at = BEGUN_BYTES + warp * pitch
        attempts = COUNT_WORD.unpack_from(content, at)[0] - 1
        records = [_COPY.unpack_from(content, at + QUEUE_HEADER + _COPY.size * index) for index in range(attempts)]
        copies = [(*begin, *more) for begin, more in zip(records[::2], records[1::2], strict=False)]
        expected = list(expected_copies(warp, places))
        if len(copies) != len(expected) or attempts % 2:
            raise TrialFailedError(f"warp {warp} saved {attempts} records of bulk copies, not {2 * len(expected)}")
        for copy, (place, offset, size) in zip(copies, expected, strict=True):
            clock, line, low, high, units, following = copy[:6]
            address = low | high << 32
            first = address - offset if first is None else first
            if (line, following, address - first, (units & 0xFFFF) * _UNIT) != (place, place | 1, offset, size):
                raise TrialFailedError(f"warp {warp} saved a record of a bulk copy at {line:#x} that it did not make")
            if not clock:
                raise TrialFailedError(f"warp {warp} saved a record of a bulk copy without a time")


def expected_copies(warp: int, places: Sequence[int]) -> Iterator[tuple[int, int, int]]:
    """Yield the place, the offset in the input and the bytes of each copy of a warp."""
    start = warp * WARP_SIZE * _WORD
    for turn in range(warp & MAX_TURNS):
        yield places[0], start + turn * _UNIT, _UNIT
        if turn % 2:
            yield places[1], start, (turn + 1) * _UNIT


def storage_of_copies() -> int:
    """Return the bytes of a warp's records of bulk copies."""
    return storage_of(record_trial().probe, COPIES).slot_bytes
