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
from tui_probe.sass.words import NO_BARRIER, PT, YIELD, Word, nop_word

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

    start_clock: int
    end_clock: int
    scoreboard: int | None = None


@dataclass(frozen=True, slots=True)
class SiteSums:
    """Uniform registers of a site: sum of cycles, number of executions, and the longest wait, if there is room."""

    cycles: int
    count: int
    longest_wait: int | None = None

    @property
    def registers(self) -> tuple[int, ...]:
        """The registers, without that of the longest wait if it is not kept."""
        return (self.cycles, self.count) if self.longest_wait is None else (self.cycles, self.count, self.longest_wait)


@dataclass(frozen=True, slots=True)
class WaitRegisters:
    """Uniform registers of the code: one for the wait, and those of each site."""

    wait: int
    sites: tuple[SiteSums, ...]

    @classmethod
    def assign(cls, uniform: Sequence[int], sites: int, longest_sites: Container[int]) -> WaitRegisters:
        """Assign the first of some registers to that many sites; those at the given places keep the longest wait."""
        wait, *sum_registers = uniform
        numbers = iter(sum_registers)
        site_sums = (
            SiteSums(next(numbers), next(numbers), next(numbers) if number in longest_sites else None)
            for number in range(sites)
        )
        return cls(wait, tuple(site_sums))

    @property
    def uniform(self) -> set[int]:
        """All uniform registers."""
        return {self.wait, *(number for site in self.sites for number in site.registers)}


def needs_scoreboard(arch: int) -> bool:
    """Return whether the code at sites sets a scoreboard."""
    return arch < _FIXED_LATENCY_FROM


def wait_splice(
    offset: int,
    word: Word,
    site: int,
    registers: WaitRegisters,
    resources: SiteResources,
    arch: int,
    *,
    waits_itself: bool,
) -> Splice:
    """Return the splice that measures the wait at an instruction, for the sums of number ``site``."""
    begin = clock_word(resources.start_clock, _CLOCK_GAP)
    end = clock_word(resources.end_clock, _OLDER_CLOCK_STALL if needs_scoreboard(arch) else _CLOCK_STALL)
    summing = [
        _difference_word(resources.end_clock, resources.end_clock, resources.start_clock, arch),
        *_summing_words(site, registers, resources, arch),
    ]
    if waits_itself:
        preceding = (begin.with_wait_mask(word.wait_mask),)
        return Splice(offset, preceding, (*_settling_words(word), end, *summing), runs_in_all_lanes=True, waits=False)
    return Splice(offset, (begin, end.with_wait_mask(word.wait_mask), *summing), runs_in_all_lanes=True, waits=False)


def _summing_words(site: int, registers: WaitRegisters, resources: SiteResources, arch: int) -> list[Word]:
    """Return the code that adds the difference of the clocks to the sum of a site, and 1 to its count."""
    sums = registers.sites[site]
    count_word = uniform_plus_number(sums.count, sums.count, 1, arch)
    sum_word = uniform_sum(sums.cycles, sums.cycles, registers.wait, arch)
    scoreboard = NO_BARRIER if resources.scoreboard is None else resources.scoreboard
    move = to_uniform_word(arch, registers.wait, resources.end_clock, scoreboard)
    longest_words = [] if sums.longest_wait is None else _longest_words(sums.longest_wait, resources, arch)
    if resources.scoreboard is not None:
        return [move, *longest_words, count_word, sum_word.with_wait_mask(1 << resources.scoreboard)]
    elapsed_stall = sum(word.stall for word in longest_words)
    return [move.with_stall(max(1, move.stall - elapsed_stall)), *longest_words, count_word, sum_word]


def _longest_words(register: int, resources: SiteResources, arch: int) -> list[Word]:
    """Return the code that keeps the longest wait. Its result is not used before the next wait at the site or the exit,
    and so is not waited for where it has a fixed latency.
    """
    maximum = _maximum_word(resources.start_clock, resources.end_clock, register, arch)
    if resources.scoreboard is not None:
        return [maximum, to_uniform_word(arch, register, resources.start_clock, resources.scoreboard)]
    return [maximum, to_uniform_word(arch, register, resources.start_clock).with_stall(_SUM_STALL)]


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
    return [uniform_plus_number(number, zero, 0, arch) for number in numbers]


def clock_word(destination: int, stall: int) -> Word:
    """Return a ``CS2R.32``, which moves the low half of the clock to a register."""
    return _word(_CS2R | _CLOCK_LOW, stall).with_field(16, 8, destination)


def _difference_word(destination: int, minuend: int, subtrahend: int, arch: int) -> Word:
    stall = _OLDER_CLOCK_STALL if needs_scoreboard(arch) else _ADD_STALL
    word = _word(_IADD3, stall).with_field(16, 8, destination).with_field(24, 8, minuend).with_field(32, 8, subtrahend)
    return word.with_field(_NEGATED_B, 1, 1)


def _maximum_word(destination: int, register: int, uniform: int, arch: int) -> Word:
    """Return a ``VIMNMX``, or ``IMNMX`` before sm_90: the maximum of an ordinary and a uniform register."""
    bits, stall = (_IMNMX, _OLDER_CLOCK_STALL) if needs_scoreboard(arch) else (_VIMNMX, _ADD_STALL)
    word = _word(bits, stall).with_field(16, 8, destination).with_field(24, 8, register)
    return word.with_field(32, uniform_bits(arch), uniform)


def uniform_sum(destination: int, augend: int, addend: int, arch: int) -> Word:
    """Return a ``UIADD3`` of two uniform registers."""
    return _uniform_addition(_UIADD3, destination, augend, arch).with_field(32, uniform_bits(arch), addend)


def uniform_plus_number(destination: int, augend: int, number: int, arch: int) -> Word:
    """Return a ``UIADD3`` of a uniform register and a number."""
    return _uniform_addition(_UIADD3 & ~_FORM_BITS | _NUMBER_FORM, destination, augend, arch).with_field(32, 32, number)


def _uniform_addition(bits: int, destination: int, augend: int, arch: int) -> Word:
    width = uniform_bits(arch)
    zero = (1 << width) - 1
    return (
        _word(bits, _SUM_STALL)
        .with_field(16, width, destination)
        .with_field(24, width, augend)
        .with_field(64, width, zero)
    )


def _word(bits: int, stall: int) -> Word:
    word = Word(bits).with_guard(PT).with_stall(stall).with_field(YIELD, 1, int(stall < _FIRST_YIELDED_STALL))
    return word.with_write_barrier(NO_BARRIER).with_read_barrier(NO_BARRIER)
