"""The names that a probe written in Python uses, so that editors and type checkers know them.

A probe file is compiled, never run: it may begin with ``from tui_probe.dsl import …`` lines, which the compiler
passes over. Executing such a file as a program ends in a ProbeFileError that says so.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Literal, NoReturn, Protocol, TypeAlias

from tui_probe.errors import ProbeFileError

if TYPE_CHECKING:
    from collections.abc import Callable

u64: TypeAlias = int
"""An unsigned number of 64 bits. ``u64(x)`` is ``x``."""

u32: TypeAlias = int
"""An unsigned number of 32 bits: what is stored keeps its low 32 bits. ``u32(x)`` is ``x % 2**32``."""

addr: Final[int] = 0
"""Address in global memory (or else in the first memory operand) of the probed instruction, for this thread."""

bytes: Final[int] = 0  # noqa: A001 - the language's own word
"""Bytes that the probed instruction moves for this thread, all elements of a vector together."""

multiply_adds: Final[int] = 0
"""Multiply-adds of a matrix instruction (``mma``, ``wmma``, ``wgmma``), this thread's share of its warp's. 32 bits."""

instructions: Final[int] = 0
"""Instructions of the class in the basic block, at ``pos="block.load"``. 32 bits."""

issued: Final[int] = 0
"""SASS instructions that those of the class come to, at ``pos="block.load"``. 32 bits."""

line: Final[int] = 0
"""The line of ``pruned.ptx`` on which the probed instruction stands, or the first one of a block or loop. 32 bits."""

out: Final[int] = 0
"""First operand of the probed instruction: a register, which has no value before an instruction that writes it, or a
memory operand, which is its address.
"""

in1: Final[int] = 0
"""Second operand of the probed instruction. The bits, if it is a floating-point number."""

in2: Final[int] = 0
"""Third operand of the probed instruction."""

in3: Final[int] = 0
"""Fourth operand of the probed instruction."""


class SavedMap(Protocol):
    """Decorator object that ``@Map`` returns for a class."""

    def save(self, *values: int) -> None:
        """Keep one record: a value for each field, in the order of the class.

        With ``level="warp"``, the lowest active lane saves the record of its warp. Values that read no clock are
        computed only in lanes that save a record.
        """

    def add(self, *values: int) -> None:
        """Add a value to each field of the one record of this thread, warp or site. Every active lane adds its values.

        Fields begin with 0; sums are modulo 2**64 or 2**32. With ``level="warp"``, a value must be below 2**59, so that
        the sum over the lanes is correct. The cheapest way is to count in a register, and to add this register at the
        exits. With ``level="site"``, all warps add to the record of the probed instruction, block or loop.
        """

    def locate(self) -> None:
        """Find the place of the record now, so that this time is not between a clock read and the next ``save``.

        Between ``locate`` and ``save``, only local variables may be assigned; only lanes that save execute this code.
        """


def Map(  # noqa: N802 - the language's own word
    *,
    level: Literal["warp", "thread", "site"],
    type: Literal["array", "dynamic"] = "array",  # noqa: A002 - the language's own word
    size: int | None = None,
    cap: int = 1,
    reduce: Literal["warp", "block", "launch"] | None = None,
) -> Callable[[object], SavedMap]:
    """A class of ``u64`` and ``u32`` fields as a map: ``cap`` records of ``size`` bytes per warp or thread.

    By default, ``size`` is the size of the fields. With ``cap=1``, a later record replaces an earlier one; otherwise
    the first ``cap`` records are kept, and all records are counted. A map with ``level="site"`` has one record per
    probed instruction, block or loop; all warps ``add`` to its fields, which are ``u64``. With ``reduce``, results keep
    sums per launch, block or warp, unless the run has ``--detail``.
    """
    _refuse(level, type, size, cap, reduce)


def probe(
    *, pos: str, level: Literal["warp", "thread", "site"] = "thread", before: bool = False
) -> Callable[[Callable[[], None]], Callable[[], None]]:
    """A function as a probe.

    ``pos`` is ``"kernel"`` (the entry with ``before=True``, or else every exit); opcodes joined by ``:``, such
    as ``"ld.global:st.global"``: instructions of that opcode that have all these modifiers, and with ``"ld.!param"``
    not that one; with a ``+`` behind, as in ``"mbarrier.try_wait+"``, a loop that only tries the instruction again
    is one; ``"block"``: the start of every basic block, of those only that hold loads with ``"block.load"`` (or
    another class of ``ptx.instruction_facts``); ``"loop"``: the first block of every loop. The last two need
    ``before=True``. ``level`` must be that of the maps that the function saves in.
    """
    _refuse(pos, level, before)


def clock() -> int:
    """The SM's clock, 64 bits, in cycles of that SM. Clocks of two SMs are not comparable."""
    _refuse()


def clock32() -> int:
    """The low 32 bits of the SM's clock, cheaper by a register; differences wrap correctly up to 2**32 cycles."""
    _refuse()


def time() -> int:
    """The GPU's global timer, in nanoseconds, 64 bits. Its step may be a microsecond."""
    _refuse()


def cuid() -> int:
    """Number of the SM (compute unit) that runs this warp."""
    _refuse()


def lane() -> int:
    """Number of this thread in its warp, 0 to 31."""
    _refuse()


def warp() -> int:
    """Number of the place that the warp takes on its SM (``%warpid``)."""
    _refuse()


def _refuse(*_: Any) -> NoReturn:
    raise ProbeFileError("a probe is compiled, not run; use it with 'tui-probe run -p FILE -- COMMAND'")
