"""Code around an instruction that measures how long a warp waits there, in clock cycles.

Of an instruction with a wait mask::

    CS2R.32 t0, CLOCK
    [mask] CS2R.32 t1, CLOCK        waits for what the instruction waits for
    IADD3   t1, t1, -t0
    R2UR    u, t1
    VIMNMX  t0, t1, longest         in the shadow of R2UR, as is the next; left out where registers are few
    R2UR    longest, t0
    UIADD3  count, count, 1
    UIADD3  sum, sum, u
    the instruction
    BRA     back

Of one that waits itself the first clock is read before it and the second behind it. ``BAR`` and ``MEMBAR`` do not hold
a clock read that follows: on an H200 only one behind two ``NOP`` of 15 cycles sees a ``BAR``. The branch instead
of the instruction waits for nothing: it would hide the wait. Sums are in uniform registers, one for a warp: each group
of lanes that comes adds its own wait. No predicate, scoreboard or memory is touched, so no other wait gets longer.

Before sm_90 ``R2UR`` sets a scoreboard that no instruction of the kernel has pending there, and the last addition waits
for it.

Measured on one H200: a clock can be used 4 cycles after it is read, two reads without a wait are 2 cycles apart, a
branch out and back takes 25 to 41 cycles, and the wait of a load whose result is used after w cycles of other work is
``max(2, constant - w)``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from tui_probe.sass.graft import Splice
from tui_probe.sass.uniform_registers import to_uniform_word, uniform_bits
from tui_probe.sass.wait_classes import own_wait
from tui_probe.sass.words import ALWAYS, NO_BARRIER, YIELD, Word, nop_word

if TYPE_CHECKING:
    from collections.abc import Container, Sequence

FIRST_ARCHITECTURE: Final = 80
"""First supported architecture."""
_FIXED_LATENCY_FROM: Final = 90
"""First architecture whose R2UR has a fixed latency. Before, it sets a scoreboard, and the sum waits for that."""
_CS2R, _CLOCK_LOW = 0x805, 0x50 << 72
_IADD3: Final = 0x210 | 0x07FFE0FF << 64
_IMNMX: Final = 0xC17 | 0x0F800000 << 64
_VIMNMX: Final = 0xC48 | 0x0FFE0000 << 64
_UIADD3: Final = 0x290 | 0x0FFFE000 << 64
_NUMBER_FORM: Final = 0x800
_FORM_BITS: Final = 0xE00
_NEGATED_B: Final = 63
_CLOCK_STALL: Final = 4
"""Cycles until a clock that was read can be used."""
_OLDER_CLOCK_STALL: Final = 8
"""Value before sm_90, where it was not measured: ptxas waits no longer for any result of fixed latency."""
_ADD_STALL: Final = 5
_CLOCK_GAP: Final = 2
_HOLD_LATER: Final = frozenset({"barrier", "cluster", "fence"})
_SETTLED_STALL, _SETTLING_WORDS = 15, 2
_SUM_STALL: Final = 2
_FIRST_YIELDED_STALL: Final = 12
"""Longer stalls have bit 109 clear in all code of ptxas."""


@dataclass(frozen=True, slots=True)
class SiteResources:
    """Resources of the code at one site: registers of the first clock, and of the second and the difference, and
    before sm_90 a scoreboard.
    """

    before: int
    after: int
    scoreboard: int | None = None


@dataclass(frozen=True, slots=True)
class SiteSums:
    """Uniform registers of a site: sum of cycles, number of executions, and the longest wait, if there is room."""

    cycles: int
    count: int
    longest: int | None = None

    @property
    def registers(self) -> tuple[int, ...]:
        """Return the present ones."""
        return (self.cycles, self.count) if self.longest is None else (self.cycles, self.count, self.longest)


@dataclass(frozen=True, slots=True)
class WaitRegisters:
    """Uniform registers of the code: one for the wait, and those of each site."""

    wait: int
    sites: tuple[SiteSums, ...]

    @classmethod
    def of(cls, uniform: Sequence[int], sites: int, with_longest: Container[int]) -> WaitRegisters:
        """Assign the first of some registers to that many sites; those at the given places keep the longest wait."""
        wait, *left = uniform
        numbers = iter(left)
        own = (
            SiteSums(next(numbers), next(numbers), next(numbers) if place in with_longest else None)
            for place in range(sites)
        )
        return cls(wait, tuple(own))

    @property
    def uniform(self) -> set[int]:
        """All uniform registers."""
        return {self.wait, *(number for site in self.sites for number in site.registers)}


def needs_scoreboard(arch: int) -> bool:
    """Return whether the code at sites sets a scoreboard."""
    return arch < _FIXED_LATENCY_FROM


def wait_splice(
    at: int, word: Word, site: int, registers: WaitRegisters, own: SiteResources, arch: int, *, waits_itself: bool
) -> Splice:
    """Return the splice that measures the wait at an instruction, for the sums of number ``site``."""
    begin = clock_word(own.before, _CLOCK_GAP)
    end = clock_word(own.after, _OLDER_CLOCK_STALL if needs_scoreboard(arch) else _CLOCK_STALL)
    added = [_difference(own.after, own.after, own.before, arch), *_summing_words(site, registers, own, arch)]
    if waits_itself:
        before = (begin.with_wait_mask(word.wait_mask),)
        return Splice(at, before, (*_settling_words(word), end, *added), together=True, waits=False)
    return Splice(at, (begin, end.with_wait_mask(word.wait_mask), *added), together=True, waits=False)


def _summing_words(site: int, registers: WaitRegisters, own: SiteResources, arch: int) -> list[Word]:
    """Return the code that adds the difference of the clocks to the sum of a site, and 1 to its count."""
    sums = registers.sites[site]
    counted = plus_number(sums.count, sums.count, 1, arch)
    summed = uniform_sum(sums.cycles, sums.cycles, registers.wait, arch)
    scoreboard = NO_BARRIER if own.scoreboard is None else own.scoreboard
    moved = to_uniform_word(arch, registers.wait, own.after, scoreboard)
    longest = [] if sums.longest is None else _longest_words(sums.longest, own, arch)
    if own.scoreboard is not None:
        return [moved, *longest, counted, summed.with_wait_mask(1 << own.scoreboard)]
    meanwhile = sum(word.stall for word in longest)
    return [moved.with_stall(max(1, moved.stall - meanwhile)), *longest, counted, summed]


def _longest_words(longest: int, own: SiteResources, arch: int) -> list[Word]:
    """Return the code that keeps the longest wait. Its result is not used before the next wait at the site or the exit,
    and so is not waited for where it has a fixed latency.
    """
    longer = _larger(own.before, own.after, longest, arch)
    if own.scoreboard is not None:
        return [longer, to_uniform_word(arch, longest, own.before, own.scoreboard)]
    return [longer, to_uniform_word(arch, longest, own.before).with_stall(_SUM_STALL)]


def null_wait(word: Word, *, waits_itself: bool) -> int:
    """Return the cycles between the clocks of an instruction that has nothing to wait for."""
    if not waits_itself:
        return _CLOCK_GAP
    return _CLOCK_GAP + word.stall + sum(nop.stall for nop in _settling_words(word))


def _settling_words(word: Word) -> list[Word]:
    """Return what a clock read must follow so that it sees the wait of an instruction."""
    if own_wait(word) not in _HOLD_LATER:
        return []
    return [nop_word().with_stall(_SETTLED_STALL) for _ in range(_SETTLING_WORDS)]


def cleared_sums(registers: WaitRegisters, arch: int) -> list[Word]:
    """Return the code that sets all sums to 0."""
    zero = (1 << uniform_bits(arch)) - 1
    numbers = [number for site in registers.sites for number in site.registers]
    return [plus_number(number, zero, 0, arch) for number in numbers]


def clock_word(to: int, stall: int) -> Word:
    """``CS2R.32``: a register gets the low half of the clock."""
    return _word(_CS2R | _CLOCK_LOW, stall).with_field(16, 8, to)


def _difference(to: int, minuend: int, subtrahend: int, arch: int) -> Word:
    stall = _OLDER_CLOCK_STALL if needs_scoreboard(arch) else _ADD_STALL
    word = _word(_IADD3, stall).with_field(16, 8, to).with_field(24, 8, minuend).with_field(32, 8, subtrahend)
    return word.with_field(_NEGATED_B, 1, 1)


def _larger(to: int, left: int, uniform: int, arch: int) -> Word:
    """``VIMNMX``, or ``IMNMX`` before sm_90: the larger of an ordinary and a uniform register."""
    bits, stall = (_IMNMX, _OLDER_CLOCK_STALL) if needs_scoreboard(arch) else (_VIMNMX, _ADD_STALL)
    word = _word(bits, stall).with_field(16, 8, to).with_field(24, 8, left)
    return word.with_field(32, uniform_bits(arch), uniform)


def uniform_sum(to: int, left: int, right: int, arch: int) -> Word:
    """``UIADD3``: a uniform register gets the sum of two others."""
    return _uniform_addition(_UIADD3, to, left, arch).with_field(32, uniform_bits(arch), right)


def plus_number(to: int, left: int, number: int, arch: int) -> Word:
    """``UIADD3``: a uniform register gets the sum of another one and a number."""
    return _uniform_addition(_UIADD3 & ~_FORM_BITS | _NUMBER_FORM, to, left, arch).with_field(32, 32, number)


def _uniform_addition(bits: int, to: int, left: int, arch: int) -> Word:
    width = uniform_bits(arch)
    zero = (1 << width) - 1
    return _word(bits, _SUM_STALL).with_field(16, width, to).with_field(24, width, left).with_field(64, width, zero)


def _word(bits: int, stall: int) -> Word:
    word = Word(bits).guarded(ALWAYS).with_stall(stall).with_field(YIELD, 1, int(stall < _FIRST_YIELDED_STALL))
    return word.with_write_barrier(NO_BARRIER).with_read_barrier(NO_BARRIER)
